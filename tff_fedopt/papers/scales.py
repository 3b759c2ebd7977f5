"""How long and how wide runs are, by profile; shared by all papers."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import tasks
from tasks import source as source_lib
from tasks import task as task_lib
from tff_fedopt import algorithms
from tff_fedopt.tables import spec

# What a scale leaves as it is.
_NOT_REDUCED = {'evaluate_every': 1, 'task_options': {}}
_OF_RUNS = (
    'rounds',
    'cohort_size',
    'batch_size',
    'local_epochs',
    'evaluate_every',
    'validation_examples',
    'validation_seed',
    'cohorts',
    'participation',
)


@dataclasses.dataclass(frozen=True)
class Scale:
  """Length and width of a run; None stands for the task's published value.

  The fields but `source` are those of `spec.Setting` with the same names.
  `source` says where they come from.
  """

  rounds: int | None = None
  cohort_size: int | None = None
  evaluate_every: int = 1
  validation_examples: int | None = None
  local_epochs: int | None = None
  batch_size: int | None = None
  task_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  source: source_lib.Source = source_lib.REDUCED

  def setting(self, **fields: Any) -> spec.Setting:
    """Returns a setting of this scale.

    Args:
      **fields: Fields of `spec.Setting`; they replace the scale's. What they
        replace has their source, the rest that of the scale.
    """
    own = {name: v for name, v in vars(self).items() if name != 'source'}
    sources = {
        name: self.source
        for name, value in own.items()
        if value not in (None, _NOT_REDUCED.get(name))
        and fields.get(name, value) == value
    }
    sources.update(
        (f'task option {name}', self.source)
        for name, value in self.task_options.items()
        if fields.get('task_options', self.task_options).get(name) == value
    )
    sources.pop('task_options', None)
    if self.validation_examples:
      sources['validation_seed'] = self.source
    given = {**own, **fields}
    # What the paper's own sources say holds where the scale says nothing.
    given['sources'] = {**fields.get('sources', {}), **sources}
    return spec.Setting(**given)


def every(task: str, algorithm: str, where: source_lib.Source):
  """One source for all settings of runs, by name.

  Args:
    task: Name of the task.
    algorithm: Name of the algorithm.
    where: The source.
  """
  names = (
      *(f.name for f in dataclasses.fields(
          algorithms.hyperparameters(algorithm)
      )),
      *(f'task option {name}' for name in tasks.info(task).options),
      *_OF_RUNS,
  )
  return dict.fromkeys(names, where)


def in_every_profile(value: Any) -> dict[str, Any]:
  """Returns a value that does not depend on the profile, by profile."""
  return dict.fromkeys(task_lib.PROFILES, value)


def seeds(*paper: int) -> dict[str, tuple[int, ...]]:
  """Returns the seeds of a table by profile.

  Args:
    *paper: Those of the paper profile; the smaller ones have seed 0.
  """
  return {**in_every_profile((0,)), 'paper': paper}
