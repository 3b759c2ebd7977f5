"""Reductions of a run's metrics to the one number a table shows."""

import math

import pandas as pd


def column(frame: pd.DataFrame, metric: str) -> str:
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


def reduce(
    frame: pd.DataFrame,
    metric: str,
    reduction: str,
    higher_is_better: bool = True,
) -> float:
  """Reduces one metric of a run to a number.

  Rounds in which the metric was not evaluated count for nothing. Reductions:
    last:N              mean over the last N rounds
    best                best value of all rounds
    at:R                value at round R
    median              median of all rounds
    rounds_to:V         first round whose value is V or better, inf if none
    seconds_to:V        time of training up to that round, from `round_time`
    smooth:W:last:N:F   F (max, min or mean) over the last N rounds of the mean
                        of the latest W evaluations (fewer at the beginning)

  Args:
    frame: A run's metrics: `round`, and one column per metric.
    metric: The metric's column, with or without its unit.
    reduction: One of the above.
    higher_is_better: Whether larger values are better.

  Returns:
    The number, in the column's unit (of `rounds_to`: rounds, of `seconds_to`:
    s). NaN where it does not exist: a round that was not reached or evaluated,
    or the last rounds of a run that diverged.

  Raises:
    ValueError: If the reduction or the metric is unknown.
  """
  kind, *arguments = reduction.split(':')
  rounds = frame['round']
  values = frame[column(frame, metric)].astype(float)
  if kind == 'seconds_to':
    seconds = frame[column(frame, 'round_time')]
  try:
    if kind == 'last' and len(arguments) == 1:
      return _over_last(frame, values, _positive(arguments[0]), 'mean')
    if kind == 'best' and not arguments:
      return float(values.max() if higher_is_better else values.min())
    if kind == 'at' and len(arguments) == 1:
      at_round = values[rounds == _positive(arguments[0])]
      return float(at_round.iloc[0]) if len(at_round) else math.nan
    if kind == 'median' and not arguments:
      return float(values.median())
    if kind in ('rounds_to', 'seconds_to') and len(arguments) == 1:
      target = float(arguments[0])
      there = values >= target if higher_is_better else values <= target
      reached = float(rounds[there].min()) if there.any() else math.inf
      if kind == 'rounds_to' or math.isinf(reached):
        return reached
      return float(seconds[rounds <= reached].sum())
    if kind == 'smooth' and len(arguments) == 4 and arguments[1] == 'last':
      window, last = _positive(arguments[0]), _positive(arguments[2])
      if arguments[3] in ('max', 'min', 'mean'):
        smooth = values.dropna().rolling(window, min_periods=1).mean()
        return _over_last(frame, smooth, last, arguments[3])
  except ValueError:  # A count or value that is not a number.
    pass
  raise ValueError(
      f'unknown reduction {reduction!r}; one of last:N, best, at:R, median,'
      ' rounds_to:VALUE, seconds_to:VALUE, smooth:W:last:N:max|min|mean'
  )


def _positive(text: str) -> int:
  if not text.isdecimal() or int(text) < 1:
    raise ValueError(text)
  return int(text)


def _over_last(frame, values, count, statistic) -> float:
  if 'diverged' in frame and frame['diverged'].any():
    return math.nan
  rounds = frame['round']
  chosen = values[rounds.reindex(values.index) > rounds.max() - count]
  return float(getattr(chosen, statistic)())
