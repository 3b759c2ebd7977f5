"""The cells of AFO's tables."""

import dataclasses

import tasks
from tasks import source
from tff_fedopt.experiment import reductions
from tff_fedopt.papers.afo import quick
from tff_fedopt.papers.afo import settings
from tff_fedopt.tables import rate_grids
from tff_fedopt.tables import spec

_SCAFFOLD = 'SCAFFOLD'


def _setting(
    profile, form, task_label, hyperparameters, rates, method, **changes
):
  """A setting; `rates` is where its rates and τ come from."""
  return settings.scale(task_label, profile).setting(**{
      'task': settings.TASKS[task_label],
      'algorithm': settings.METHODS[method],
      'hyperparameters': hyperparameters,
      'source': rates,
      **changes,
      'sources': {
          **settings.sources(form, rates), **changes.get('sources', {})
      },
  })


def _tuned(profile, task_label, method):
  if profile == 'quick':
    return quick.tuned(task_label, method)
  return settings.tuned(task_label, method)


def _tuned_setting(profile, form, task_label, method, schedule=None):
  client, server, tau, rates = _tuned(profile, task_label, method)
  values = settings.hyperparameters(
      task_label, method, form, client, server, tau
  )
  sources = {}
  if schedule:
    values['client_learning_rate_schedule'] = schedule
    sources['client_learning_rate_schedule'] = source.published(
        'Adaptive Federated Optimization, learning-rate decay table'
    )
  return _setting(
      profile,
      form,
      task_label,
      values,
      rates,
      method,
      label='tuned',
      sources=sources,
  )


def _scaffold_setting(profile, task_label):
  client, server, *_ = _tuned(profile, task_label, 'FedAvg')
  values = {
      'client_learning_rate': 10.0**client,
      'server_learning_rate': 10.0**server,
      'client_weighting': 'uniform',
      'option': 2,
  }
  unknown = source.guessed("the authors' values are unknown")
  return _setting(
      profile,
      'paper',
      task_label,
      values,
      source.guessed("the rates of FedAvg: SCAFFOLD's are unknown"),
      'FedAvg',
      algorithm='scaffold',
      label='rates of FedAvg',
      sources={'option': unknown, 'client_weighting': unknown},
  )


def main(profile, form):
  """The main table: tasks and methods, and SCAFFOLD."""
  cells = []
  for task in settings.TASKS:
    for method in settings.METHODS:
      chosen = _tuned_setting(profile, form, task, method)
      cells.append(spec.Cell(task, method, [chosen]))
    chosen = _scaffold_setting(profile, task)
    cells.append(spec.Cell(task, _SCAFFOLD, [chosen]))
  return cells


def _grid(profile, task_label):
  """The (η_l, η) grid of a task: the published one, thinned out if not.

  Thinned out it keeps the tuned rates of every method.
  """
  if profile == 'quick':
    return quick.GRIDS[task_label]
  grids = settings.published_grid(task_label)
  if profile == 'paper':
    return grids
  tuned = [settings.tuned(task_label, method) for method in settings.METHODS]
  return tuple(
      sorted({*grid[1::2], *(rates[k] for rates in tuned)})
      for k, grid in enumerate(grids)
  )


def _grid_tasks(profile):
  # The figure of the main text is on SO NWP; the others are an appendix.
  return {
      'quick': ('SO LR',),
      'small': ('SO NWP', 'SO LR'),
      'paper': tuple(settings.TASKS),
  }[profile]


_GRID = source.guessed(
    'half decades around every tuned value: of the grids of the appendix only'
    ' the range of τ could be read'
)


def _grid_setting(profile, form, task_label, method, client, server, tau):
  values = settings.hyperparameters(
      task_label, method, form, client, server, tau
  )
  return _setting(
      profile,
      form,
      task_label,
      values,
      _GRID,
      method,
      label=f'log10 client rate {client:g}, server rate {server:g}',
  )


# log10 of the τ of the heat maps.
MAP_TAU = -3


