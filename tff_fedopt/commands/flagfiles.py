"""The runs of a table as flagfiles that `train` makes the same numbers of."""

from collections.abc import Iterator, Sequence
import dataclasses
import pathlib
import re

from tff_fedopt.commands import run_flags
from tff_fedopt.experiment import files
from tff_fedopt.tables import plan as plan_lib


@dataclasses.dataclass(frozen=True)
class Flagfile:
  """One run of a cell, or the note that a cell is not trained.

  Attributes:
    name: A file's name.
    title: Which table, cell, candidate and seed.
    lines: The flags; none for what is computed without training.
  """

  name: str
  title: str
  lines: Sequence[str]

  @property
  def text(self) -> str:
    return '\n'.join([f'# {self.title}', *self.lines, ''])


def of_table(
    table_id: str, planned: Sequence[plan_lib.PlannedCell]
) -> Iterator[Flagfile]:
  """Yields a flagfile per cell and run.

  Args:
    table_id: The table.
    planned: Its planned cells.
  """
  for cell in planned:
    labels = [label for label in cell.cell.key if label]
    for run in cell.measured:
      title = f'{", ".join(labels)}: computed without training, seed {run.seed}'
      yield _flagfile(table_id, title, ())
    for kind, candidates in (
        ('candidate', cell.candidates),
        ('baseline', cell.baseline),
    ):
      for number, candidate in enumerate(candidates, 1):
        for run in candidate.runs:
          parts = [', '.join(labels) + ':']
          if kind == 'baseline' or len(candidates) > 1:
            parts.append(f'{kind} {number},')
          title = ' '.join([*parts, f'seed {run.seed}'])
          yield _flagfile(table_id, title, run_flags.lines(run))


def _flagfile(table_id, title, lines):
  title = f'{table_id}: {title}'
  return Flagfile(re.sub(r'[^\w.-]+', '-', title) + '.flags', title, lines)


def write(flagfiles: Sequence[Flagfile], folder: pathlib.Path) -> list[str]:
  """Writes the flagfiles of what is trained; returns their paths."""
  folder.mkdir(parents=True, exist_ok=True)
  paths = [folder / f.name for f in flagfiles if f.lines]
  texts = [f.text for f in flagfiles if f.lines]
  for path, text in zip(paths, texts):
    files.write_atomically(path, [text.encode()])
  return [str(path) for path in paths]
