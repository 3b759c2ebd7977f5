"""Claims of papers as rules on the numbers of tables, and their verdicts.

A rule is an expression of a few kinds (a cell, arithmetic, the best and the
worst of several, the least over rows) and what it must be. The same expression
is evaluated on published numbers and on ours. Beside its value it carries how
each cell moves it, from which follow its confidence interval and whether a
better tuned cell could turn the verdict.

Importing this needs neither TensorFlow nor pandas.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import csv
import dataclasses
import math
import operator
import pathlib
import re

from scipy import special

from tff_fedopt.tables import published as published_lib

REPRODUCED = 'reproduced'
CONTRADICTED = 'contradicted'
UNDECIDED = 'undecided'
NOT_RUN = 'not run'

NOISE = published_lib.RESULTS / 'noise.csv'
TRIVIAL = published_lib.RESULTS / 'trivial.csv'

_CONFIDENCE = 0.95


class Missing(ValueError):
  """A number that a rule needs is not there."""


class NothingLearnt(ValueError):
  """The row of a number is no better than its trivial predictor."""


@dataclasses.dataclass(frozen=True)
class Number:
  """A number of a table.

  Attributes:
    value: In the table's unit; inf for a target that was not reached.
    std: Standard deviation over seeds, None if it is not known.
    seeds: How many.
    rounds: Of training, None without.
    at_border: Whether its setting lies on the border of the grid tried.
    lower_is_better: Of losses, errors, distances, times and rounds.
  """

  value: float
  std: float | None = None
  seeds: int = 1
  rounds: int | None = None
  at_border: bool = False
  lower_is_better: bool = False


Lookup = Callable[['Cell'], Number]


@dataclasses.dataclass(frozen=True)
class Evaluated:
  """The value of an expression and what it depends on.

  Attributes:
    value: The value.
    slopes: By how much the value moves with each cell that it is made of.
    signs: The directions in which any cell that was looked at may move it.
    numbers: All cells that were looked at.
    items: Of how many values it is the least.
    of: How many there would be if all were run.
    lowest: Label of the least.
  """

  value: float
  slopes: Mapping['Cell', float]
  signs: frozenset[tuple['Cell', int]]
  numbers: Mapping['Cell', Number]
  items: int = 1
  of: int = 1
  lowest: str = ''


class Expression:
  """Base of the kinds of rules; has arithmetic."""

  def evaluate(self, lookup: Lookup) -> Evaluated:
    """Evaluates on the numbers that `lookup` gives.

    Raises:
      Missing: If a number is not there.
      NothingLearnt: If a row learnt nothing.
    """
    raise NotImplementedError

  def __add__(self, other):
    return _Binary('+', self, _expression(other))

  def __sub__(self, other):
    return _Binary('-', self, _expression(other))

  def __rsub__(self, other):
    return _Binary('-', _expression(other), self)

  def __mul__(self, other):
    return _Binary('*', self, _expression(other))

  def __rmul__(self, other):
    return _Binary('*', _expression(other), self)

  def __truediv__(self, other):
    return _Binary('/', self, _expression(other))

  def __neg__(self):
    return -1 * self

  def __abs__(self):
    return best(self, -self)


def _expression(value):
  return value if isinstance(value, Expression) else _Constant(float(value))


@dataclasses.dataclass(frozen=True)
class _Constant(Expression):
  value: float

  def evaluate(self, lookup):
    return Evaluated(self.value, {}, frozenset(), {})

  def __str__(self):
    return f'{self.value:g}'


@dataclasses.dataclass(frozen=True)
class Cell(Expression):
  """A number of a table.

  Attributes:
    table: Id of the table.
    row: Label of the row.
    column: Label of the column.
    panel: The sub-table.
    printed: (row, column) in `results/paper.csv` where they differ.
    lower_is_better: Of losses, errors, distances, times and rounds.
    printed_table: Id of the table in `results/paper.csv`, '' for the same.
  """

  table: str
  row: str
  column: str
  panel: str = ''
  printed: tuple[str, str] | None = None
  lower_is_better: bool = False
  printed_table: str = ''

  def evaluate(self, lookup):
    number = lookup(self)
    return Evaluated(
        number.value, {self: 1.0}, frozenset({(self, 1)}), {self: number}
    )

  def __str__(self):
    parts = (self.panel, self.row, self.column)
    return f'[{" | ".join(filter(None, parts))}]'


def _divide(left, right):
  if math.isinf(left) and math.isinf(right):
    raise Missing('neither reached its target')
  return left / right if right else math.inf


_OPERATORS = {
    '+': operator.add,
    '-': operator.sub,
    '*': operator.mul,
    '/': _divide,
}


@dataclasses.dataclass(frozen=True)
class _Binary(Expression):
  """Arithmetic; errors propagate to first order."""

  operator: str
  left: Expression
  right: Expression

  def evaluate(self, lookup):
    left, right = self.left.evaluate(lookup), self.right.evaluate(lookup)
    a, b = left.value, right.value
    value = _OPERATORS[self.operator](a, b)
    if math.isnan(value):
      raise Missing('neither reached its target')
    by_left, by_right = {
        '+': (1.0, 1.0),
        '-': (1.0, -1.0),
        '*': (b, a),
        '/': (1 / b if b else 0.0, -a / b**2 if b else 0.0),
    }[self.operator]
    slopes = {}
    for part, slope in ((left, by_left), (right, by_right)):
      for cell, own in part.slopes.items():
        slopes[cell] = slopes.get(cell, 0.0) + slope * own
    signs = {
        (cell, sign * _sign(slope))
        for part, slope in ((left, by_left), (right, by_right))
        for cell, sign in part.signs
        if slope
    }
    return Evaluated(
        value, slopes, frozenset(signs), {**left.numbers, **right.numbers}
    )

  def __str__(self):
    return f'({self.left} {self.operator} {self.right})'


def _sign(value):
  return 1 if value > 0 else -1


def _if_better(cell, sign):
  """Where a value moves if a better setting of a cell is found."""
  return -sign if cell.lower_is_better else sign


@dataclasses.dataclass(frozen=True)
class _Extreme(Expression):
  """The largest or smallest of several, all of which must be there."""

  parts: tuple[Expression, ...]
  largest: bool

  def evaluate(self, lookup):
    found = [part.evaluate(lookup) for part in self.parts]
    choose = max if self.largest else min
    chosen = choose(found, key=lambda f: f.value)
    return _joined(chosen, found, 1 if self.largest else -1)

  def __str__(self):
    name = 'max' if self.largest else 'min'
    return f'{name}({", ".join(map(str, self.parts))})'


def _joined(chosen, found, side=0):
  """One of several; the others could move it to one side only, 0 for both."""
  signs = set(chosen.signs)
  for other in found:
    signs |= {
        (cell, sign)
        for cell, sign in other.signs
        if not side or _if_better(cell, sign) == side
    }
  return dataclasses.replace(
      chosen,
      signs=frozenset(signs),
      numbers={c: n for f in found for c, n in f.numbers.items()},
  )


def best(*parts: Expression) -> Expression:
  """The largest; of numbers to be minimised take `worst`."""
  return _Extreme(parts, True)


def worst(*parts: Expression) -> Expression:
  """The smallest."""
  return _Extreme(parts, False)


def spread(*parts: Expression) -> Expression:
  """The largest minus the smallest."""
  return best(*parts) - worst(*parts)


@dataclasses.dataclass(frozen=True)
class _Share(Expression):
  """Which part of several numbers is near the best of them."""

  parts: tuple[Cell, ...]
  of_best: float

  def evaluate(self, lookup):
    found = [part.evaluate(lookup) for part in self.parts]
    level = self.of_best * max(f.value for f in found)
    good = sum(f.value >= level for f in found)
    joined = _joined(found[0], found)
    # A step function: its noise is that of the rule, not of its cells.
    return dataclasses.replace(joined, value=good / len(found), slopes={})

  def __str__(self):
    text = ', '.join(map(str, self.parts))
    return f'share of ({text}) at {self.of_best:g} of the best'


def share(parts: Sequence[Cell], of_best: float) -> Expression:
  """Which part of the numbers is at least `of_best` times the best."""
  return _Share(tuple(parts), of_best)


@dataclasses.dataclass(frozen=True)
class _MeanOfKnown(Expression):
  """The mean of those that are there."""

  parts: tuple[Expression, ...]

  def evaluate(self, lookup):
    known, error = [], None
    for part in self.parts:
      try:
        part.evaluate(lookup)
        known.append(part)
      except Missing as e:
        error = e
    if not known:
      raise error or Missing('nothing to average')
    return mean(*known).evaluate(lookup)

  def __str__(self):
    return f'mean({", ".join(map(str, self.parts))})'


def mean_of_known(*parts: Expression) -> Expression:
  """The mean over columns, of which a profile may run some."""
  return _MeanOfKnown(parts)


def mean(*parts: Expression) -> Expression:
  total = parts[0]
  for part in parts[1:]:
    total += part
  return total * (1 / len(parts))


@dataclasses.dataclass(frozen=True)
class Least(Expression):
  """The least of what is there, by label: what holds everywhere it was run.

  Rows that were not run or learnt nothing are left out and counted.
  """

  parts: Mapping[str, Expression]

  def evaluate(self, lookup):
    found, error = {}, None
    for label, part in self.parts.items():
      try:
        found[label] = part.evaluate(lookup)
      except (Missing, NothingLearnt) as e:
        # That something learnt nothing says more than that it was not run.
        error = e if isinstance(e, NothingLearnt) else error or e
    if not found:
      raise error or Missing('nothing to compare')
    lowest = min(found, key=lambda label: found[label].value)
    return dataclasses.replace(
        _joined(found[lowest], list(found.values()), -1),
        items=len(found),
        of=len(self.parts),
        lowest=lowest,
    )

  def __str__(self):
    cases = [f'{label}: {part}' for label, part in self.parts.items()]
    # The others are alike.
    more = f', and {len(cases) - 3} more' if cases[3:] else ''
    return f'least of {", ".join(cases[:3])}{more}'


def least(parts: Iterable[tuple[str, Expression]]) -> Least:
  """What must hold everywhere: (label, expression) of each case."""
  return Least(dict(parts))


@dataclasses.dataclass(frozen=True)
class Rule:
  """An expression and what it must be.

  Attributes:
    value: The expression; large where the claim holds if `at_least` is given,
      small if `at_most` is.
    at_least: The claim holds from here.
    at_most: The claim of equality holds up to here.
    noise: Which entry of `results/noise.csv` says how far two runs with other
      seeds differ; '' for what is computed without chance.
    rounds: Claims about where training ends need that many.
  """

  value: Expression
  at_least: float | None = None
  at_most: float | None = None
  noise: str = 'points'
  rounds: int = 0

  def __post_init__(self):
    if (self.at_least is None) == (self.at_most is None):
      raise ValueError('a rule has either at_least or at_most')

  def __str__(self):
    if self.at_most is not None:
      return f'{self.value} <= {self.at_most:g}'
    return f'{self.value} >= {self.at_least:g}'

  @property
  def tables(self) -> tuple[str, ...]:
    """Ids of the tables whose numbers decide it."""
    return tuple(dict.fromkeys(cell.table for cell in cells(self.value)))

  def holds(self, value: float) -> bool:
    """Whether the claim holds for a number taken as exact."""
    # Decimal fractions such as 0.01 are not exact in binary.
    if self.at_most is not None:
      return value <= self.at_most + 1e-9
    return value >= self.at_least - 1e-9


def cells(expression: Expression) -> tuple[Cell, ...]:
  """All cells of an expression."""
  if isinstance(expression, Cell):
    return (expression,)
  if isinstance(expression, _Binary):
    parts = (expression.left, expression.right)
  elif isinstance(expression, _Extreme | _Share | _MeanOfKnown):
    parts = expression.parts
  elif isinstance(expression, Least):
    parts = tuple(expression.parts.values())
  else:
    parts = ()
  return tuple(dict.fromkeys(cell for part in parts for cell in cells(part)))


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


def judge_published(rule: Rule, lookup: Lookup) -> Verdict:
  """Judges the papers' own numbers, which are taken as they are printed."""
  try:
    found = rule.value.evaluate(lookup)
  except Missing as e:
    return Verdict(NOT_RUN, str(e))
  # A part of the cells is not what the claim is about.
  verdict = 'satisfied' if rule.holds(found.value) else 'contradicted'
  return Verdict(verdict, '', found.value, 0.0, _coverage(found))


