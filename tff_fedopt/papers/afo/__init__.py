"""The tables and figures of Adaptive Federated Optimization (AFO)."""

import functools

from tff_fedopt.papers import scales
from tff_fedopt.papers.afo import quick
from tff_fedopt.papers.afo import settings
from tff_fedopt.tables import spec

_CITATION = (
    'Reddi et al., Adaptive Federated Optimization, ICLR 2021,'
    ' arXiv:2003.00295'
)

_FORM_NOTE = (
    "form=code: the published rates were tuned with the authors' code, so the"
    ' adaptive servers follow it (second-moment decay 0.999, accumulators'
    ' start at 0, Adam and Yogi bias-corrected). --form=paper follows'
    ' Algorithm 2 (0.99, start at τ², no correction).'
)
_SCAFFOLD = 'SCAFFOLD'
_SCAFFOLD_NOTE = (
    'SCAFFOLD: option II, clients weighted equally, with the rates of FedAvg;'
    ' its own rates and its numbers are not published.'
)
_WEIGHT_NOTE = (
    'Clients are weighted by their examples; on Shakespeare and SO NWP by'
    ' their tokens that are not padding.'
)


def _setting(profile, task_label, hyperparameters, source, method, **changes):
  scale = scales.scale(task_label, profile)
  return spec.Setting(**{
      'task': settings.TASKS[task_label],
      'algorithm': settings.METHODS[method],
      'hyperparameters': hyperparameters,
      'source': source,
      **vars(scale),
      **changes,
  })


def _tuned(profile, task_label, method):
  if profile == 'quick':
    return quick.tuned(task_label, method)
  return settings.tuned(task_label, method)


def _tuned_setting(profile, form, task_label, method, **extra):
  client, server, tau, source = _tuned(profile, task_label, method)
  values = settings.hyperparameters(
      task_label, method, form, client, server, tau
  )
  return _setting(
      profile, task_label, {**values, **extra}, source, method, label='tuned'
  )


def _scaffold_setting(profile, task_label):
  client, server, _, source = _tuned(profile, task_label, 'FedAvg')
  values = {
      'client_learning_rate': 10.0**client,
      'server_learning_rate': 10.0**server,
      'client_weighting': 'uniform',
      'option': 2,
  }
  return _setting(
      profile,
      task_label,
      values,
      f"FedAvg's rates: {source}",
      'FedAvg',
      algorithm='scaffold',
      label='rates of FedAvg',
  )


def _main(profile, form):
  cells = []
  for task in settings.TASKS:
    for method in settings.METHODS:
      chosen = _tuned_setting(profile, form, task, method)
      cells.append(spec.Cell(task, method, [chosen]))
    chosen = _scaffold_setting(profile, task)
    cells.append(spec.Cell(task, _SCAFFOLD, [chosen]))
  return cells


def _grid(profile, task_label):
  """The (η_l, η) grid of a task: the published one, thinned out if not."""
  client, server = settings.published_grid(task_label)
  if profile == 'paper':
    return client, server
  if profile == 'small':
    return client[1::2], server[1::2]
  return quick.GRIDS[task_label]


def _grid_tasks(profile):
  # The figure of the main text is on SO NWP; the others are an appendix.
  return {
      'quick': ('SO LR',),
      'small': ('SO NWP', 'SO LR'),
      'paper': tuple(settings.TASKS),
  }[profile]


def _grid_setting(profile, form, task_label, method, client, server, tau):
  values = settings.hyperparameters(
      task_label, method, form, client, server, tau
  )
  return _setting(
      profile,
      task_label,
      values,
      'grid of the appendix' if profile == 'paper' else 'part of the grid',
      method,
      label=f'log10 client rate {client:g}, server rate {server:g}',
  )


def _lr_grid(profile, form):
  return [
      spec.Cell(
          f'{server:g}',
          f'{client:g}',
          [_grid_setting(profile, form, task, method, client, server, -3)],
          panel=f'{task}, {method}',
      )
      for task in _grid_tasks(profile)
      for method in settings.METHODS
      for server in reversed(_grid(profile, task)[1])
      for client in _grid(profile, task)[0]
  ]


