"""What the FedVRA paper claims, as rules on the numbers of its tables."""

from tff_fedopt.tables import claims

_METHODS = ('FedAvg', 'FedProx', 'SCAFFOLD', 'FedDyn', 'ADMM')
_RHOS = ('0', '0.3', '0.6', '1')
_TASK = 'EMNIST CR'


def _compare(method, panel='Accuracy', task=_TASK):
  return claims.Cell(
      'vra_compare', task, method, panel, lower_is_better=panel != 'Accuracy'
  )


def _steps(rho, d):
  return claims.Cell('vra_stepsizes', rho, d, f'{_TASK}, accuracy')


def _table1(row, method):
  return claims.Cell('vra_table1', row, method, lower_is_better=True)


def _labels(task, method):
  return claims.Cell('vra_semisupervised', task, method, 'Labels of some')


def _kmeans(method):
  return claims.Cell(
      'vra_semisupervised',
      'k-means',
      method,
      'No labels',
      lower_is_better=True,
  )


def _theory(label):
  return claims.Cell('vra_theory', label, 'measured', 'Claims')


def _least(value, at_least):
  return claims.Rule(value, at_least=at_least, noise='')


def _most(value, at_most):
  return claims.Rule(value, at_most=at_most, noise='')


_UNEQUAL = 'unequal steps'

RULES = {
    'vra-01': claims.Rule(
        _compare('SCAFFOLD', 'Rounds') / _compare('FedVRA', 'Rounds') - 1,
        at_least=0,
        noise='rounds ratio',
    ),
    'vra-02': claims.Rule(
        claims.least(
            (m, _compare('FedVRA') - _compare(m)) for m in _METHODS
        ),
        at_least=0,
    ),
    'vra-03': claims.Rule(
        claims.least(
            (m, _compare(m, 'Loss') - _compare('FedVRA', 'Loss'))
            for m in _METHODS
        ),
        at_least=0,
        noise='loss',
    ),
    'vra-04': claims.Rule(
        _compare('FedVRA', task='CIFAR-10')
        - _compare('FedAvg', task='CIFAR-10'),
        at_least=0,
    ),
    'vra-05': claims.Rule(_compare('FedVRA') - _compare('ADMM'), at_least=0),
    'vra-06': claims.Rule(_compare('ADMM') - _compare('FedAvg'), at_least=0),
    'vra-07': _least(_table1(_UNEQUAL, 'FedAvg') - _table1(_UNEQUAL, 'ADMM'), 3),
    'vra-08': claims.Rule(
        claims.best(_steps('0.3', 'N/m'), _steps('0.6', 'N/m'))
        - _steps('0', 'N/m'),
        at_least=0,
    ),
    'vra-09': claims.Rule(
        claims.best(*(_steps(rho, 'N/m') for rho in _RHOS))
        - _steps('1', 'N/m'),
        at_least=0,
    ),
    'vra-10': claims.Rule(
        claims.least(
            (f'ρ {rho}', _steps(rho, 'N/m') - _steps(rho, '1'))
            for rho in _RHOS
        ),
        at_least=0,
    ),
    'vra-11': claims.Rule(
        claims.least(
            (f'ρ {rho}, d {b}', _steps(rho, b) - _steps(rho, a))
            for rho in _RHOS
            for a, b in (('1', 'N/2m'), ('N/2m', 'N/m'))
        ),
        at_least=0,
    ),
    'vra-12': _least(
        _theory('the more clients differ the larger the best a: rise (≥ 0)'), 0
    ),
    'vra-13': _most(
        _table1('sent up', 'FedVRA') / _table1('sent up', 'FedAvg'), 1.001
    ),
    'vra-14': _least(
        _table1('sent up', 'SCAFFOLD') / _table1('sent up', 'FedVRA'), 1.99
    ),
    'vra-15': _most(_table1(_UNEQUAL, 'FedVRA'), -4),
    'vra-16': _most(_table1('unequal steps and sampling', 'FedVRA'), -4),
    'vra-17': _least(
        claims.worst(_table1(_UNEQUAL, 'FedAvg'), _table1(_UNEQUAL, 'FedProx')),
        -2,
    ),
    'vra-18': _least(_table1(_UNEQUAL, 'SCAFFOLD'), -2),
    'vra-19': _most(
        _theory('Theorem 1, S = √R: slope of E‖∇f‖² over R (≤ −0.4)'), -0.4
    ),
    'vra-20': claims.Rule(
        _labels(_TASK, 'FedVRA-U block') - _labels(_TASK, 'FedVRA labelled'),
        at_least=0,
    ),
    'vra-21': claims.Rule(
        _labels('CIFAR-10', 'FedVRA-U block')
        - _labels('CIFAR-10', 'FedVRA labelled'),
        at_least=0,
    ),
    'vra-22': claims.Rule(
        claims.least(
            (t, _labels(t, 'FedVRA-U block') - _labels(t, 'FedAvg argmax'))
            for t in (_TASK, 'CIFAR-10')
        ),
        at_least=0,
    ),
    'vra-23': _least(_kmeans('FedAvg') - _kmeans('FedVRA'), 3),
    'vra-24': _most(
        claims.best(
            _theory('a = d = 1 is federated ADMM: difference of models (≤ −12)'),
            _theory('a = 0, d = N/m is FedProx: difference of models (≤ −12)'),
        ),
        -12,
    ),
    'vra-25': _most(
        _theory('steps 19 and 20 are (10), λ = Σ ω_i λ_i: difference (≤ −12)'),
        -12,
    ),
    'vra-26': _least(
        _theory('Lemma 1: variance over clients that ADMM removes (≥ 0.5)'), 0.5
    ),
    'vra-27': claims.Rule(_steps('0', 'N/m') - _steps('0', '1'), at_least=0),
    'vra-28': _least(
        _theory('where clients differ FedVRA loses less than FedAvg: by (≥ 0)'),
        0,
    ),
}