def judge(rule: Rule, lookup: Lookup, noise: Mapping[str, float]) -> Verdict:
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
  except NothingLearnt as e:
    return Verdict(UNDECIDED, f'nothing learnt: {e}')
  except Missing as e:
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
      and (_if_better(cell, sign) > 0) == wanted
  })


_PANEL_METRICS = {
    'factor': 'time factor over FedAvg',
    'seconds': 'wall clock per round',
}


def of_published(path: pathlib.Path | None = None) -> Lookup:
  """Looks numbers up in `results/paper.csv`."""
  found = {}
  for number in published_lib.load(path or published_lib.PATH):
    key = (number.table, number.row, number.column)
    found.setdefault(key, {})[number.metric] = number

  def lookup(cell):
    row, column = cell.printed or (cell.row, cell.column)
    table = cell.printed_table or cell.table
    metrics = found.get((table, row, column), {})
    metric = _PANEL_METRICS.get(cell.panel, cell.panel)
    number = metrics.get(metric) or next(iter(metrics.values()), None)
    if number is None or (len(metrics) > 1 and metric not in metrics):
      raise Missing(f'not published: {cell}')
    return Number(number.value, number.std)

  return lookup


def of_tables(
    folder: pathlib.Path, profile: str, trivial: pathlib.Path = TRIVIAL
) -> Lookup:
  """Looks numbers up in the CSV files of tables.

  Args:
    folder: Has `TABLE.csv`: of stored references, or a run's `--out_dir`.
    profile: Rows of other profiles are not used.
    trivial: What a row must reach to count as having learnt.
  """
  needed = {
      (row['table'], row['row']): float(row['needed'])
      for row in read(trivial)
      if row['profile'] in ('', profile)
  }
  tables = {}

  def rows(table):
    if table not in tables:
      path = folder / f'{table}.csv'
      tables[table] = {
          (r['panel'], r['row'], r['column']): r
          for r in (read(path) if path.exists() else ())
          if r['profile'] == profile
      }
    return tables[table]

  def lookup(cell):
    own = rows(cell.table)
    row = own.get((cell.panel, cell.row, cell.column))
    if row is None or row['status'] != 'done' or not row['ours_mean']:
      raise Missing(f'{cell.table}: {cell}')
    value = float(row['ours_mean'])
    if math.isnan(value):
      raise Missing(f'{cell.table}: {cell} is no number')
    level = needed.get((cell.table, cell.row))
    if level is not None:
      values = [
          float(r['ours_mean'])
          for (panel, label, _), r in own.items()
          if (panel, label) == (cell.panel, cell.row) and r['ours_mean']
      ]
      top = min(values) if cell.lower_is_better else max(values)
      if top > level if cell.lower_is_better else top < level:
        raise NothingLearnt(f'{cell.row} {top:g}, needed {level:g}')
    return Number(
        value,
        float(row['ours_std']) if row['ours_std'] else None,
        max(1, len(row['seeds'].split())),
        int(row['rounds']) if row['rounds'] else None,
        at_border(row['setting'], row['setting_source']),
    )

  return lookup


