"""Verdicts: our number against the published one, and against a stored one."""

from collections.abc import Mapping, Sequence
import math

# How far a reproduction may lie from a published number without a spread, as a
# fraction of it: twice the 0.5 % within which AFO calls results equal, since
# both numbers come from few seeds.
PUBLISHED_TOLERANCE = 0.01

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
    comparable: Whether data and setting are exactly the published ones.

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
    reference: Sequence[Mapping[str, str]], ours: Sequence[Mapping[str, str]]
) -> list[str]:
  """Compares new records with stored ones.

  A stored record is found again when table, panel, row and column agree. It
  is stale, which counts as a difference, when the settings of its run are not
  those of today.

  Args:
    reference: Stored records; `tolerance` is in the unit of the number.
    ours: New records, of all or some of the stored cells.

  Returns:
    One line per number outside its tolerance; empty if there is none.
  """
  stored = {_key(record): record for record in reference}
  lines = []
  for record in ours:
    old = stored.get(_key(record))
    name = ' / '.join(part for part in _key(record) if part)
    if old is None:
      lines.append(f'{name}: no stored number; store one by running it')
    elif old['spec_sha'] != record['spec_sha']:
      lines.append(
          f'{name}: stale, settings {record["spec_sha"]} but stored for'
          f' {old["spec_sha"]}; run it again with --store_reference'
      )
    elif old['status'] != record['status']:
      lines.append(f'{name}: {record["status"]}, stored {old["status"]}')
    elif record['status'] == 'done':
      new_value, old_value = float(record['ours_mean']), float(old['ours_mean'])
      tolerance = float(old['tolerance'])
      if new_value == old_value:
        continue  # Infinite, too: neither reached its target.
      # Written so that a NaN is outside.
      if not abs(new_value - old_value) <= tolerance:
        lines.append(
            f'{name}: {new_value:.4g} {record["unit"]}, stored'
            f' {old_value:.4g} ± {tolerance:.3g}'
        )
  return lines


def _key(record: Mapping[str, str]) -> tuple[str, str, str, str]:
  return (record['table'], record['panel'], record['row'], record['column'])
