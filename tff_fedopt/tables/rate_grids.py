"""One number of a whole grid of rates: where good pairs lie, how many are.

A cell's candidates are the points of the grid: a client rate, a server rate,
and the number that a run with them gave. A run that diverged is worse than any
other. Rates are base-10 logarithms.
"""

import abc
from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tff_fedopt.tables import slopes


class Point(NamedTuple):
  """A pair of rates and its number; NaN where the run diverged."""

  client: float
  server: float
  value: float


def log_rates(hyperparameters: Mapping[str, Any]) -> tuple[float, float]:
  """Returns (log10 client rate, log10 server rate) of a setting.

  Args:
    hyperparameters: Those of a `spec.Setting`.
  """
  client, server = (
      round(math.log10(hyperparameters[f'{side}_learning_rate']), 9)
      for side in ('client', 'server')
  )
  return client, server


def _worth(point, higher):
  if math.isnan(point.value):
    return -math.inf
  return point.value if higher else -point.value


def _best(points, higher):
  """The best point, of equal ones the first; None if all diverged."""
  best = max(points, key=lambda point: _worth(point, higher))
  return None if math.isnan(best.value) else best


@dataclasses.dataclass(frozen=True)
class Rule(abc.ABC):
  """A rule that makes one number of a grid; `str` gives its one spelling."""

  FORM: ClassVar[str]

  def __str__(self) -> str:
    return self.FORM.format(**vars(self))

  @abc.abstractmethod
  def apply(self, points: Sequence[Point], higher_is_better: bool) -> float:
    """Returns the number of a grid; NaN where there is none.

    Args:
      points: The points, one or more.
      higher_is_better: Whether more of a point's number is better.
    """


@dataclasses.dataclass(frozen=True)
class BestServer(Rule):
  """The server rate of the best point."""

  FORM = 'server rate of the best point'

  def apply(self, points, higher_is_better):
    best = _best(points, higher_is_better)
    return best.server if best else math.nan


def _ridge(points, higher):
  """The best point of every client rate at which one did not diverge."""
  by_client = {}
  for point in points:
    by_client.setdefault(point.client, []).append(point)
  best = (_best(own, higher) for own in by_client.values())
  return [point for point in best if point]


@dataclasses.dataclass(frozen=True)
class Slope(Rule):
  """Decades of the best server rate by a decade of the client rate.

  Least squares over the client rates.

  Attributes:
    part: `slope`, or its standard `error`.
  """

  FORM = '{part} of the best server rate over the client rate'
  part: str

  def apply(self, points, higher_is_better):
    ridge = _ridge(points, higher_is_better)
    if len(ridge) < 3:
      return math.nan
    found = slopes.linear(
        [point.client for point in ridge], [point.server for point in ridge]
    )
    return found[('slope', 'error').index(self.part)]


@dataclasses.dataclass(frozen=True)
class Share(Rule):
  """The part of all points that are nearly as good as the best.

  Attributes:
    within: From which fraction of the best a point counts; where less is
      better, up to the best over that.
  """

  FORM = 'points with {within:g} of the best or more'
  within: float

  def apply(self, points, higher_is_better):
    best = _best(points, higher_is_better)
    if best is None:
      return math.nan
    if higher_is_better:
      good = [point.value >= self.within * best.value for point in points]
    else:
      good = [point.value <= best.value / self.within for point in points]
    return sum(good) / len(points)


@dataclasses.dataclass(frozen=True)
class Fall(Rule):
  """How much worse the worst point of a line through the best one is.

  Relative to the best point; 0 where the metric is flat along the line, at most
  1: what diverged, or is more than twice as bad, has lost all.

  Attributes:
    along: What the points of the line share: `product` of the two rates, or
      the `server` rate.
  """

  FORM = 'fall from the best point along its {along}'
  along: str

  def apply(self, points, higher_is_better):
    best = _best(points, higher_is_better)
    if best is None or best.value == 0:
      return math.nan
    place = {
        'product': lambda point: point.client + point.server,
        'server': lambda point: point.server,
    }[self.along]
    line = [p for p in points if math.isclose(place(p), place(best))]
    if len(line) < 2:
      return math.nan
    worst = min(line, key=lambda point: _worth(point, higher_is_better))
    if math.isnan(worst.value):
      return 1.0
    return min(1.0, abs(best.value - worst.value) / abs(best.value))


def numbers(
    rule: Rule,
    rates: Sequence[tuple[float, float]],
    values: Sequence[Sequence[float]],
    higher_is_better: bool,
) -> tuple[float, ...]:
  """Applies a rule to the grid of each seed.

  Args:
    rule: The rule.
    rates: `log_rates` of each candidate.
    values: Of each candidate, the number of each seed.
    higher_is_better: Whether more is better.

  Returns:
    A number for each seed.
  """
  by_seed = np.asarray(values, float).T
  return tuple(
      float(
          rule.apply(
              [Point(*pair, float(v)) for pair, v in zip(rates, seed)],
              higher_is_better,
          )
      )
      for seed in by_seed
  )
