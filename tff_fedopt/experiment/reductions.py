"""Reductions of a run's metrics to the one number a table shows."""

import abc
import dataclasses
import math
import re
import typing
from typing import Any, ClassVar

if typing.TYPE_CHECKING:
  import pandas as pd  # Listing tables goes without it.


def column(frame: 'pd.DataFrame', metric: str) -> str:
  """Returns the column of a metric, whose header may carry a unit.

  Args:
    frame: A run's metrics, as in metrics.csv.
    metric: A header, or one without its unit: `validation/accuracy` for
      `validation/accuracy [%]`.

  Raises:
    ValueError: If there is no such column.
  """
  for name in frame.columns:
    if name == metric or name.split(' [')[0] == metric:
      return name
  raise ValueError(
      f'no metric {metric!r} in the run; it has {", ".join(frame.columns)}'
  )


@dataclasses.dataclass(frozen=True)
class Reduction(abc.ABC):
  """A rule that makes one number of a metric; `str` gives its one spelling.

  Rounds in which the metric was not evaluated count for nothing.

  Attributes:
    FORM: How it is written, with the names of its fields.
    is_to_target: Whether the number says when a target was reached.
  """

  FORM: ClassVar[str]
  is_to_target: ClassVar[bool] = False

  def __post_init__(self):
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      if field.type is int and not (isinstance(value, int) and value >= 1):
        raise ValueError(
            f'{field.name}: {value!r}; expected a whole number, 1 or more'
        )
      if field.type is float and not math.isfinite(value):
        raise ValueError(f'{field.name}: {value!r}; expected a number')

  def __str__(self) -> str:
    return self.FORM.format(**{
        name: f'{value:.12g}' if isinstance(value, float) else value
        for name, value in vars(self).items()
    })

  @abc.abstractmethod
  def apply(
      self, frame: 'pd.DataFrame', metric: str, higher_is_better: bool = True
  ) -> float:
    """Reduces one metric of a run to a number.

    Args:
      frame: A run's metrics: `round`, and one column per metric.
      metric: The metric's column, with or without its unit.
      higher_is_better: Whether larger values are better.

    Returns:
      The number, in the column's unit unless the class says otherwise. NaN
      where it does not exist: a round that was not reached or evaluated, or the
      last rounds of a run that diverged.

    Raises:
      ValueError: If the metric is unknown.
    """


@dataclasses.dataclass(frozen=True)
class Last(Reduction):
  """The mean over the last rounds."""

  FORM = 'last:{rounds}'
  rounds: int

  def apply(self, frame, metric, higher_is_better=True):
    return _over_last(frame, _values(frame, metric), self.rounds, 'mean')


@dataclasses.dataclass(frozen=True)
class Best(Reduction):
  """The best value of all rounds."""

  FORM = 'best'

  def apply(self, frame, metric, higher_is_better=True):
    values = _values(frame, metric)
    return float(values.max() if higher_is_better else values.min())


@dataclasses.dataclass(frozen=True)
class At(Reduction):
  """The value at a round."""

  FORM = 'at:{round}'
  round: int

  def apply(self, frame, metric, higher_is_better=True):
    there = _values(frame, metric)[frame['round'] == self.round]
    return float(there.iloc[0]) if len(there) else math.nan


@dataclasses.dataclass(frozen=True)
class Median(Reduction):
  """The median of all rounds."""

  FORM = 'median'

  def apply(self, frame, metric, higher_is_better=True):
    return float(_values(frame, metric).median())


@dataclasses.dataclass(frozen=True)
class Mean(Reduction):
  """The mean of all rounds."""

  FORM = 'mean'

  def apply(self, frame, metric, higher_is_better=True):
    return float(_values(frame, metric).mean())


@dataclasses.dataclass(frozen=True)
class RoundsTo(Reduction):
  """The first round whose value is the target or better; inf if none is."""

  FORM = 'rounds_to:{target}'
  is_to_target = True
  target: float

  def apply(self, frame, metric, higher_is_better=True):
    values = self._curve(_values(frame, metric))
    there = values >= self.target if higher_is_better else values <= self.target
    rounds = frame['round'].reindex(values.index)
    return float(rounds[there].min()) if there.any() else math.inf

  def _curve(self, values: Any) -> Any:
    """The values by round in which the target is looked for."""
    return values


