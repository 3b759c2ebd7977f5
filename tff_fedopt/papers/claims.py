"""The claims of the four papers: their text, rules and verdicts."""

from collections.abc import Sequence
import dataclasses
import functools
import pathlib

from tff_fedopt import spelling
from tff_fedopt.papers.afo import claims as afo
from tff_fedopt.papers.fedinit import claims as fedinit
from tff_fedopt.papers.fedvra import claims as fedvra
from tff_fedopt.papers.local_adaptivity import claims as local_adaptivity
from tff_fedopt.tables import claims as rules
from tff_fedopt.tables import published
from tff_fedopt.tables import reference

PATH = published.RESULTS / 'claims.csv'
FIELDS = (
    'id',
    'paper',
    'where',
    'claim',
    'tables',
    'rule',
    'published_value',
    'published_verdict',
    'note',
)
RULES = {
    **afo.RULES,
    **local_adaptivity.RULES,
    **fedvra.RULES,
    **fedinit.RULES,
}
# Claims without a rule, and why.
NO_RULE = {**local_adaptivity.NO_RULE, **fedinit.NO_RULE}


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim as `results/claims.csv` has it; `tables` are ids."""

  id: str
  paper: str
  where: str
  claim: str
  tables: tuple[str, ...]
  rule: str
  published_value: str
  published_verdict: str
  note: str


@functools.cache
def load() -> tuple[Claim, ...]:
  """Reads the claims, in the order of the file."""
  return tuple(
      Claim(**{**row, 'tables': tuple(row['tables'].split())})
      for row in rules.read(PATH)
  )


def select(names: Sequence[str]) -> tuple[Claim, ...]:
  """Returns the claims of papers, tables or ids; all without names.

  Raises:
    ValueError: If a name is none of these.
  """
  known = {n for c in load() for n in (c.id, c.paper, *c.tables)}
  for name in names:
    if name not in known:
      hint = spelling.near(name, known)
      raise ValueError(
          f'no claims of {name!r}; '
          + (hint or 'expected a paper, a table or an id such as afo-01')
      )
  return tuple(
      claim
      for claim in load()
      if not names or {claim.id, claim.paper, *claim.tables} & set(names)
  )


def verdicts(
    claims: Sequence[Claim], profile: str, out_dir: pathlib.Path | None = None
) -> list[rules.Verdict]:
  """Computes what our numbers say of each claim.

  Args:
    claims: The claims.
    profile: Whose numbers.
    out_dir: A run's folder; None for the stored references.
  """
  folder = out_dir or reference.FOLDER / profile
  lookup, noise = rules.of_tables(folder, profile), rules.noise()
  return [
      rules.judge(RULES[claim.id], lookup, noise)
      if claim.id in RULES
      else rules.Verdict(rules.NOT_RUN, NO_RULE[claim.id])
      for claim in claims
  ]


def published_verdicts(claims: Sequence[Claim]) -> list[rules.Verdict]:
  """Computes what the papers' own numbers say of each claim."""
  lookup = rules.of_published()
  return [
      rules.judge_published(RULES[claim.id], lookup)
      if claim.id in RULES
      else rules.Verdict(rules.NOT_RUN, NO_RULE[claim.id])
      for claim in claims
  ]


def lines(
    claims: Sequence[Claim], found: Sequence[rules.Verdict]
) -> list[str]:
  """One line a claim: id, claim, published, ours, verdict."""
  return [_line(claim, verdict) for claim, verdict in zip(claims, found)]


def _line(claim, verdict):
  published_ = claim.published_value or 'none'
  if claim.published_value:
    published_ += f' ({claim.published_verdict})'
  ours = 'none'
  if verdict.value is not None:
    ours = f'{verdict.value:.4g}'
    if verdict.half_width:
      ours += f' ± {verdict.half_width:.2g}'
    if verdict.coverage:
      ours += f' ({verdict.coverage})'
  why = f' ({verdict.why})' if verdict.why else ''
  return (
      f'{claim.id}: {claim.claim} | published: {published_} | ours: {ours} |'
      f' {verdict.verdict}{why}'
  )


def summary(found: Sequence[rules.Verdict]) -> str:
  """Counts verdicts in one line."""
  kinds = (
      rules.REPRODUCED,
      rules.CONTRADICTED,
      rules.UNDECIDED,
      rules.NOT_RUN,
  )
  counts = [v.verdict for v in found]
  text = ', '.join(f'{counts.count(kind)} {kind}' for kind in kinds)
  return f'{len(found)} claims: {text}'
