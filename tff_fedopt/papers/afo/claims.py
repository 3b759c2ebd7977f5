"""What AFO claims, as rules on the numbers of its tables."""

from tff_fedopt.tables import claims

_ADAPTIVE = ('FedAdagrad', 'FedAdam', 'FedYogi')
_OTHERS = ('FedAvgM', 'FedAvg')
_SERVERS = (*_ADAPTIVE, *_OTHERS)
_AE = 'EMNIST AE'
_TASKS = (
    'CIFAR-10',
    'CIFAR-100',
    'EMNIST CR',
    'Shakespeare',
    'SO NWP',
    'SO LR',
)
_MOMENTUM = ('CIFAR-10', 'CIFAR-100', 'SO NWP')
_CLIENT_RATES = ('1', '2')
_SERVER_RATES = ('-0.5', '0', '0.5')
_TAUS = ('-5', '-3', '-1')


def _raw(task, server):
  return claims.Cell(
      'afo_main', task, server, lower_is_better=task == _AE
  )


def _main(task, server):
  """The metric, larger where better."""
  cell = _raw(task, server)
  return -cell if task == _AE else cell


def _best(task, servers):
  return claims.best(*(_main(task, server) for server in servers))


def _worst(task, servers):
  return claims.worst(*(_main(task, server) for server in servers))


def _over(task, ours, theirs):
  """By how much the worst of ours is above the best of theirs."""
  return _worst(task, ours) - _best(task, theirs)


def _everywhere(against):
  return claims.least(
      (f'{task} {server}', _main(task, server) - _main(task, against))
      for task in (*_TASKS, _AE)
      for server in _ADAPTIVE
  )


def _relative(task):
  ours, theirs = _best(task, _ADAPTIVE), _best(task, _OTHERS)
  top = abs(claims.best(ours, theirs))
  return 100 * (ours - theirs) / top


def _decay(row, server):
  return claims.Cell('afo_lr_decay', row, server)


def _decays(row, servers):
  return [_decay(row, server) for server in servers]


def _share(server):
  """Which part of the grid is within 20 % of its best cell."""
  grid = [
      claims.Cell('afo_lr_grid', row, column, f'SO LR, {server}')
      for row in _SERVER_RATES
      for column in _CLIENT_RATES
  ]
  return claims.share(grid, 0.8)


def _slope(server):
  return claims.Cell(
      'afo_rate_relation', server, 'slope', 'SO LR, measures'
  )


def _tau(server, tau):
  return claims.Cell('afo_tau', server, tau, 'SO LR')


def _taus(server):
  return [_tau(server, tau) for tau in _TAUS]


def _theory(label):
  return claims.Cell('afo_theory', label, 'measured', 'Claims')


def _table9(row, column):
  return claims.Cell('init_table9', row, column)


def _nothing(value, at_least):
  return claims.Rule(value, at_least=at_least, noise='')


_EMNIST = 'EMNIST CR'
_CENTRAL, _CONSTANT, _EXP = 'Centralized', 'Constant', 'ExpDecay'
_ERRORS = {server: _raw(_AE, server) for server in _SERVERS}
_WORST_ADAM = claims.best(_ERRORS['FedAdam'], _ERRORS['FedYogi'])
_ADAMS = ('FedAdam', 'FedYogi')

