"""The cells of AFO's tables."""

from tasks import source
from tff_fedopt.papers.afo import quick
from tff_fedopt.papers.afo import settings
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
    "the defaults of the authors' later trainer: the published values are unknown"
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
