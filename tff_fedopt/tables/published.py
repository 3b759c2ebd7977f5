"""The numbers the papers print, from `results/paper.csv`."""

import csv
import dataclasses
import functools
import pathlib

# In a checkout a link to its results, in a wheel the files themselves.
RESULTS = pathlib.Path(__file__).resolve().parents[1] / 'results'
PATH = RESULTS / 'paper.csv'
FIELDS = (
    'table',
    'row',
    'column',
    'metric',
    'unit',
    'value',
    'std',
    'source',
    'note',
)


@dataclasses.dataclass(frozen=True)
class Published:
  """One published number; `value` and `std` are in `unit`."""

  table: str
  row: str
  column: str
  metric: str
  unit: str
  value: float
  std: float | None
  source: str
  note: str


@functools.cache
def load(path: pathlib.Path = PATH) -> tuple[Published, ...]:
  """Reads every published number.

  Args:
    path: A CSV file with the columns `FIELDS`.

  Returns:
    The numbers, in the order of the file.

  Raises:
    ValueError: If the columns differ or two rows have the same key.
  """
  with open(path, newline='', encoding='utf-8') as f:
    reader = csv.DictReader(f)
    if tuple(reader.fieldnames or ()) != FIELDS:
      raise ValueError(f'{path}: columns must be {",".join(FIELDS)}')
    numbers = tuple(
        Published(**{
            **row,
            'value': float(row['value']),
            'std': float(row['std']) if row['std'] else None,
        })
        for row in reader
    )
  keys = {(n.table, n.row, n.column, n.metric) for n in numbers}
  if len(keys) != len(numbers):
    raise ValueError(
        f'{path}: two rows have the same table, row, column, metric'
    )
  return numbers


def find(
    table: str, row: str, column: str, metric: str | None = None
) -> Published | None:
  """Returns a published number, None if there is none.

  Args:
    table: A table id.
    row: Label of the row.
    column: Label of the column.
    metric: What the number is; None for the first in the file.
  """
  for number in _by_cell().get((table, row, column), ()):
    if metric in (None, number.metric):
      return number
  return None


@functools.cache
def _by_cell():
  found = {}
  for number in load():
    key = (number.table, number.row, number.column)
    found.setdefault(key, []).append(number)
  return found
