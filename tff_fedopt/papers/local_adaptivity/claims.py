"""What the Local Adaptivity paper claims, as rules on its tables' numbers."""

from tff_fedopt.tables import claims

_NWP, _NCP, _TP = 'SO NWP', 'Shakespeare NCP', 'SO TP'
_TASKS = (_NWP, _NCP, _TP)
_C100 = 'CIFAR-100'
_CLIENT, _SERVER = 'client-only AdaGrad', 'server-only AdaGrad'
_BOTH = 'both AdaGrad, restart'
# Table 2 takes for each task the server that is better.
_ONLY, _RESTART = 'server only', 'client AdaGrad, restart'
_LOCAL = 'client AdaGrad, local correction'
_GLOBAL = 'client AdaGrad, global correction'
_ADAM = 'server-only Adam'
_PLAIN = 'server Adam + client AdaGrad'
_CORRECTED = f'{_PLAIN}, local correction'
_BEST = 'best proposed'
_CLIENT_RATES = ('-0.5', '0', '0.5', '1', '1.5', '2', '2.5')
_SERVER_RATES = ('1', '0.5', '0', '-1')
_WITHIN = 'After 100 rounds'
_FIRST = 'To distance 1'


def _toy(row, column):
  return claims.Cell('la_toy', row, column, lower_is_better=True)


def _table1(task, column):
  return claims.Cell('la_table1', task, column)


def _table2(task, column):
  return claims.Cell('la_table2', task, column)


def _corrected(task):
  return claims.best(_table2(task, _LOCAL), _table2(task, _GLOBAL))


def _table3(column, panel='', row=_NWP):
  return claims.Cell('la_table3', row, column, panel)


def _gain(over):
  return 100 * (_table3(_BEST) / _table3(over) - 1)


def _off(over, label):
  return abs(_gain(over) - _table3(f'{_BEST} over {label}', 'Gain'))


def _curve(epochs, column):
  return claims.Cell(
      'la_curves', f'{_NWP}, local epochs: {epochs}', column
  )


def _lead(epochs):
  return _curve(epochs, _CLIENT) - _curve(epochs, _SERVER)


def _count(column):
  return claims.Cell(
      'la_lr_grid',
      _TP,
      column,
      'pairs with test recall@5 >= 50%',
      printed=(_NWP, 'both AdaGrad' if 'both' in column else _SERVER),
  )


def _pair(method, row, column):
  return claims.Cell('la_lr_grid', row, column, f'{_TP}, {method}')


def _sync(column, row=_NCP):
  return claims.Cell('la_sync', row, column)


def _cifar(column):
  return claims.Cell('la_cifar100', _C100, column)


def _theory(label):
  return claims.Cell('la_theory', label, 'measured', 'Claims')


def _least(value, at_least):
  return claims.Rule(value, at_least=at_least, noise='')


def _most(value, at_most):
  return claims.Rule(value, at_most=at_most, noise='')


def _after(column):
  return _toy(_WITHIN, column)


# On CIFAR-100 the server is Adam.
_ON_IMAGES = _cifar(_CORRECTED) - claims.best(_cifar(_ADAM), _cifar(_PLAIN))
_PAPER_NWP = _table3(_BEST) - _table3(_ADAM)

