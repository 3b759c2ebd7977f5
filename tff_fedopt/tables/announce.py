"""What is said of a finished run of a table: in the table's words."""

from collections.abc import Iterator, Sequence
import time
from typing import Any

import tqdm

from tff_fedopt.experiment import progress
from tff_fedopt.tables import plan as plan_lib

_RATES = {
    'client_learning_rate': 'client rate',
    'server_learning_rate': 'server rate',
}


def names(
    work: Sequence[
        tuple[Any, plan_lib.Options, Sequence[plan_lib.PlannedCell]]
    ],
) -> dict[Any, str]:
  """Returns what people call each run.

  Args:
    work: Of each table: its spec, the options, the planned cells.
  """
  found = {}
  for _, _, planned in work:
    for cell in planned:
      for run in (*cell.runs, *cell.measured):
        found.setdefault(run, ', '.join(_words(cell, run)))
  return found


def _words(cell, run) -> Iterator[str]:
  yield from filter(None, cell.cell.key)
  if run in cell.runs:
    values = run.to_json()['hyperparameters']
    for name, word in _RATES.items():
      if name in values:
        yield f'{word} {values[name]:.3g}'
  if len(cell.seeds) > 1:
    yield f'seed {run.seed}'


class Announcer:
  """Says of each finished run how it ended, and how long the rest may take."""

  def __init__(self, total: int, its_names: dict[Any, str]):
    """Begins to count.

    Args:
      total: Number of runs.
      its_names: What `names` returned.
    """
    self._total = total
    self._names = its_names
    self._count = self._new = 0
    self._started = time.monotonic()

  def __call__(self, result: Any) -> None:
    """Says of a `RunResult` or `MeasuredResult` what came out."""
    self._count += 1
    self._new += not result.reused
    name = self._names[result.spec]
    left = ''
    if self._count < self._total and self._new:
      seconds = (time.monotonic() - self._started) / self._new
      interval = tqdm.tqdm.format_interval(
          seconds * (self._total - self._count)
      )
      left = f', {interval} left'
    progress.say(
        f'[{self._count}/{self._total}] {name}: {result.headline}{left}'
    )
