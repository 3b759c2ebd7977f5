"""Stored reference numbers: where they are, how far a new run may differ."""

from collections.abc import Mapping, Sequence
import math
import pathlib
from typing import Any

from tff_fedopt.tables import compare
from tff_fedopt.tables import published
from tff_fedopt.tables import record
from tff_fedopt.tables import spec as spec_lib

FOLDER = published.RESULTS / 'reference'

# Two processors add the same floats in different orders; training amplifies
# that over the rounds, so a stored number is met only within a tolerance, in
# its own unit: the larger of an absolute and a relative part. What is computed
# without training is met much closer.
_ABSOLUTE = {'%': 2.0, '': 0.5}
_RELATIVE = 0.05
_RELATIVE_COMPUTED = 1e-3


def path(profile: str, table: str) -> pathlib.Path:
  """Returns the file of a table's stored numbers."""
  return FOLDER / profile / f'{table}.csv'


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
    records: Sequence[Mapping[str, str]],
    folder: pathlib.Path = FOLDER,
) -> pathlib.Path:
  """Stores records as the reference; other cells of the table keep theirs.

  Args:
    table: The table.
    profile: Its profile.
    form: The form it was run with, None for the table's own.
    records: New records, of all or some cells.
    folder: Where references are.

  Returns:
    The file written.
  """
  stored = folder / profile / f'{table.id}.csv'
  cells = {cell.key: cell for cell in table.cells(profile, form)}
  new = [
      {**r, 'tolerance': _tolerance_text(r, cells.get(record.key(r)))}
      for r in records
  ]
  old = record.read(stored) if stored.exists() else []
  order = list(cells)
  record.write(stored, record.merge(old, new, order))
  return stored


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
    profile: str, records: Sequence[Mapping[str, Any]]
) -> list[str] | None:
  """Returns a line per number outside its tolerance, None without reference."""
  stored = path(profile, records[0]['table'])
  if not stored.exists():
    return None
  return compare.against_reference(record.read(stored), records)
