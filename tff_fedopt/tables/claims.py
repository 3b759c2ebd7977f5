"""Claims of papers as rules on the numbers of tables.

A rule is an expression of a few kinds (a cell, arithmetic, the best and the
worst of several, the least over rows) and what it must be. The same expression
is evaluated on published numbers and on ours. Beside its value it carries how
each cell moves it, from which follow its confidence interval and whether a
better tuned cell could turn the verdict.

Importing this needs neither TensorFlow nor pandas.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import math
import operator


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


def if_better(cell, sign):
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
        if not side or if_better(cell, sign) == side
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
