"""Claims with their verdicts as text."""

from collections.abc import Sequence

from tff_fedopt.tables import verdicts

# As they are counted.
KINDS = (
    verdicts.REPRODUCED,
    verdicts.CONTRADICTED,
    verdicts.UNDECIDED,
    verdicts.NOT_RUN,
)


def line(judged: verdicts.Judged) -> str:
  """One line: id, claim, published, ours, verdict."""
  claim, found = judged.claim, judged.found
  return (
      f'{claim.id}: {claim.claim} | published: {published(claim)} | ours:'
      f' {ours(found)} | {verdict(found)}'
  )


def published(claim: verdicts.Claim) -> str:
  """The value of the rule on the published numbers, and what it says."""
  if not claim.published_value:
    return 'none'
  return f'{claim.published_value} ({claim.published_verdict})'


def ours(found: verdicts.Verdict) -> str:
  """The value of the rule on our numbers, with its interval."""
  if found.value is None:
    return 'none'
  text = f'{found.value:.4g}'
  if found.half_width:
    text += f' ± {found.half_width:.2g}'
  if found.coverage:
    text += f' ({found.coverage})'
  return text


def verdict(found: verdicts.Verdict) -> str:
  """The verdict, and why it is none."""
  return found.verdict + (f' ({found.why})' if found.why else '')


def decided_by(
    table: str, judged: Sequence[verdicts.Judged]
) -> list[str]:
  """Of the claims that a table decides what was found, for its report.

  Args:
    table: Its id.
    judged: Claims of any tables.

  Returns:
    A line each, and one on how many more need numbers that were not run.
  """
  own = [one for one in judged if table in one.claim.tables]
  lines = [
      line(one)
      for one in own
      if one.found.verdict != verdicts.NOT_RUN
  ]
  rest = len(own) - len(lines)
  if rest:
    lines.append(f'{_number(rest, "claim")} more: not run')
  return lines


def counts(judged: Sequence[verdicts.Judged]) -> str:
  """Counts verdicts, such as `3 reproduced, 1 undecided`."""
  kinds = [one.found.verdict for one in judged]
  return ', '.join(
      f'{kinds.count(kind)} {kind}' for kind in KINDS if kind in kinds
  )


def summary(judged: Sequence[verdicts.Judged]) -> str:
  """Counts claims, papers and verdicts in one sentence."""
  papers = len({one.claim.paper for one in judged})
  return (
      f'{_number(len(judged), "claim")} of {_number(papers, "paper")}:'
      f' {counts(judged) or "nothing was run"}'
  )


def _number(count, what):
  return f'{count} {what}{"" if count == 1 else "s"}'
