"""Rates for the quick tasks of AFO's tables, tuned by us.

The published rates belong to the published models, data and round counts; the
quick profile shrinks all three, so it has its own. All methods of a task were
tuned on the task's grid below with τ = 10^-3, cohorts of 10, one seed, and the
number of rounds below, by the mean training metric of the last rounds, as the
authors did.
"""

from collections.abc import Sequence
import dataclasses

from tasks import source as source_lib


@dataclasses.dataclass(frozen=True)
class _Tuning:
  """How a task was tuned, all numbers but the rounds as log10.

  Attributes:
    clients: The client rates tried.
    servers: The server rates tried.
    rounds: Rounds of each trial.
    best: Method -> (η_l, η) of the best trial.
  """

  clients: tuple[float, ...]
  servers: tuple[float, ...]
  rounds: int
  best: dict[str, tuple[float, float]]

  @property
  def source(self) -> source_lib.Source:
    return tuned_on(self.clients, self.servers, self.rounds)


def listed(numbers: Sequence[float]) -> str:
  """Returns the numbers as text."""
  return ', '.join(f'{n:g}' for n in numbers)


def tuned_on(
    clients: Sequence[float], servers: Sequence[float], rounds: int
) -> source_lib.Source:
  """Says as a setting's source which rates were tried, in log10."""
  return source_lib.tuned(
      f'client {listed(clients)} × server {listed(servers)}, {rounds} rounds'
  )


_TAU = -3.0


def _tuning(clients, servers, rounds, *best):
  methods = ('FedAdagrad', 'FedAdam', 'FedYogi', 'FedAvgM', 'FedAvg')
  return _Tuning(clients, servers, rounds, dict(zip(methods, best)))


_TUNED = {
    'CIFAR-10': _tuning(
        (-1,),
        (-1.5, -1, 0),
        25,
        (-1, -1.5),
        (-1, -1.5),
        (-1, -1),
        (-1, 0),
        (-1, 0),
    ),
    'CIFAR-100': _tuning(
        (-1,), (-1, 0), 20, (-1, -1), (-1, -1), (-1, -1), (-1, 0), (-1, -1)
    ),
    'EMNIST CR': _tuning(
        (-1, -0.5),
        (-1.5, 0),
        25,
        (-1, -1.5),
        (-1, -1.5),
        (-1, -1.5),
        (-1, 0),
        (-1, 0),
    ),
    'Shakespeare': _tuning(
        (0,),
        (-1.5, -1, -0.5, 0),
        30,
        (0, -0.5),
        (0, -1),
        (0, -1),
        (0, 0),
        (0, 0),
    ),
    'SO NWP': _tuning(
        (0, 0.5),
        (-0.75, -0.5, 0),
        40,
        (0, -0.5),
        (0, -0.5),
        (0, -0.5),
        (0, 0),
        (0, 0),
    ),
    'SO LR': _tuning(
        (1, 2),
        (-0.5, 0, 0.5),
        40,
        (2, 0.5),
        (2, 0.5),
        (2, 0.5),
        (1, -0.5),
        (1, 0),
    ),
    'EMNIST AE': _tuning(
        (0.5, 1),
        (-1.5, 0),
        25,
        (1, -1.5),
        (1, -1.5),
        (1, -1.5),
        (1, 0),
        (1, 0),
    ),
}

# The (η_l, η) grid of each task, also that of the quick heat maps.
GRIDS = {
    label: (tuning.clients, tuning.servers)
    for label, tuning in _TUNED.items()
}


def tuned(task_label: str, method: str):
  """Returns (η_l, η, τ, source) of a cell, as logarithms."""
  tuning = _TUNED[task_label]
  return (*tuning.best[method], _TAU, tuning.source)
