"""Verdicts: our number against the published one, and against a stored one."""

from collections.abc import Mapping, Sequence
import math

import pandas as pd

# How far a reproduction may lie from a published number without a spread, as a
# fraction of it: twice the 0.5 % within which AFO calls results equal, since
# both numbers come from few seeds.
PUBLISHED_TOLERANCE = 0.01

# How far, relatively, numbers may be apart that are the same but for rounding.
SAME = 1e-6

MATCH = 'match'
DIFFERS = 'differs'
NOT_RUN = 'not run'
NOT_COMPARED = 'not compared'
STALE = 'stale'
DIVERGED = 'diverged'
FAILED = 'failed'


def verdict(
    status: str,
    ours: float | None,
    ours_std: float | None,
    paper: float | None,
    paper_std: float | None,
    comparable: bool,
) -> str:
  """Judges one number against the published one.

  Rule: a missing number is never agreement; a number from another setting is
  never compared; else `match` where
  `|ours − paper| <= max(paper_std, ours_std, 1 % of |paper|)`.

  Args:
    status: `done`, `diverged`, `failed` or `not run`.
    ours: Our mean, in the unit of the paper; None if there is none.
    ours_std: Standard deviation over seeds; None for one seed.
    paper: The published mean; None if nothing was published.
    paper_std: The published standard deviation; None if there is none.
    comparable: Whether nothing stands between them, see `origin.Comparison`.

  Returns:
    One of the constants of this module.
  """
  if status == DIVERGED and comparable and paper is not None:
    return DIFFERS
  if status != 'done':
    return status
  if ours is None or math.isnan(ours):
    return NOT_RUN
  if not comparable or paper is None:
    return NOT_COMPARED
  allowed = max(
      paper_std or 0.0, ours_std or 0.0, PUBLISHED_TOLERANCE * abs(paper)
  )
  # Decimal fractions such as 50.6 are not exact in binary.
  allowed += 1e-9 * abs(paper)
  return MATCH if abs(ours - paper) <= allowed else DIFFERS


def against_reference(
    reference: pd.DataFrame,
    ours: pd.DataFrame,
    stale: Mapping[tuple[str, str, str], Sequence[str]],
) -> list[str]:
  """Compares new rows with stored ones.

  A stored row is found again when panel, row and column agree. It is stale,
  which counts as a difference, when what it belongs to is not that of today.

  Args:
    reference: Stored rows; `tolerance` is in the unit of the number.
    ours: New rows, of all or some of the stored cells.
    stale: (panel, row, column) of stored rows to what has changed since.

  Returns:
    One line per number outside its tolerance; empty if there is none.
  """
  stored = {_key(row): row for row in reference.to_dict('records')}
  lines = []
  for row in ours.to_dict('records'):
    old = stored.get(_key(row))
    name = ' / '.join(part for part in (row['table'], *_key(row)) if part)
    if old is None:
      lines.append(f'{name}: no stored number; store one by running it')
    elif stale.get(_key(row)):
      lines.append(
          f'{name}: stale: {"; ".join(stale[_key(row)])}; run it again with'
          ' --store_reference'
      )
    elif old['status'] != row['status']:
      lines.append(f'{name}: {row["status"]}, stored {old["status"]}')
    elif row['status'] == 'done':
      new_value, old_value = float(row['ours_mean']), float(old['ours_mean'])
      tolerance = float(old['tolerance'])
      if new_value == old_value:
        continue  # Infinite, too: neither reached its target.
      # Written so that a NaN is outside.
      if not abs(new_value - old_value) <= tolerance:
        lines.append(
            f'{name}: {new_value:.4g} {row["unit"]}, stored {old_value:.4g} ±'
            f' {tolerance:.3g}{_other_engine(old, row)}'
        )
  return lines


def _other_engine(old, new):
  then, now = old['engine'], new['engine']
  return '' if then == now else f' (on the engine {then}, now {now})'


def same_numbers(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
  """Whether two rows of one cell have the same number, but for rounding.

  On another engine training amplifies that, so the tolerance of the stored
  number counts.
  """
  if old['status'] != new['status'] or bool(old['ours_mean']) != bool(
      new['ours_mean']
  ):
    return False
  if not new['ours_mean']:
    return True
  before, now = float(old['ours_mean']), float(new['ours_mean'])
  allowed = SAME * abs(before)
  if _other_engine(old, new):
    allowed = float(old['tolerance'])
  return before == now or abs(before - now) <= allowed


def _key(row: Mapping[str, str]) -> tuple[str, str, str]:
  return (row['panel'], row['row'], row['column'])
