"""The stored form of a table: one CSV row a number, with its provenance."""

from collections.abc import Mapping, Sequence
import csv
import os
import pathlib

FIELDS = (
    'table',
    'panel',
    'row',
    'column',
    'metric',
    'split',
    'unit',
    'reduction',
    'paper_value',
    'paper_std',
    'paper_source',
    'ours_mean',
    'ours_std',
    'status',
    'seeds',
    'rounds',
    'profile',
    'data',
    'form',
    'setting',
    'setting_source',
    'spec_sha',
    'task_sha',
    'commit',
    'tff',
    'tf',
    'python',
    'cores',
    'date',
    'wall_seconds',
    'tolerance',
    'verdict',
)


def write(path: pathlib.Path, records: Sequence[Mapping[str, str]]) -> None:
  """Writes records under a temporary name, then moves them into place.

  Args:
    path: The CSV file; its folder is made where missing.
    records: Field to text, every field of `FIELDS`.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  temporary = path.with_name(path.name + '.tmp')
  with open(temporary, 'w', newline='', encoding='utf-8') as f:
    writer = csv.DictWriter(f, FIELDS, lineterminator='\n')
    writer.writeheader()
    writer.writerows(records)
  os.replace(temporary, path)


def read(path: pathlib.Path) -> list[dict[str, str]]:
  """Reads records.

  Raises:
    ValueError: If the columns are not `FIELDS`.
  """
  with open(path, newline='', encoding='utf-8') as f:
    reader = csv.DictReader(f)
    if tuple(reader.fieldnames or ()) != FIELDS:
      raise ValueError(f'{path}: columns must be {",".join(FIELDS)}')
    return list(reader)


def merge(
    old: Sequence[Mapping[str, str]],
    new: Sequence[Mapping[str, str]],
    order: Sequence[tuple[str, str, str]],
) -> list[Mapping[str, str]]:
  """Replaces the old records of cells that have a new one.

  Args:
    old: Stored records.
    new: Records of some of the cells.
    order: (panel, row, column) of every cell of the table today; records of
      cells that the table no longer has are dropped.

  Returns:
    The records, in that order.
  """
  found = {key(record): record for record in (*old, *new)}
  return [found[cell] for cell in order if cell in found]


def key(record: Mapping[str, str]) -> tuple[str, str, str]:
  return (record['panel'], record['row'], record['column'])


def number(text: str) -> float | None:
  return float(text) if text else None
