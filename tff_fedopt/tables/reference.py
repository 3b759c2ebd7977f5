"""Stored reference numbers: where they are, how far a new run may differ."""

from collections.abc import Mapping
import functools
import json
import math
import pathlib

import pandas as pd

from tff_fedopt.experiment import files
from tff_fedopt.tables import compare
from tff_fedopt.tables import published
from tff_fedopt.tables import spec as spec_lib
from tff_fedopt.tables import stamp as stamp_lib
from tff_fedopt.tables import store as store_lib

FOLDER = published.RESULTS / 'reference'

# Two processors add the same floats in different orders; training amplifies
# that over the rounds, so a stored number is met only within a tolerance, in
# its own unit: the larger of an absolute and a relative part. What is computed
# without training is met much closer.
_ABSOLUTE = {'%': 2.0, '': 0.5}
_RELATIVE = 0.05
_RELATIVE_COMPUTED = 1e-3


# Key of a cell to what its number belongs to.
Stamps = Mapping[tuple[str, str, str], stamp_lib.Stamp]


def path(
    profile: str, table: str, folder: pathlib.Path = FOLDER
) -> pathlib.Path:
  """Returns the file of a table's stored numbers."""
  return folder / profile / f'{table}.csv'


def tolerance(
    value: float, unit: str, given: float | None = None, data: str = ''
) -> float:
  """Returns how far a new run of the same settings may lie from a number.

  Args:
    value: The stored number.
    unit: Its unit.
    given: The relative tolerance of its quantity, if it has one.
    data: The kind of its data; `computed` for what no run gave.
  """
  if not math.isfinite(value):
    return 0.0  # A target that was not reached then must not be now.
  if given is not None:
    return given * abs(value) if math.isfinite(given) else given
  if data == 'computed':
    return _RELATIVE_COMPUTED * abs(value)
  return max(_ABSOLUTE.get(unit, 0.0), _RELATIVE * abs(value))


def store(
    table: spec_lib.TableSpec,
    profile: str,
    form: str | None,
    rows: pd.DataFrame,
    stamps: Stamps,
    folder: pathlib.Path = FOLDER,
) -> pathlib.Path:
  """Stores rows as the reference; other cells of the table keep theirs.

  Args:
    table: The table.
    profile: Its profile.
    form: The form it was run with, None for the table's own.
    rows: New rows, of all or some cells.
    stamps: What they belong to, by the cell's key.
    folder: Where references are.

  Returns:
    The file written; beside it is what its numbers belong to.
  """
  cells = {cell.key: cell for cell in table.cells(profile, form)}
  new = rows.assign(
      tolerance=[
          _tolerance_text(row, cells.get(key))
          for key, row in zip(store_lib.keys(rows), rows.to_dict('records'))
      ]
  )
  path_ = path(profile, table.id, folder)
  old = store_lib.read(path_) if path_.exists() else new.iloc[:0]
  merged = store_lib.merge(old, new, list(cells))
  known = {**stored_stamps(profile, table.id, folder), **stamps}
  write(profile, table.id, merged, known, folder)
  return path_


def write(
    profile: str,
    table: str,
    rows: pd.DataFrame,
    stamps: Stamps,
    folder: pathlib.Path = FOLDER,
) -> None:
  """Writes the rows of a reference, and the stamps of these rows."""
  packed = stamp_lib.to_json(
      {key: stamps[key] for key in store_lib.keys(rows) if key in stamps}
  )
  # One line a part, for people who look at what has changed.
  line = functools.partial(json.dumps, ensure_ascii=False, sort_keys=True)
  lists = [
      f'"{name}": [\n{",".join(chr(10) + line(v) for v in packed[name])[1:]}\n]'
      for name in ('shared', 'rows')
  ]
  text = f'{{"common": {line(packed["common"])},\n{", ".join(lists)}}}\n'
  csv = path(profile, table, folder)
  files.write_atomically(csv.with_suffix('.json'), [text.encode('utf-8')])
  store_lib.write(csv, rows)