def lr_grid(profile, form):
  """The heat maps: pairs of rates."""
  return [
      spec.Cell(
          f'{server:g}',
          f'{client:g}',
          [
              _grid_setting(
                  profile, form, task, method, client, server, MAP_TAU
              )
          ],
          panel=f'{task}, {method}',
      )
      for task in _grid_tasks(profile)
      for method in settings.METHODS
      for server in reversed(_grid(profile, task)[1])
      for client in _grid(profile, task)[0]
  ]


def tau(profile, form):
  """The robustness to τ: rates tuned anew for each."""
  taus = (-5, -3, -1) if profile == 'quick' else (-5, -4, -3, -2, -1)
  return [
      spec.Cell(
          method,
          f'{tau:g}',
          [
              _grid_setting(profile, form, task, method, client, server, tau)
              for client in _grid(profile, task)[0]
              for server in _grid(profile, task)[1]
          ],
          panel=task,
      )
      for task in _grid_tasks(profile)
      for method in settings.ADAPTIVE
      for tau in taus
  ]


_TRAINER = source.guessed(
    "the defaults of the authors' later trainer: the published values are"
    " unknown"
)
_SERVER_DEFAULTS = source.guessed(
    "what the authors' list gives server optimizers: of these it says nothing"
)

# The optimizer that trains the pooled data in the column of each method, and
# the rates tried: the paper names the optimizers but not the rates.
_CENTRALIZED = {
    'FedAdagrad': ('adagrad', (-2.5, -2, -1.5)),
    'FedAdam': ('adam', (-3.5, -3, -2.5)),
    'FedYogi': ('yogi', (-3.5, -3, -2.5)),
    'FedAvgM': ('momentum', (-2.5, -2, -1.5)),
    'FedAvg': ('sgd', (-1.5, -1, -0.5)),
}


# A round goes through 10 000 examples: all in the quick profile; 3359 rounds
# are 50 epochs of the published 671 585.
_CENTRALIZED_ROUNDS = {'quick': 10, 'small': 20, 'paper': 3359}


def _centralized(profile, form, method):
  """Pooled data held by one client: its local loop is centralized training."""
  optimizer, rates = _CENTRALIZED[method]
  shared = {
      'form': form,
      'server_learning_rate': 1.0,
      'client_weighting': 'examples',
      'client_optimizer': optimizer,
  }
  if optimizer == 'momentum':
    shared['client_momentum'] = 0.9
  if optimizer in ('adagrad', 'adam', 'yogi'):
    # As the server optimizers of the authors' list; it says nothing of these.
    shared.update(client_epsilon=1e-3, client_initial_accumulator=0.0)
  if optimizer in ('adam', 'yogi'):
    shared.update(
        client_beta1=0.9,
        client_beta2=0.999,
        client_bias_correction=form == 'code',
    )
  return [
      _setting(
          profile,
          form,
          'EMNIST CR',
          {**shared, 'client_learning_rate': 10.0**rate},
          source.tuned(f'rate {quick.listed(rates)}, log10'),
          'FedAvg',
          label=f'{optimizer}, log10 rate {rate:g}',
          cohort_size=1,
          batch_size=32,
          task_options={'pooled': True},
          rounds=_CENTRALIZED_ROUNDS[profile],
          sources={
              **dict.fromkeys(
                  (
                      'server_learning_rate',
                      'cohort_size',
                      'client_optimizer',
                      'client_weighting',
                      'task option pooled',
                  ),
                  source.published(
                      'Adaptive Federated Optimization, learning-rate decay'
                      ' table: the optimizer on pooled data'
                  ),
              ),
              'rounds': _TRAINER if profile == 'paper' else source.REDUCED,
              'batch_size': _TRAINER,
              **dict.fromkeys(
                  (
                      'client_epsilon',
                      'client_initial_accumulator',
                      'client_momentum',
                      'client_beta1',
                      'client_beta2',
                      'client_bias_correction',
                  ),
                  _SERVER_DEFAULTS,
              ),
          },
      )
      for rate in rates
  ]