@dataclasses.dataclass(frozen=True)
class SecondsTo(RoundsTo):
  """Seconds up to the round of `RoundsTo`: of training, from `round_time`.

  Attributes:
    TIMES: The columns that make up a round's time.
  """

  FORM = 'seconds_to:{target}'
  TIMES: ClassVar[tuple[str, ...]] = ('round_time',)

  def apply(self, frame, metric, higher_is_better=True):
    reached = super().apply(frame, metric, higher_is_better)
    seconds = sum(frame[column(frame, name)] for name in self.TIMES)
    if math.isinf(reached):
      return reached
    return float(seconds[frame['round'] <= reached].sum())


@dataclasses.dataclass(frozen=True)
class SmoothRoundsTo(RoundsTo):
  """`RoundsTo` of the mean of the latest evaluations.

  Attributes:
    window: Evaluations that are averaged; fewer at the beginning.
  """

  FORM = 'rounds_to:{target}:smooth:{window}'
  window: int

  def _curve(self, values):
    return _smoothed(values, self.window)


@dataclasses.dataclass(frozen=True)
class SmoothSecondsTo(SecondsTo, SmoothRoundsTo):
  """Seconds up to that round, of whole rounds: evaluation is part of them."""

  FORM = 'seconds_to:{target}:smooth:{window}'
  TIMES = ('round_time', 'evaluation_time')


@dataclasses.dataclass(frozen=True)
class Smooth(Reduction):
  """A statistic, over the last rounds, of the mean of the latest evaluations.

  Attributes:
    window: Evaluations that are averaged; fewer at the beginning.
    rounds: How many of the last rounds count.
    statistic: `max`, `min` or `mean`.
  """

  FORM = 'smooth:{window}:last:{rounds}:{statistic}'
  window: int
  rounds: int
  statistic: str

  def __post_init__(self):
    super().__post_init__()
    if self.statistic not in ('max', 'min', 'mean'):
      raise ValueError(
          f'statistic: {self.statistic!r}; one of max, min, mean'
      )

  def apply(self, frame, metric, higher_is_better=True):
    smooth = _smoothed(_values(frame, metric), self.window)
    return _over_last(frame, smooth, self.rounds, self.statistic)


_KINDS = (
    Last,
    Best,
    At,
    Median,
    Mean,
    RoundsTo,
    SecondsTo,
    SmoothRoundsTo,
    SmoothSecondsTo,
    Smooth,
)


def parse(text: str) -> Reduction:
  """Returns the reduction that a text names, as `last:8`.

  Args:
    text: The `FORM` of one of the classes here, with values.

  Raises:
    ValueError: If there is no such reduction.
  """
  for kind in _KINDS:
    pattern = re.sub(r'{(\w+)}', r'(?P<\1>[^:]+)', kind.FORM)
    if found := re.fullmatch(pattern, text):
      types = {f.name: f.type for f in dataclasses.fields(kind)}
      try:
        return kind(**{
            name: types[name](value)
            for name, value in found.groupdict().items()
        })
      except ValueError as e:
        raise ValueError(f'unknown reduction {text!r}; {e}') from e
  raise ValueError(
      f'unknown reduction {text!r}; one of'
      f' {", ".join(kind.FORM for kind in _KINDS)}'
  )


def _values(frame, metric) -> Any:
  return frame[column(frame, metric)].astype(float)


def _smoothed(values, window) -> Any:
  """The mean of the latest evaluations, of each evaluation."""
  return values.dropna().rolling(window, min_periods=1).mean()


def _over_last(frame, values, count, statistic) -> float:
  if 'diverged' in frame and frame['diverged'].any():
    return math.nan
  rounds = frame['round']
  chosen = values[rounds.reindex(values.index) > rounds.max() - count]
  return float(getattr(chosen, statistic)())
