"""How long and how wide runs are, by profile; shared by all papers."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from tasks import task as task_lib
from tff_fedopt.tables import spec


@dataclasses.dataclass(frozen=True)
class Scale:
  """Length and width of a run; None stands for the task's published value.

  The fields are those of `spec.Setting` with the same names.
  """

  rounds: int | None = None
  cohort_size: int | None = None
  evaluate_every: int = 1
  validation_examples: int | None = None
  local_epochs: int | None = None
  batch_size: int | None = None
  task_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  def setting(self, **fields: Any) -> spec.Setting:
    """Returns a setting of this scale.

    Args:
      **fields: Fields of `spec.Setting`; they replace the scale's.
    """
    return spec.Setting(**{**vars(self), **fields})


def in_every_profile(value: Any) -> dict[str, Any]:
  """Returns a value that does not depend on the profile, by profile."""
  return dict.fromkeys(task_lib.PROFILES, value)


def seeds(*paper: int) -> dict[str, tuple[int, ...]]:
  """Returns the seeds of a table by profile.

  Args:
    *paper: Those of the paper profile; the smaller ones have seed 0.
  """
  return {**in_every_profile((0,)), 'paper': paper}