def lr_decay(profile, form):
  """The table of decay on EMNIST CR, with centralized training."""
  task = 'EMNIST CR'
  rounds = settings.rounds(task, profile)
  # A third of the published 1500 rounds is the published 500.
  schedule = f'exponential:0.1:{max(1, rounds // 3)}'
  centralized = {
      method: _centralized(profile, form, method) for method in settings.METHODS
  }
  # The text compares with the best of them.
  centralized['best'] = [s for tried in centralized.values() for s in tried]
  cells = [
      spec.Cell('Centralized', column, tried)
      for column, tried in centralized.items()
  ]
  for row, decay in (('Constant', None), ('ExpDecay', schedule)):
    cells += [
        spec.Cell(
            row,
            method,
            [_tuned_setting(profile, form, task, method, decay)],
        )
        for method in settings.METHODS
    ]
  return cells


_STACKOVERFLOW = ('SO NWP', 'SO LR')
# Where validation is on a part of the test split: all of it.
_WHOLE_SPLIT = 'validation_examples'
_WHOLE_SOURCES = dict.fromkeys(
    ('evaluate_every', 'validation_examples', f'task option {_WHOLE_SPLIT}'),
    source.OFFICIAL,
)


def test_sets(profile, form):
  """Stack Overflow's whole test split, once, after the last round."""
  cells = []
  for task in _STACKOVERFLOW:
    info = tasks.info(settings.TASKS[task])
    quantity = spec.Quantity(
        f'test {info.metric.label}',
        info.metric.unit,
        column=f'validation/{info.metric.name}',
        reduction=reductions.Last(1),
        source=source.OFFICIAL,
    )
    for method in settings.METHODS:
      tuned = _tuned_setting(profile, form, task, method)
      chosen = dataclasses.replace(
          tuned,
          sources={**tuned.sources, **_WHOLE_SOURCES},
          evaluate_every=settings.rounds(task, profile),
          validation_examples=None,
          task_options={
              **tuned.task_options,
              _WHOLE_SPLIT: info.published.test_examples,
          },
      )
      cells.append(spec.Cell(task, method, [chosen], quantity=quantity))
  return cells


# Clients' rates and servers' of the quick relation: whole decades, wide enough
# for the best pair to lie inside.
_QUICK_RELATION = ((-1, 0, 1, 2, 3), (-1.5, -0.5, 0.5, 1.5))
_RELATION = source.guessed(
    'appendix E.4 is known by its title only, on the relation between client'
    ' and server learning rates'
)
_MEASURES = source.guessed('the paper shows it in figures, without a number')
_BEST_SERVER = spec.Quantity(
    'best log10 server rate',
    of_grid=rate_grids.BestServer(),
    source=_RELATION,
)
# Columns of what is measured on each grid.
_OF_GRID = {
    column: spec.Quantity(
        name,
        higher_is_better=name in ('slope', 'share'),
        decimals=2,
        of_grid=rule,
        source=_MEASURES,
    )
    for column, name, rule in (
        ('slope', 'slope', rate_grids.Slope('slope')),
        ('its standard error', 'standard error', rate_grids.Slope('error')),
        ('good pairs', 'share', rate_grids.Share(0.8)),
        ('fall at fixed η η_l', 'fall along η η_l', rate_grids.Fall('product')),
        ('fall at fixed η', 'fall along η', rate_grids.Fall('server')),
    )
}


def rate_relation(profile, form):
  """The best server rate of each client rate, and how flat the metric is."""
  if profile == 'quick':
    grids = {'SO LR': _QUICK_RELATION}
    changes = {'rounds': 20, 'evaluate_every': 5}
  else:
    grids = {task: _grid(profile, task) for task in _grid_tasks(profile)}
    changes = {}
  maps, best, measures = [], [], []
  for task, (clients, servers) in grids.items():
    for method in settings.METHODS:
      points = {
          (client, server): dataclasses.replace(
              _grid_setting(profile, form, task, method, client, server, -3),
              **changes,
          )
          for server in reversed(servers)
          for client in clients
      }
      maps += [
          spec.Cell(
              f'{server:g}', f'{client:g}', [point], panel=f'{task}, {method}'
          )
          for (client, server), point in points.items()
      ]
      best += [
          spec.Cell(
              method,
              f'{client:g}',
              [points[client, server] for server in servers],
              panel=f'{task}, best server rate',
              quantity=_BEST_SERVER,
          )
          for client in clients
      ]
      measures += [
          spec.Cell(
              method,
              column,
              list(points.values()),
              panel=f'{task}, measures',
              quantity=quantity,
          )
          for column, quantity in _OF_GRID.items()
      ]
  return maps + best + measures


