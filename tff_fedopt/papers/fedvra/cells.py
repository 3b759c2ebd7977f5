"""The cells of FedVRA's tables."""

from tff_fedopt.experiment import reductions
from tff_fedopt.papers.fedvra import settings
from tff_fedopt.problems import known_optimum
from tff_fedopt.tables import spec

_LOSS = spec.Quantity(
    'validation loss',
    column='validation/loss',
    higher_is_better=False,
    decimals=3,
)


def compare(profile, form):
  """Accuracy and loss in the end, and rounds to a loss."""
  del form
  cells = []
  for task in settings.compared(profile):
    target = settings.TARGETS[profile][task]
    reached = spec.Quantity(
        f'rounds to loss {target:g}',
        column='validation/loss',
        reduction=reductions.RoundsTo(target),
        higher_is_better=False,
        target_is_below=True,
        decimals=0,
        source=settings.OPEN,
    )
    cells += [
        spec.Cell(
            task,
            method,
            [settings.setting(profile, task, method)],
            panel=panel,
            quantity=quantity,
        )
        for panel, quantity in (
            ('Accuracy', None),
            ('Loss', _LOSS),
            ('Rounds', reached),
        )
        for method in settings.METHODS
    ]
  return sorted(cells, key=lambda cell: cell.panel)


def stepsizes(profile, form):
  """Accuracy over ρ, which sets a, and d."""
  del form
  task = settings.mapped(profile)
  return [
      spec.Cell(
          f'{rho:g}',
          d,
          [settings.steps_setting(profile, rho, step)],
          panel=f'{task}, {what}',
          quantity=quantity,
      )
      for what, quantity in (('accuracy', None), ('loss', _LOSS))
      for rho in settings.SHARES[profile]
      for d, step in settings.aggregation_steps(profile).items()
  ]


# FedAvg, and those that hold against differences between clients.
_SAMPLED = ('FedAvg', 'SCAFFOLD', 'FedDyn', 'FedVRA', 'FedVRA, d = 1/p')


def sampling(profile, form):
  """Accuracy and loss by how likely clients are to take part."""
  del form
  relative = spec.Quantity(
      'accuracy over equal sampling', '%', relation='gain', decimals=1
  )
  cells = [
      spec.Cell(
          likely,
          column,
          [settings.sampled_setting(profile, likely, column)],
          panel=panel,
          quantity=quantity,
      )
      for panel, quantity in (('Accuracy', None), ('Loss', _LOSS))
      for likely in settings.SAMPLING
      for column in _SAMPLED
  ]
  return cells + [
      spec.Cell(
          'unequal',
          column,
          [settings.sampled_setting(profile, 'unequal', column)],
          panel='Change',
          quantity=relative,
          baseline=[settings.sampled_setting(profile, 'equal', column)],
      )
      for column in _SAMPLED
  ]


_TOLERATED = {
    'one step': ('one', 'all'),
    'unequal steps': ('unequal', 'all'),
    'unequal steps and sampling': ('unequal', 'unequal'),
}


def table1(profile, form):
  """What is sent, what is kept, and what is tolerated."""
  del form
  cells = []
  for way in ('up', 'down'):
    quantity = spec.Quantity(
        f'sent {way}',
        'bytes',
        column=f'bytes_{way}',
        reduction=reductions.At(1),
        higher_is_better=False,
        decimals=0,
        source=settings.OPEN,
    )
    cells += [
        spec.Cell(
            f'sent {way}',
            method,
            [settings.setting(profile, 'EMNIST CR', method, rounds=1)],
            quantity=quantity,
        )
        for method in settings.METHODS
    ]
  kept = spec.Quantity('kept at a client', 'models', higher_is_better=False)
  cells += [
      _measured('kept', method, known_optimum.stored_models, kept)
      for method in settings.METHODS
  ]
  return cells + [
      _remaining(row, method, 'quadratics', steps, sampling)
      for row, (steps, sampling) in _TOLERATED.items()
      for method in settings.METHODS
  ]


_DISTANCE = spec.Quantity(
    'distance to the optimum',
    'log10',
    higher_is_better=False,
    decimals=2,
)


def _remaining(row, method, problem, steps, sampling, panel=''):
  return _measured(
      row,
      method,
      known_optimum.remaining_distance,
      _DISTANCE,
      panel,
      problem=problem,
      steps=steps,
      sampling=sampling,
      rounds=settings.KNOWN_ROUNDS,
  )


def _measured(
    row, method, function, quantity, panel='', problem='quadratics', **arguments
):
  algorithm, hyperparameters = settings.on_known(method)
  arguments.update(problem=problem, algorithm=algorithm, **hyperparameters)
  measure = spec.Measure(function, arguments, settings.KNOWN_SOURCE)
  return spec.Cell(row, method, (), panel, quantity, measure=measure)


def semisupervised(profile, form):
  """Clients with all, a tenth and none of their labels; no labels at all."""
  del form
  cells = [
      spec.Cell(
          task,
          label,
          [settings.semisupervised(profile, task, label)],
          panel='Labels of some',
      )
      for task in settings.TASKS
      for label in settings.SEMISUPERVISED
  ]
  return cells + [
      _remaining('k-means', method, 'kmeans', 'unequal', 'unequal', 'No labels')
      for method in ('FedAvg', 'FedVRA')
  ]