# An axis of a grid of decimal exponents, such as `client -1, -0.5, 0`.
_AXIS = re.compile(r'\b(client|server) (-?[\d.]+(?:, -?[\d.]+)*)')

_SYMBOLS = {'rate': 'client_learning_rate', 'μ': 'mu'}
_VALUES = re.compile(r'\((rate|μ) (-?[\d.]+(?:, -?[\d.]+)*)\)')


def at_border(setting: str, source: str) -> bool:
  """Whether a chosen setting lies on the border of the grid it is from.

  Args:
    setting: `name=value` of each hyperparameter, separated by spaces.
    source: Where it is from, which names the grid of rates if there is one.
  """
  if source == 'part of the grid':
    return True  # The grid is not named, so nothing excludes it.
  if not source.startswith('ours-tuned'):
    return False
  values = dict(part.split('=', 1) for part in setting.split() if '=' in part)
  for axis, text in _AXIS.findall(source):
    exponents = [float(text_) for text_ in text.split(', ')]
    rate = values.get(f'{axis}_learning_rate')
    # One value is a choice of ours, no grid.
    if rate is None or len(exponents) < 2 or float(rate) <= 0:
      continue
    chosen = math.log10(float(rate))
    ends = (min(exponents), max(exponents))
    if any(abs(chosen - end) < 1e-3 for end in ends):
      return True
  # Some grids are of one hyperparameter, and name its values.
  for symbol, text in _VALUES.findall(source):
    tried = [float(text_) for text_ in text.split(', ')]
    value = values.get(_SYMBOLS[symbol])
    if value and len(tried) > 1 and float(value) in (min(tried), max(tried)):
      return True
  return False


def read(path: pathlib.Path) -> Sequence[dict[str, str]]:
  """Reads a CSV file as text."""
  with open(path, newline='', encoding='utf-8') as f:
    return list(csv.DictReader(f))


def noise(path: pathlib.Path = NOISE) -> dict[str, float]:
  """Reads how far runs with other seeds differ, by the names of rules."""
  return {row['name']: float(row['half_width']) for row in read(path)}
