"""What numbers say of a claim: verdicts, with their intervals."""

from collections.abc import Mapping
import dataclasses
import math

from scipy import special

from tff_fedopt.tables import claims

REPRODUCED = 'reproduced'
CONTRADICTED = 'contradicted'
UNDECIDED = 'undecided'
NOT_RUN = 'not run'

_CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim of a publication.

  Attributes:
    id: Such as `afo-01`.
    paper: As `--paper` takes it.
    where: Where it stands.
    claim: What is claimed, one line.
    tables: Ids of the tables whose numbers decide it.
    rule: The rule as its code prints it; '' without.
    published_value: Value of the rule on the published numbers; '' without.
    published_verdict: `satisfied` or `contradicted`; '' without.
    note: What to know about it.
  """

  id: str
  paper: str
  where: str
  claim: str
  tables: tuple[str, ...]
  rule: str
  published_value: str
  published_verdict: str
  note: str


@dataclasses.dataclass(frozen=True)
class Verdict:
  """What numbers say of a claim.

  Attributes:
    verdict: One of the constants of this module.
    why: Why it is undecided or not run; else ''.
    value: The value of the rule; None without numbers.
    half_width: Half of its 95 % interval; 0 for what is computed.
    coverage: Such as `lowest at SO NWP, 5 of 7`; '' for a single comparison.
  """

  verdict: str
  why: str = ''
  value: float | None = None
  half_width: float = 0.0
  coverage: str = ''


@dataclasses.dataclass(frozen=True)
class Judged:
  """A claim with what our numbers say of it."""

  claim: Claim
  found: Verdict


def judge_published(rule: claims.Rule, lookup: claims.Lookup) -> Verdict:
  """Judges the papers' own numbers, which are taken as they are printed."""
  try:
    found = rule.value.evaluate(lookup)
  except claims.Missing as e:
    return Verdict(NOT_RUN, str(e))
  # A part of the cells is not what the claim is about.
  verdict = 'satisfied' if rule.holds(found.value) else 'contradicted'
  return Verdict(verdict, '', found.value, 0.0, _coverage(found))


def judge(
    rule: claims.Rule, lookup: claims.Lookup, noise: Mapping[str, float]
) -> Verdict:
  """Judges our numbers.

  `reproduced` where the claim holds for the value and the interval has only its
  direction; `contradicted` where the interval has only the other one. What a
  better tuned cell could turn is undecided, and so is the rest.

  Args:
    rule: The rule.
    lookup: Gives our numbers.
    noise: Half width of a difference of two runs, by the names of rules.
  """
  try:
    found = rule.value.evaluate(lookup)
  except claims.NothingLearnt as e:
    return Verdict(UNDECIDED, f'nothing learnt: {e}')
  except claims.Missing as e:
    return Verdict(NOT_RUN, str(e))
  width, is_one_seed = _half_width(rule, found, noise, 1)
  made = Verdict('', '', found.value, width, _coverage(found))
  lengths = [n.rounds for n in found.numbers.values() if n.rounds]
  if rule.rounds and min(lengths, default=0) < rule.rounds:
    why = f'rounds: {min(lengths, default=0)}, of at least {rule.rounds}'
    return dataclasses.replace(made, verdict=UNDECIDED, why=why)
  # The least of several is low by chance more often than each of them.
  wide, _ = _half_width(rule, found, noise, found.items)
  verdict = _compared(rule, found.value, width, wide)
  why = ''
  if verdict == UNDECIDED:
    why = 'one seed' if is_one_seed else 'spread'
  else:
    at_border = _turning(rule, found, verdict)
    if at_border:
      more = f' and {len(at_border) - 2} more' if at_border[2:] else ''
      why = f'grid border: {", ".join(at_border[:2])}{more}'
      verdict = UNDECIDED
  return dataclasses.replace(made, verdict=verdict, why=why)


def _coverage(found):
  if not found.lowest:
    return ''
  return f'lowest at {found.lowest}, {found.items} of {found.of}'


def _compared(rule, value, width, wide):
  if not rule.noise:
    return REPRODUCED if rule.holds(value) else CONTRADICTED
  if rule.at_most is not None:
    if rule.holds(value) and width <= rule.at_most:
      return REPRODUCED
    return CONTRADICTED if value >= rule.at_most + wide else UNDECIDED
  if rule.holds(value) and value >= width:
    return REPRODUCED
  return CONTRADICTED if value <= -wide else UNDECIDED


def _half_width(rule, found, noise, items):
  """Half width of the interval, and whether it is the noise of one seed."""
  if not rule.noise:
    return 0.0, False
  tail = (1 - _CONFIDENCE) / 2
  used = {c: s for c, s in found.slopes.items() if s}
  known = [found.numbers[cell] for cell in used]
  if known and all(n.std is not None and n.seeds > 1 for n in known):
    degrees = min(n.seeds for n in known) - 1
    variance = sum(
        (slope * found.numbers[cell].std) ** 2 / found.numbers[cell].seeds
        for cell, slope in used.items()
    )
    quantile = special.stdtrit(degrees, 1 - tail / items)
    return float(quantile) * math.sqrt(variance), False
  ratio = special.ndtri(1 - tail / items) / special.ndtri(1 - tail)
  return float(ratio) * noise[rule.noise], True


def _turning(rule, found, verdict):
  """Cells on the border of their grid that could turn the verdict if better."""
  if not rule.noise:
    return []
  wanted = (rule.at_least is not None) == (verdict == CONTRADICTED)
  return sorted({
      f'{cell.row} {cell.column}'
      for cell, sign in found.signs
      if found.numbers[cell].at_border
      and (claims.if_better(cell, sign) > 0) == wanted
  })