def stored_stamps(
    profile: str, table: str, folder: pathlib.Path = FOLDER
) -> dict[tuple[str, str, str], stamp_lib.Stamp]:
  """What the stored numbers of a table belong to, by the cell's key."""
  beside = path(profile, table, folder).with_suffix('.json')
  if not beside.exists():
    return {}
  return stamp_lib.from_json(json.loads(beside.read_text(encoding='utf-8')))


def stale(
    profile: str, table: str, today: Stamps, folder: pathlib.Path = FOLDER
) -> dict[tuple[str, str, str], list[str]]:
  """Says of stored rows what has changed since, in words.

  Args:
    profile: The profile.
    table: Id of the table.
    today: What cells belong to today, by their key: of all or some cells.
    folder: Where references are.

  Returns:
    The key of each stale row to what has changed.
  """
  stored = stored_stamps(profile, table, folder)
  rows = store_lib.read(path(profile, table, folder))
  found = {}
  for key, row in zip(store_lib.keys(rows), rows.to_dict('records')):
    if key not in today:
      continue
    then = stored.get(key)
    shas = (row['spec_sha'], row['task_sha'])
    if then is None or shas != (then.spec_sha, then.task_sha):
      found[key] = ['what its settings were is not stored']
    elif lines := stamp_lib.differences(then, today[key]):
      found[key] = lines
  return found


def restamp(
    table: spec_lib.TableSpec,
    profile: str,
    rows: pd.DataFrame,
    today: Stamps,
    folder: pathlib.Path = FOLDER,
) -> list[str]:
  """Marks stored rows as of today's code, where it gives the same numbers.

  Nothing is marked unless all rows that were run again are as stored. Rows
  whose settings or data have changed stay as they are.

  Args:
    table: The table.
    profile: Its profile.
    rows: Rows that were run again, such as the table's check rows.
    today: What all cells of the table belong to today, by their key.
    folder: Where references are.

  Returns:
    A line for each row that is not as stored, or stays stale.
  """
  path_ = path(profile, table.id, folder)
  stored = store_lib.read(path_)
  before = dict(zip(store_lib.keys(stored), stored.to_dict('records')))
  name = lambda key: ' / '.join(part for part in (table.id, *key) if part)
  lines = []
  for key, row in zip(store_lib.keys(rows), rows.to_dict('records')):
    if key not in before:
      lines.append(f'{name(key)}: no stored number')
    elif not compare.same_numbers(before[key], row):
      lines.append(
          f'{name(key)}: {row["ours_mean"] or row["status"]}, stored'
          f' {before[key]["ours_mean"] or before[key]["status"]}'
      )
  if lines:
    return lines
  stamps = stored_stamps(profile, table.id, folder)
  for key in before:
    if key not in today or key not in stamps:
      lines.append(f'{name(key)}: what it belongs to is not known')
    elif changed := stamp_lib.setting_differences(stamps[key], today[key]):
      lines.append(f'{name(key)}: stale: {"; ".join(changed)}')
    else:
      stamps[key] = today[key]
      before[key].update(
          spec_sha=today[key].spec_sha, task_sha=today[key].task_sha
      )
  marked = pd.DataFrame(list(before.values()), columns=stored.columns)
  write(profile, table.id, marked, stamps, folder)
  return lines


def _tolerance_text(values, cell):
  if not values['ours_mean']:
    return ''
  number = tolerance(
      float(values['ours_mean']),
      values['unit'],
      cell and cell.quantity and cell.quantity.tolerance,
      values['data'],
  )
  return f'{number:.3g}'


def differences(
    profile: str, rows: pd.DataFrame, today: Stamps
) -> list[str] | None:
  """Returns a line per number outside its tolerance, None without reference.

  Args:
    profile: The profile.
    rows: New rows of one table.
    today: What they belong to, by the cell's key.
  """
  table = rows['table'].iloc[0]
  stored = path(profile, table)
  if not stored.exists():
    return None
  return compare.against_reference(
      store_lib.read(stored), rows, stale(profile, table, today)
  )