# Where FedAvg's end is known, 0.8 of it: of the published number in `paper`, of
# a run of ours in the others. Fractions, as the column has them.
_TARGETS = {
    'quick': {'SO NWP': 0.228, 'SO LR': 0.185},
    'small': {'SO LR': 0.125},
    'paper': {'SO NWP': 0.156, 'SO LR': 0.24},
}


def curves(profile, form):
  """Validation and training curves of every task and method."""
  validation = main(profile, form)
  cells = [
      dataclasses.replace(cell, panel='Validation') for cell in validation
  ]
  for cell in validation:
    metric = tasks.info(settings.TASKS[cell.row]).metric
    quantity = spec.Quantity(
        f'training {metric.label}',
        metric.unit,
        column=f'train/{metric.name}',
        higher_is_better=metric.higher_is_better,
    )
    cells.append(
        dataclasses.replace(cell, panel='Training', quantity=quantity)
    )
  for task, target in _TARGETS[profile].items():
    speedup = spec.Quantity(
        f'speed-up over FedAvg to {100 * target:g} %',
        'x',
        reduction=reductions.RoundsTo(target),
        relation='speedup',
        source=source.guessed('0.8 of what FedAvg ends with'),
    )
    cells += [
        spec.Cell(
            task,
            method,
            [_tuned_setting(profile, form, task, method)],
            panel='Speed-up',
            quantity=speedup,
            baseline=[_tuned_setting(profile, form, task, 'FedAvg')],
        )
        for method in settings.METHODS
    ]
  return cells


# 1/√(1 + t) starts to fall at once, so that a first rate is tuned for it: the
# tuned constant one times these, in decades.
_RAISED = (0, 0.5, 1)


# Steps that fall pay only once a constant one has done its work, which takes
# more rounds than the other quick tables have.
_QUICK_SCHEDULES = {'rounds': 100, 'evaluate_every': 5}


def schedules(profile, form):
  """Client rates that fall as 1/√t or in steps, beside a constant one."""
  task = 'EMNIST CR'
  is_quick = profile == 'quick'
  methods = ('FedAdam', 'FedAvg') if is_quick else tuple(settings.METHODS)
  changes = _QUICK_SCHEDULES if is_quick else {}
  rounds = changes.get('rounds') or settings.rounds(task, profile)
  cells = []
  for column, schedule, raised in (
      ('Constant', None, (0,)),
      ('InvSqrt', 'inverse_sqrt:1:1', _RAISED),
      # A third of the published 1500 rounds is the published 500.
      ('ExpDecay', f'exponential:0.1:{max(1, rounds // 3)}', (0,)),
  ):
    for method in methods:
      tuned = _tuned_setting(profile, form, task, method, schedule)
      tuned = dataclasses.replace(tuned, **changes)
      candidates = [_raised(tuned, decades) for decades in raised]
      cells.append(spec.Cell(method, column, candidates))
  return sorted(cells, key=lambda cell: methods.index(cell.row))


_INVERSE_SQRT = source.guessed(
    'the paper says 1/√t, not where it begins'
)


def _raised(setting, decades):
  """The setting with its client rate so many decades higher."""
  values, sources = dict(setting.hyperparameters), dict(setting.sources)
  values['client_learning_rate'] *= 10.0**decades
  if values.get('client_learning_rate_schedule') == 'inverse_sqrt:1:1':
    sources['client_learning_rate_schedule'] = _INVERSE_SQRT
    sources['client_learning_rate'] = source.tuned(
        f'{quick.listed(_RAISED)} decades above the tuned constant rate'
    )
  return dataclasses.replace(
      setting,
      hyperparameters=values,
      sources=sources,
      label=f'client rate {decades:g} decades above the constant one',
  )
