"""How long and how wide AFO's tasks run in the quick and small profiles.

The paper profile has no entry here: it is the published setting of each task.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import tasks
from tasks import task as task_lib
from tff_fedopt.papers.afo import settings


@dataclasses.dataclass(frozen=True)
class Scale:
  """Length and width of a run; None stands for the task's published value.

  The fields are those of `spec.Setting` with the same names.
  """

  rounds: int
  cohort_size: int
  evaluate_every: int
  validation_examples: int | None = None
  local_epochs: int | None = None
  batch_size: int | None = None
  task_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_QUICK = {
    # With the published α = 0.1 most clients have one class, and nothing is
    # learned in so few rounds.
    'CIFAR-10': Scale(25, 10, 3, 500, task_options={'alpha': 1.0}),
    'CIFAR-100': Scale(25, 10, 3, 500),
    'EMNIST CR': Scale(40, 10, 4, 500),
    'Shakespeare': Scale(30, 10, 3, 300),
    'SO NWP': Scale(40, 10, 4, 500),
    'SO LR': Scale(40, 10, 4, 500),
    'EMNIST AE': Scale(40, 10, 4, 500),
}
_SMALL = {
    'CIFAR-10': Scale(30, 5, 5, 500),
    'CIFAR-100': Scale(20, 5, 10, 500),
    'EMNIST CR': Scale(100, 10, 5, 2000),
    'Shakespeare': Scale(60, 10, 5, 1000),
    'SO NWP': Scale(40, 10, 5, 1000),
    'SO LR': Scale(100, 10, 5, 2000),
    'EMNIST AE': Scale(100, 10, 5, 2000),
}


def in_every_profile(value: Any) -> dict[str, Any]:
  """Returns a value that does not depend on the profile, by profile."""
  return dict.fromkeys(task_lib.PROFILES, value)


# The seeds of every table without error bars.
ONE_SEED = {'quick': (0,), 'small': (0,), 'paper': (1,)}
# The last rounds are averaged; evaluations lie in between.
LAST = {'quick': 'last:8', 'small': 'last:10', 'paper': 'last:100'}


def scale(task_label: str, profile: str) -> Scale:
  """Returns the length and width of a task's runs in a profile."""
  if profile == 'quick':
    return _QUICK[task_label]
  if profile == 'small':
    return _SMALL[task_label]
  published = tasks.info(settings.TASKS[task_label]).published
  return Scale(
      published.rounds,
      published.cohort_size,
      evaluate_every=1,
      local_epochs=published.local_epochs,
      batch_size=published.batch_size,
  )