def _tau(profile, form):
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
  return [
      _setting(
          profile,
          'EMNIST CR',
          {**shared, 'client_learning_rate': 10.0**rate},
          'ours: three rates, the published ones are unknown',
          'FedAvg',
          label=f'{optimizer}, log10 rate {rate:g}',
          cohort_size=1,
          batch_size=32,
          task_options={'pooled': True},
          rounds=_CENTRALIZED_ROUNDS[profile],
      )
      for rate in rates
  ]


def _lr_decay(profile, form):
  task = 'EMNIST CR'
  rounds = scales.scale(task, profile).rounds
  # A third of the published 1500 rounds is the published 500.
  schedule = f'exponential:0.1:{max(1, rounds // 3)}'
  cells = [
      spec.Cell('Centralized', method, _centralized(profile, form, method))
      for method in settings.METHODS
  ]
  for row, extra in (
      ('Constant', {}),
      ('ExpDecay', {'client_learning_rate_schedule': schedule}),
  ):
    cells += [
        spec.Cell(
            row,
            method,
            [_tuned_setting(profile, form, task, method, **extra)],
        )
        for method in settings.METHODS
    ]
  return cells


_table = functools.partial(
    spec.TableSpec,
    paper='AFO',
    form='code',
    reduction=scales.LAST,
    seeds=scales.ONE_SEED,
)

TABLES = (
    _table(
        id='afo_main',
        title='Seven tasks, five server optimizers and SCAFFOLD',
        citation=f'{_CITATION}, main results table',
        shows=(
            'adaptive servers match or beat FedAvg and FedAvgM, by far on'
            ' Stack Overflow'
        ),
        kind='table',
        row_header='Task',
        column_header='Method',
        build=_main,
        bold_within=0.005,
        estimates={
            'quick': '10 min',
            'small': 'hours',
            'paper': 'weeks',
        },
        notes=(_FORM_NOTE, _WEIGHT_NOTE, _SCAFFOLD_NOTE),
        check_rows=('SO LR',),
    ),
    _table(
        id='afo_lr_grid',
        title='Validation metric over client and server rates, τ = 10^-3',
        citation=f'{_CITATION}, heat maps of the main text and the appendix',
        shows=(
            'which pairs of rates work: a triangle for FedAvg and FedAvgM, a'
            ' rectangle for the adaptive servers'
        ),
        kind='heatmap',
        row_header='log10 server rate',
        column_header='log10 client rate',
        build=_lr_grid,
        estimates={'quick': '5 min', 'small': 'days', 'paper': 'months'},
        notes=(_FORM_NOTE, _WEIGHT_NOTE),
    ),
    _table(
        id='afo_tau',
        title='Best validation metric for each τ, rates tuned anew',
        citation=f'{_CITATION}, robustness to τ',
        shows='the adaptive servers hardly depend on τ; 10^-3 is a good choice',
        kind='sensitivity',
        row_header='Method',
        column_header='log10 τ',
        build=_tau,
        estimates={'quick': '5 min', 'small': 'days', 'paper': 'months'},
        notes=(_FORM_NOTE, _WEIGHT_NOTE, spec.TUNE_NOTE),
    ),
    _table(
        id='afo_lr_decay',
        title='Client rate decay on EMNIST CR, and centralized training',
        citation=f'{_CITATION}, learning-rate decay table',
        shows='a decaying client rate narrows the gap to centralized training',
        kind='table',
        row_header='Setting',
        column_header='Method',
        build=_lr_decay,
        bold_within=0.005,
        estimates={'quick': '5 min', 'small': 'hours', 'paper': 'days'},
        notes=(
            _FORM_NOTE,
            spec.TUNE_NOTE,
            (
                'Centralized: one client holds the pooled data and runs the'
                ' same local loop with the optimizer of the column, whose'
                ' state starts anew each round; a round goes through 10 000'
                ' examples, drawn from all clients.'
            ),
        ),
    ),
)
