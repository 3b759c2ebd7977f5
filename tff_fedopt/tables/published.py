"""The numbers the papers print, from `results/paper.csv`."""

from collections.abc import Sequence
import csv
import dataclasses
import functools
import pathlib
from typing import Any

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
    ValueError: If the columns differ, a row has no unit or no number, or two
      rows have the same key.
  """
  with open(path, newline='', encoding='utf-8') as f:
    reader = csv.DictReader(f)
    if tuple(reader.fieldnames or ()) != FIELDS:
      raise ValueError(f'{path}: columns must be {",".join(FIELDS)}')
    numbers = tuple(_number(path, reader.line_num, row) for row in reader)
  keys = {(n.table, n.row, n.column, n.metric) for n in numbers}
  if len(keys) != len(numbers):
    raise ValueError(
        f'{path}: two rows have the same table, row, column, metric'
    )
  return numbers


def _number(path, line, row) -> Published:
  if not row['unit']:
    raise ValueError(
        f"{path}, line {line}: no unit; expected one, such as % or x1000 for"
        ' 1000 times the number'
    )
  try:
    value = float(row['value'])
    std = float(row['std']) if row['std'] else None
  except (TypeError, ValueError):
    raise ValueError(
        f'{path}, line {line}: value {row["value"]!r}, std {row["std"]!r};'
        ' expected numbers, and nothing for an unknown std'
    ) from None
  return Published(**{**row, 'value': value, 'std': std})


def units(metric: Any) -> tuple[str, ...]:
  """The units in which a published number compares with ours.

  Args:
    metric: A task's `Metric` or a table's `Quantity`.

  Returns:
    The metric's own, and how the papers write a number that is scaled.
  """
  factor = metric.scale or (100 if metric.unit == '%' else 1)
  scaled = (f'x{factor:g}',) if metric.unit in ('', '%') and factor != 1 else ()
  return ((metric.unit,) if metric.unit else ()) + scaled


def find(
    table: str,
    row: str,
    column: str,
    metric: str | None,
    allowed_units: Sequence[str],
    path: pathlib.Path | None = None,
) -> Published | None:
  """Returns a published number, None if there is none.

  Args:
    table: A table id.
    row: Label of the row.
    column: Label of the column.
    metric: What the number is; None for the first in the file.
    allowed_units: Units that compare with our number; see `units`.
    path: As for `load`; None for the papers' own.

  Raises:
    ValueError: If the number is in another unit.
  """
  path = path or PATH
  for number in _by_cell(path).get((table, row, column), ()):
    if metric in (None, number.metric):
      if number.unit not in allowed_units:
        raise ValueError(
            f'{path}: {table}, {row}, {column} ({number.metric}) is in'
            f' {number.unit!r}; expected {" or ".join(allowed_units) or "none"}'
        )
      return number
  return None


@functools.cache
def _by_cell(path):
  found = {}
  for number in load(path):
    key = (number.table, number.row, number.column)
    found.setdefault(key, []).append(number)
  return found
