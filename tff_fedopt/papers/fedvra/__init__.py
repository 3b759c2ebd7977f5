"""The tables and figures of FedVRA."""

import functools

from tff_fedopt.papers import scales
from tff_fedopt.papers.fedvra import settings
from tff_fedopt.problems import known_optimum
from tff_fedopt.tables import spec

_CITATION = (
    'Wang et al., Beyond ADMM: A Unified Client-variance-reduced Adaptive'
    ' Federated Learning Framework'
)

_OPEN_NOTE = (
    "The paper's data sets, models and values could not be found: those here"
    ' are ours, in every profile.'
)
_STEPS_NOTE = (
    'Heterogeneous local updates: in each round each client takes 1 to 9'
    ' local steps, drawn at random; all methods the same ones.'
)
_LOSS = spec.Quantity(
    'validation loss',
    column='validation/loss',
    higher_is_better=False,
    decimals=3,
)


def _compare(profile, form):
  """Accuracy and loss in the end, and rounds to a loss."""
  del form
  cells = []
  for task in settings.compared(profile):
    target = settings.TARGETS[profile][task]
    reached = spec.Quantity(
        f'rounds to loss {target:g}',
        column='validation/loss',
        reduction=f'rounds_to:{target:g}',
        higher_is_better=False,
        target_is_below=True,
        decimals=0,
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


def _stepsizes(profile, form):
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


_TOLERATED = {
    'one step': ('one', 'all'),
    'unequal steps': ('unequal', 'all'),
    'unequal steps and sampling': ('unequal', 'unequal'),
}


def _table1(profile, form):
  """What is sent, what is kept, and what is tolerated."""
  del form
  cells = []
  for way in ('up', 'down'):
    quantity = spec.Quantity(
        f'sent {way}',
        'bytes',
        column=f'bytes_{way}',
        reduction='at:1',
        higher_is_better=False,
        decimals=0,
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


def _semisupervised(profile, form):
  """Clients with all, a tenth and none of their labels; and no labels at all."""
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


_table = functools.partial(
    spec.TableSpec,
    paper='FedVRA',
    form='paper',
    forms=('paper',),
    reduction=scales.in_every_profile('last:10'),
    seeds=scales.in_every_profile((0,)),
)

TABLES = (
    _table(
        id='vra_compare',
        title='FedVRA and other methods under heterogeneous local updates',
        citation=f'{_CITATION}, Figure 3',
        shows='how fast each method learns when clients differ',
        kind='curves',
        row_header='Task',
        column_header='Method',
        build=_compare,
        estimates=dict(quick='5 min', small='hours', paper='days'),
        notes=(_OPEN_NOTE, _STEPS_NOTE),
        check_rows=('EMNIST CR',),
    ),
    _table(
        id='vra_stepsizes',
        title='The dual step a and the aggregation step d of FedVRA',
        citation=f'{_CITATION}, Figure 2',
        shows='larger a and d converge faster, within limits',
        kind='heatmap',
        row_header='ρ = a γ η Q̃',
        column_header='d',
        build=_stepsizes,
        estimates=dict(quick='10 min', small='hours', paper='days'),
        notes=(
            _OPEN_NOTE,
            _STEPS_NOTE,
            (
                'a is set from ρ for each client in each round; ρ = 0 with'
                ' d = N/m is FedProx.'
            ),
        ),
        check_rows=('0.3',),
    ),
    _table(
        id='vra_table1',
        title='What methods send, keep and tolerate',
        citation=f'{_CITATION}, Table I',
        shows=(
            'FedVRA sends one vector and reaches the optimum whatever the'
            ' local steps and the sampling'
        ),
        kind='measured',
        row_header='Property',
        column_header='Method',
        build=_table1,
        estimates=dict(quick='5 min', small='10 min', paper='10 min'),
        notes=(
            (
                'Sent: bytes of one client in one round, read off the types of'
                ' what is sent, for the model of EMNIST CR.'
            ),
            (
                'The last three rows: log10 of the distance to the optimum'
                f' after {settings.KNOWN_ROUNDS} rounds, relative to that'
                ' of the first model, on random quadratics with full gradients.'
            ),
            "The paper's rates of convergence cannot be measured.",
        ),
        check_rows=('kept', 'unequal steps and sampling'),
    ),
    _table(
        id='vra_semisupervised',
        title='Clients without labels: model and label probabilities together',
        citation=f'{_CITATION}, its semi-supervised extension',
        shows=(
            'what label probabilities as a second block of variables add to'
            ' the labels of some clients'
        ),
        kind='curves',
        row_header='Data',
        column_header='Method',
        build=_semisupervised,
        estimates=dict(quick='5 min', small='hours', paper='days'),
        notes=(
            (
                "The paper's algorithm for two blocks could not be found: this"
                ' one is derived from its problem class, see DEVIATIONS.md.'
            ),
            (
                'Of the clients a third knows all its labels, a third a tenth'
                ' of them, a third none; all methods the same. labelled: the'
                ' other examples are ignored; argmax: they have the label that'
                " the server's model gives them; block: label probabilities"
                ' in the simplex. Such an example counts ν = 0.03 of one with'
                ' its label: with ν = 1 nothing is learned in so few rounds.'
            ),
            (
                'No labels: log10 of the distance of the centroids to the'
                f' means of the clusters after {settings.KNOWN_ROUNDS} rounds,'
                ' relative to that of the first centroids.'
            ),
        ),
        check_rows=('k-means',),
    ),
)
