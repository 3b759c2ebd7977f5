"""Stored reference numbers: where they are, how far a new run may differ."""

import pathlib
from typing import Any, Mapping, Optional, Sequence

from tff_fedopt.experiment import compare
from tff_fedopt.tables import record
from tff_fedopt.tables import spec as spec_lib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / 'results' / 'reference'

# Two processors add the same floats in different orders; training amplifies
# that over the rounds, so a stored number is met only within a tolerance, in
# its own unit: the larger of an absolute and a relative part.
_ABSOLUTE = {'%': 2.0, '': 0.5}
_RELATIVE = 0.05


def path(profile: str, table: str) -> pathlib.Path:
  """Returns the file of a table's stored numbers."""
  return FOLDER / profile / f'{table}.csv'


def tolerance(value: float, unit: str) -> float:
  """Returns how far a new run of the same settings may lie from `value`."""
  return max(_ABSOLUTE[unit], _RELATIVE * abs(value))


def store(
    table: spec_lib.TableSpec,
    profile: str,
    form: Optional[str],
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
  new = [
      {
          **r,
          'tolerance': (
              f'{tolerance(float(r["ours_mean"]), r["unit"]):.3g}'
              if r['ours_mean']
              else ''
          ),
      }
      for r in records
  ]
  old = record.read(stored) if stored.exists() else []
  order = [cell.key for cell in table.cells(profile, form)]
  record.write(stored, record.merge(old, new, order))
  return stored


def differences(
    profile: str, records: Sequence[Mapping[str, Any]]
) -> Optional[list[str]]:
  """Returns a line per number outside its tolerance, None without reference."""
  stored = path(profile, records[0]['table'])
  if not stored.exists():
    return None
  return compare.against_reference(record.read(stored), records)
