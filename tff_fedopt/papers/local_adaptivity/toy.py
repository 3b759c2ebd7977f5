"""The toy problem of Local Adaptivity's first figure.

The published problem is unknown but for its form; this stand-in shows what the
paper says of it: a restarted AdaGrad is soon near the optimum, but ends beside
it, however small its rate; a correction removes that bias.
"""

import numpy as np

from tasks import source
from tff_fedopt.problems import quadratics
from tff_fedopt.tables import spec

PROBLEM = quadratics.Problem(
    matrices=[[[10.0, 0.0], [0.0, 0.1]], [[4.0, 0.0], [0.0, 0.4]]],
    minimisers=[[1.0, 1.0], [-1.0, -1.0]],
    start=[3.0, 3.0],
    steps=[10, 10],
)
ROUNDS = 100

_ADAGRAD = {
    'form': 'paper',
    'client_optimizer': 'adagrad',
    'client_epsilon': 1e-6,
    'client_initial_accumulator': 0.0,
}
_LOCAL = {**_ADAGRAD, 'correction': 'local', 'server_learning_rate': 0.2}
_GLOBAL = {**_ADAGRAD, 'correction': 'global'}
# Column -> hyperparameters; everything else is FedAvg, server rate 1.
RUNS = {
    'FedAvg, η 0.15': {'client_learning_rate': 0.15},
    'FedAvg, η 0.03': {'client_learning_rate': 0.03},
    'AdaGrad, η 0.1': {**_ADAGRAD, 'client_learning_rate': 0.1},
    'AdaGrad, η 0.03': {**_ADAGRAD, 'client_learning_rate': 0.03},
    'AdaGrad + local, η 0.03': {**_LOCAL, 'client_learning_rate': 0.03},
    'AdaGrad + global, η 0.1': {**_GLOBAL, 'client_learning_rate': 0.1},
    'AdaGrad + global, η 0.03': {**_GLOBAL, 'client_learning_rate': 0.03},
}

_SOURCE = source.guessed('the published problem, rates and steps are unknown')
_DISTANCE = spec.Quantity(
    'distance to the optimum',
    higher_is_better=False,
    decimals=3,
    logarithmic=True,
)
_COUNT = spec.Quantity('rounds', higher_is_better=False, decimals=0)


def distance(
    problem: quadratics.Problem, hyperparameters, rounds: int
) -> np.ndarray:
  """Returns ‖x − x*‖ before the first and after every round."""
  x = quadratics.path(problem, 'fedavg', hyperparameters, rounds)
  return np.linalg.norm(x - problem.optimum, axis=-1)


def _final(seed, problem, hyperparameters, rounds):
  """The last distance; its curve, and the coordinates of x for `surface`."""
  del seed  # Nothing is random.
  problem = quadratics.Problem(**problem)
  values = distance(problem, hyperparameters, rounds)
  x = quadratics.path(problem, 'fedavg', hyperparameters, rounds)
  return spec.Measured(
      values[-1], (list(range(rounds + 1)), values.tolist(), *x.T.tolist())
  )


def _reached(seed, problem, hyperparameters, rounds, below):
  del seed
  values = distance(quadratics.Problem(**problem), hyperparameters, rounds)
  there = np.flatnonzero(values < below)
  return spec.Measured(there[0] if there.size else float('inf'))


def cells(profile: str, form: str) -> list[spec.Cell]:
  """Returns the cells of the table, the same in every profile and form."""
  del profile, form
  result = []
  for row, quantity, function, more in (
      ('To distance 1', _COUNT, _reached, {'below': 1.0}),
      ('To distance 0.2', _COUNT, _reached, {'below': 0.2}),
      (f'After {ROUNDS} rounds', _DISTANCE, _final, {}),
  ):
    for column, hyperparameters in RUNS.items():
      arguments = {
          'problem': PROBLEM.to_json(),
          'hyperparameters': hyperparameters,
          'rounds': ROUNDS,
          **more,
      }
      measure = spec.Measure(function, arguments, _SOURCE)
      result.append(
          spec.Cell(row, column, quantity=quantity, measure=measure)
      )
  return result


def surface(result):
  """Draws the loss, the minimisers, and the way of three runs.

  Returns:
    A figure; None if no way was measured.
  """
  from matplotlib import figure as figure_lib

  ways = {
      cell.cell.column: cell.curves[0][2:]
      for cell in result.cells
      if cell.curves and cell.curves[0][2:]
  }
  if not ways:
    return None
  figure = figure_lib.Figure(figsize=(4.2, 4.2), layout='constrained')
  axis = figure.subplots()
  grid = np.stack(
      np.meshgrid(np.linspace(-2, 3.5, 120), np.linspace(-2, 3.5, 120)), -1
  )
  levels = np.geomspace(0.05, 60, 14)
  axis.contour(
      *np.moveaxis(grid, -1, 0),
      PROBLEM.loss(grid) - PROBLEM.loss(PROBLEM.optimum),
      levels=levels,
      colors='0.75',
      linewidths=0.6,
  )
  for name, line, marker, grey in (
      ('FedAvg, η 0.03', '--', 's', '0.0'),
      ('AdaGrad, η 0.1', '-', 'o', '0.5'),
      ('AdaGrad + global, η 0.1', ':', '^', '0.0'),
  ):
    if name not in ways:
      continue
    axis.plot(
        *ways[name],
        linestyle=line,
        marker=marker,
        markersize=3,
        markevery=3,
        color=grey,
        label=name,
    )
  axis.plot(
      *np.transpose(PROBLEM.minimisers), 'kx', label='clients’ minimisers'
  )
  axis.plot(*PROBLEM.optimum, 'k*', markersize=11, label='optimum')
  axis.legend(fontsize=7)
  axis.set_xlabel('$x_1$', fontsize=8)
  axis.set_ylabel('$x_2$', fontsize=8)
  return figure
