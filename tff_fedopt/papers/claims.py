"""The claims of the four papers: their text and rules, and what is said."""

from collections.abc import Sequence
import functools
import pathlib

from tff_fedopt import spelling
from tff_fedopt.papers.afo import claims as afo
from tff_fedopt.papers.fedinit import claims as fedinit
from tff_fedopt.papers.fedvra import claims as fedvra
from tff_fedopt.papers.local_adaptivity import claims as local_adaptivity
from tff_fedopt.tables import numbers
from tff_fedopt.tables import published
from tff_fedopt.tables import reference
from tff_fedopt.tables import verdicts

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


@functools.cache
def load() -> tuple[verdicts.Claim, ...]:
  """Reads the claims, in the order of the file."""
  return tuple(
      verdicts.Claim(**{**row, 'tables': tuple(row['tables'].split())})
      for row in numbers.read(PATH)
  )


def select(names: Sequence[str]) -> tuple[verdicts.Claim, ...]:
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


def judge(
    claims: Sequence[verdicts.Claim],
    profile: str,
    out_dir: pathlib.Path | None = None,
) -> list[verdicts.Judged]:
  """Computes what our numbers say of each claim.

  Args:
    claims: The claims.
    profile: Whose numbers.
    out_dir: A run's folder; None for the stored references.
  """
  folder = out_dir or reference.FOLDER / profile
  lookup, noise = numbers.of_tables(folder, profile), numbers.noise()
  return [
      verdicts.Judged(
          claim,
          verdicts.judge(RULES[claim.id], lookup, noise)
          if claim.id in RULES
          else verdicts.Verdict(verdicts.NOT_RUN, NO_RULE[claim.id]),
      )
      for claim in claims
  ]


def of_tables(
    names: Sequence[str], profile: str, out_dir: pathlib.Path
) -> list[verdicts.Judged]:
  """Judges the claims that tables decide, by the numbers of a run's folder.

  Args:
    names: Ids of tables.
    profile: Whose numbers.
    out_dir: The run's folder.
  """
  chosen = [claim for claim in load() if set(claim.tables) & set(names)]
  return judge(chosen, profile, out_dir)


def published_verdicts(
    claims: Sequence[verdicts.Claim],
) -> list[verdicts.Verdict]:
  """Computes what the papers' own numbers say of each claim."""
  lookup = numbers.of_published()
  return [
      verdicts.judge_published(RULES[claim.id], lookup)
      if claim.id in RULES
      else verdicts.Verdict(verdicts.NOT_RUN, NO_RULE[claim.id])
      for claim in claims
  ]