RULES = {
    'la-01': _least(
        claims.worst(*(_toy(_FIRST, f'FedAvg, η {r}') for r in ('0.15', '0.03')))
        - claims.worst(
            *(_toy(_FIRST, f'AdaGrad, η {r}') for r in ('0.1', '0.03'))
        ),
        1,
    ),
    'la-02': _least(
        _after('AdaGrad, η 0.1') / _after('FedAvg, η 0.03'), 10**0.1
    ),
    'la-03': _least(_after('AdaGrad, η 0.03') - _after('AdaGrad, η 0.1'), 0),
    'la-04': _most(_after('FedAvg, η 0.03') / _after('FedAvg, η 0.15'), 0.9),
    'la-05': _most(
        _after('AdaGrad + local, η 0.03') / _after('AdaGrad, η 0.03'), 0.1
    ),
    'la-06': _least(
        claims.worst(
            _toy(_FIRST, 'AdaGrad, η 0.1')
            - _toy(_FIRST, 'AdaGrad + global, η 0.1'),
            0.5 - _after('AdaGrad + global, η 0.1') / _after('AdaGrad, η 0.1'),
        ),
        0,
    ),
    'la-07': _most(
        _after('AdaGrad + global, η 0.03') / _after('AdaGrad + global, η 0.1'),
        0.5,
    ),
    'la-08': _least(
        _toy(_FIRST, 'AdaGrad + local, η 0.03')
        - _toy(_FIRST, 'AdaGrad + global, η 0.03'),
        1,
    ),
    'la-09': claims.Rule(
        _table1(_NWP, _BOTH) - _table1(_NWP, _SERVER), at_least=0
    ),
    'la-10': claims.Rule(
        _table1(_NCP, _BOTH) - _table1(_NCP, _SERVER), at_least=0
    ),
    'la-11': claims.Rule(
        _table1(_TP, _SERVER) - _table1(_TP, _BOTH), at_least=0
    ),
    'la-12': claims.Rule(
        claims.least(
            (t, _table1(t, _CLIENT) - _table1(t, 'FedAvg')) for t in _TASKS
        ),
        at_least=0,
    ),
    # Least over the others: the paper prints only one of them.
    'la-13': claims.Rule(
        claims.least(
            (f'{t} {c}', _table1(t, _BOTH) - _table1(t, c))
            for t in _TASKS
            for c in ('FedAvg', _CLIENT, _SERVER)
        ),
        at_least=0,
    ),
    'la-14': claims.Rule(
        _table2(_TP, _LOCAL) - _table2(_TP, _ONLY), at_least=0
    ),
    'la-15': claims.Rule(
        _table2(_TP, _LOCAL)
        - claims.Cell(
            'la_table2',
            _TP,
            _RESTART,
            printed=(_TP, _BOTH),
            printed_table='la_table1',
        ),
        at_least=0,
    ),
    'la-16': claims.Rule(
        _corrected(_NWP) - _table2(_NWP, _ONLY), at_least=0
    ),
    'la-17': claims.Rule(
        _corrected(_NCP) - _table2(_NCP, _ONLY), at_least=0
    ),
    'la-18': claims.Rule(
        claims.least([
            *(
                (
                    t,
                    _corrected(t)
                    - claims.best(_table2(t, _ONLY), _table2(t, _RESTART)),
                )
                for t in _TASKS
            ),
            # What the paper prints of it.
            (
                f'{_TP}, local',
                _table2(_TP, _LOCAL) - _table2(_TP, _ONLY),
            ),
            (f'{_NWP}, server Adam', _PAPER_NWP),
            (_C100, _ON_IMAGES),
        ]),
        at_least=0,
    ),
    'la-19': claims.Rule(_gain(_ADAM), at_least=3, noise='relative gain'),
    'la-20': claims.Rule(_gain('FedAvg'), at_least=50, noise='relative gain'),
    'la-21': claims.Rule(
        claims.least(
            (
                c,
                claims.best(
                    *(
                        _table3(f'{how} correction', 'Server Adam', f'client {c}')
                        for how in ('local', 'global')
                    )
                )
                - _table3('no correction', 'Server Adam', f'client {c}'),
            )
            for c in ('AdaGrad', 'Adam', 'Yogi')
        ),
        at_least=0,
    ),
    'la-22': _most(
        claims.best(_off(_ADAM, 'server Adam'), _off('FedAvg', 'FedAvg')), 0.1
    ),
    'la-23': claims.Rule(
        claims.Cell(
            'la_curves', _NWP, 'both AdaGrad over server-only AdaGrad', 'Speed-up'
        )
        - 1,
        at_least=1,
        noise='count ratio',
    ),
    'la-24': claims.Rule(_lead(1), at_least=0),
    'la-25': claims.Rule(_lead(5) - _lead(1), at_least=0),
    'la-26': claims.Rule(
        claims.least(
            (f'{a} over {b}, epochs {e}', _curve(e, a) - _curve(e, b))
            for e in (1, 5)
            for a, b in (
                (_BOTH, _CLIENT),
                (_CLIENT, _SERVER),
                (_SERVER, 'FedAvg'),
            )
        ),
        at_least=0,
    ),
    'la-27': claims.Rule(
        _count('both AdaGrad') / _count(_SERVER) - 1,
        at_least=1,
        noise='count ratio',
    ),
    'la-28': claims.Rule(
        claims.mean(
            *(
                _pair('both AdaGrad', r, c) - _pair(_SERVER, r, c)
                for r in _SERVER_RATES
                for c in _CLIENT_RATES
            )
        ),
        at_least=0,
    ),
    'la-29': claims.Rule(
        _sync(_BOTH) - _sync('client states synchronised'), at_least=0
    ),
    'la-30': _least(_sync('client states synchronised', 'communication'), 2),
    'la-32': _most(
        abs(_table3('local correction', 'Communication', 'communication') - 1),
        1e-3,
    ),
    'la-33': _most(
        abs(_table3('global correction', 'Communication', 'communication') - 1.5),
        0.01,
    ),
    'la-34': claims.Rule(_cifar(_ADAM) - _cifar(_PLAIN), at_least=0),
    'la-35': claims.Rule(_cifar(_CORRECTED) - _cifar(_ADAM), at_least=0),
    'la-36': claims.Rule(_cifar(_CORRECTED) - _cifar(_PLAIN), at_least=0),
    'la-37': _least(
        _theory('unequal steps: bias at η 10^-4 over 10^-2 (≥ 0.9)'), 0.9
    ),
    'la-38': _least(
        claims.worst(
            _theory('different P_i: bias at η 10^-4 over 10^-2 (≥ 0.9)') - 0.9,
            0.05 - _theory('one P for all: bias at η 10^-4 over 10^-2 (≤ 0.05)'),
        ),
        0,
    ),
    'la-39': _most(
        _theory('P_i = H_i⁻¹: distance to x̃ after one round (≤ −10)'), -10
    ),
    'la-40': _most(_theory('one local step: log10 of bias (≤ −12)'), -12),
    'la-41': _least(
        claims.worst(
            _theory('AdaGrad contracts more than SGD: ln h − ln h at k 50 (≥ 0)'),
            _theory('Adam contracts more than SGD: ln h − ln h at k 50 (≥ 0)'),
            -12
            - _theory('SGD: log10 |h(k) − (1 − η μ)^2k|, η 0.1, k 20 (≤ −12)'),
        ),
        0,
    ),
    'la-42': _most(
        _theory('local correction, any P_i: bias at η 0.001 over 0.1 (≤ 0.05)'),
        0.05,
    ),
}

NO_RULE = {
    'la-31': 'no table counts the bytes of restarting against FedAvg’s',
}