RULES = {
    # The published bound is a tie of half a percent.
    'afo-01': claims.Rule(
        claims.least((task, _relative(task)) for task in (*_TASKS, _AE)),
        at_least=-0.5,
        noise='share of best',
    ),
    'afo-02': claims.Rule(_everywhere('FedAvg'), at_least=0),
    'afo-03': claims.Rule(_everywhere('FedAvgM'), at_least=0),
    'afo-04': claims.Rule(
        _over('SO LR', ('FedAdagrad',), ('FedAvg',)), at_least=30
    ),
    'afo-05': claims.Rule(_over('SO LR', _ADAPTIVE, _OTHERS), at_least=20),
    'afo-06': claims.Rule(
        _over('SO LR', ('FedAdagrad',), _SERVERS[1:]), at_least=0
    ),
    'afo-07': claims.Rule(_over('SO NWP', _ADAMS, ('FedAvg',)), at_least=5),
    'afo-08': claims.Rule(_over('SO NWP', _ADAMS, ('FedAvgM',)), at_least=0),
    'afo-09': claims.Rule(
        claims.least(
            (task, _over(task, _ADAMS, ('FedAdagrad',))) for task in _MOMENTUM
        ),
        at_least=0,
    ),
    'afo-10': claims.Rule(
        claims.least(
            (task, _over(task, ('FedAvgM',), ('FedAvg',)))
            for task in _MOMENTUM
        ),
        at_least=0,
    ),
    'afo-11': claims.Rule(_over('CIFAR-100', _ADAMS, ('FedAvg',)), at_least=5),
    'afo-12': claims.Rule(_over('CIFAR-100', _ADAMS, _OTHERS), at_least=3),
    'afo-13': claims.Rule(_over('CIFAR-10', _ADAMS, ('FedAvg',)), at_least=4),
    'afo-14': claims.Rule(
        _ERRORS['FedAvg'] / _WORST_ADAM - 4,
        at_least=0,
        noise='relative error',
    ),
    'afo-15': claims.Rule(
        1 - _WORST_ADAM / _ERRORS['FedAvgM'],
        at_least=0,
        noise='relative error',
    ),
    'afo-16': claims.Rule(
        _ERRORS['FedAdagrad'] / _ERRORS['FedAdam'] - 2,
        at_least=0,
        noise='relative error',
    ),
    'afo-17': claims.Rule(
        claims.spread(*(_main(_EMNIST, s) for s in _SERVERS)),
        at_most=1,
        rounds=150,
    ),
    'afo-18': claims.Rule(
        claims.spread(*(_main('Shakespeare', s) for s in _SERVERS)),
        at_most=1,
        rounds=120,
    ),
    'afo-19': claims.Rule(
        -claims.least(
            (t, -abs(_main(t, 'FedAdam') - _main(t, 'FedYogi')))
            for t in _TASKS
        ),
        at_most=1,
        noise='paired points',
    ),
    'afo-20': claims.Rule(
        claims.least(
            (task, _best(task, _ADAPTIVE) - _main(task, 'SCAFFOLD'))
            for task in (*_TASKS, _AE)
        ),
        at_least=0,
    ),
    'afo-21': _nothing(
        _theory('SCAFFOLD’s gain falls with participation: least fall (≥ 0)'),
        0,
    ),
    'afo-22': claims.Rule(
        claims.worst(*map(_share, _ADAPTIVE))
        - claims.best(*map(_share, _OTHERS)),
        at_least=0,
        noise='share of grid',
    ),
    'afo-23': claims.Rule(
        -_slope('FedAvg')
        - claims.best(*(abs(_slope(server)) for server in _ADAPTIVE)),
        at_least=0.5,
        noise='slope',
    ),
    'afo-24': claims.Rule(
        claims.best(
            *(
                1 - claims.worst(*_taus(s)) / claims.best(*_taus(s))
                for s in _ADAPTIVE
            )
        ),
        at_most=0.1,
        noise='tau spread',
    ),
    'afo-25': claims.Rule(
        claims.least(
            (s, _tau(s, '-3') / claims.best(*_taus(s)) - 0.95)
            for s in _ADAPTIVE
        ),
        at_least=0,
        noise='tau margin',
    ),
    'afo-26': claims.Rule(
        claims.least(
            (s, _decay(_EXP, s) - _decay(_CONSTANT, s)) for s in _SERVERS
        ),
        at_least=0,
        rounds=150,
    ),
    'afo-27': claims.Rule(
        claims.mean(
            *(
                (_decay(_EXP, s) - _decay(_CONSTANT, s))
                / (_decay(_CENTRAL, s) - _decay(_CONSTANT, s))
                for s in _SERVERS
            )
        ) - 0.1,
        at_least=0,
        noise='gap closed',
        rounds=150,
    ),
    'afo-28': claims.Rule(
        claims.least(
            (s, _decay(_CENTRAL, s) - _decay(_CONSTANT, s)) for s in _SERVERS
        ),
        at_least=2,
        rounds=150,
    ),
    'afo-29': claims.Rule(
        claims.worst(*_decays(_CONSTANT, _SERVERS[:4]))
        - _decay(_CONSTANT, 'FedAvg'),
        at_least=0,
        rounds=150,
    ),
    'afo-30': claims.Rule(
        _decay(_CONSTANT, 'FedAdam')
        - claims.best(
            *_decays(_CONSTANT, [s for s in _SERVERS if s != 'FedAdam'])
        ),
        at_least=0,
        rounds=150,
    ),
    'afo-31': claims.Rule(
        claims.spread(*_decays(_CENTRAL, _SERVERS)), at_most=0.5
    ),
    'afo-32': claims.Rule(
        _theory('FedOpt with SGD of rate 1 averages local models: distance (≤ −12)'),
        at_most=-12,
        noise='',
    ),
    'afo-33': _nothing(
        _theory('η_l ∝ 1/√t removes the bias of a constant η_l: ratio (≥ 10)'),
        10,
    ),
    'afo-34': _nothing(
        claims.worst(
            _theory('unequal clients drift with K: bias at K 20 over 2 (≥ 5)')
            - 5,
            -12
            - _theory('clients with one minimiser do not: log10 of bias at K 20 (≤ −12)'),
        ),
        0,
    ),
    'afo-35': _nothing(
        _theory('η 10 and η_l 0.003 have less bias than 1 and 0.03: ratio (≥ 3)'),
        3,
    ),
    'afo-36': claims.Rule(
        abs(
            _theory('linear speed-up: slope of the stationary error over m (−1 ± 0.2)')
            + 1
        ),
        at_most=0.2,
        noise='',
    ),
    'afo-37': claims.Rule(
        _table9('FedAdam', 'communication')
        - _table9('FedAvg', 'communication'),
        at_most=0,
        noise='',
    ),
    'afo-38': claims.Rule(
        _table9('FedAdam', 'storage') - _table9('FedAvg', 'storage'),
        at_most=0,
        noise='',
    ),
    'afo-39': _nothing(
        claims.worst(
            5
            - _theory('Pachinko: 80 % of a client’s images are in few coarse ones (≤ 5)'),
            _theory('Pachinko: fine labels in a coarse one of 20 images (≥ 4 of 5)')
            - 4,
            -_theory('Pachinko: images used twice (0)'),
        ),
        0,
    ),
    'afo-40': claims.Rule(
        claims.least(
            (task, claims.Cell('afo_curves', task, 'FedAdam', 'Speed-up') - 1)
            for task in ('SO NWP', 'SO LR')
        ),
        at_least=1,
        noise='rounds ratio',
    ),
    'afo-41': claims.Rule(
        claims.best(
            abs(_main('SO NWP', 'FedAdagrad') - _main('SO NWP', 'FedAvgM')),
            _main('SO NWP', 'FedAvg')
            - _worst('SO NWP', ('FedAdagrad', 'FedAvgM')),
        ),
        at_most=1,
    ),
}
