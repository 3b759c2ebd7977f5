"""Says which data are missing before anything is loaded."""

from collections.abc import Iterable

import tasks
from tasks.data import sources
from tff_fedopt.experiment import spec as spec_lib


def require(runs: Iterable[spec_lib.RunSpec]) -> None:
  """Checks that the real data of runs are there; opens none of them.

  Args:
    runs: The runs. Those on embedded data need nothing.

  Raises:
    ValueError: If data are missing; one line with all of them, each with its
      size, its place and the command that fetches it.
  """
  missing = {}
  for run in runs:
    if run.profile == 'quick' and run.data_dir is None:
      continue
    try:
      tasks.info(run.task).files(run.data_dir, run.task_options)
    except sources.DataError as e:
      missing[str(e)] = None
  if missing:
    raise ValueError('; '.join(missing))
