"""The numbers the papers print, from `results/paper.csv`."""

import csv
import dataclasses
import functools
import pathlib
from typing import Optional

_RESULTS = pathlib.Path(__file__).resolve().parents[2] / 'results'
PATH = _RESULTS / 'paper.csv'
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
  std: Optional[float]
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


def of_table(table: str) -> dict[tuple[str, str], Published]:
  """Returns the numbers of a table by (row, column).

  Where a cell has several metrics the first one in the file is returned.
  """
  found = {}
  for number in load():
    if number.table == table:
      found.setdefault((number.row, number.column), number)
  return found
