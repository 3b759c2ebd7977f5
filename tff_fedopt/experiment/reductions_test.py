"""Tests of the reductions, with numbers."""

import math

import pandas as pd
import pytest

from tff_fedopt.experiment import reductions

_NAN = math.nan


def _frame(values, **columns):
  return pd.DataFrame({
      'round': range(1, len(values) + 1),
      'validation/accuracy [%]': values,
      **columns,
  })


@pytest.mark.parametrize(
    'values, reduction, higher_is_better, expected',
    [
        ([1, 2, 3, 4], 'last:2', True, 3.5),
        ([1, 2, 3, 4], 'last:100', True, 2.5),
        # Of the last four rounds, two were evaluated.
        ([9, _NAN, 2, _NAN, 4], 'last:4', True, 3.0),
        ([1, 5, 3], 'best', True, 5.0),
        ([1, 5, 3], 'best', False, 1.0),
        ([1, 5, 3], 'at:2', True, 5.0),
        ([1, _NAN, 3], 'at:2', True, _NAN),
        ([1, 5, 3], 'at:4', True, _NAN),
        ([1, 5, 3, 6], 'rounds_to:5', True, 2.0),
        ([1, 5, 3, 6], 'rounds_to:6.5', True, math.inf),
        ([4, _NAN, 3, 1], 'rounds_to:3', False, 3.0),
        ([1, _NAN, 5, 3], 'median', True, 3.0),
        # Means of three: 1, 1.5, 2, 4, 4, 3; the last two are 4 and 3.
        ([1, 2, 3, 7, 2, 0], 'smooth:3:last:2:max', True, 4.0),
        ([1, 2, 3, 7, 2, 0], 'smooth:3:last:2:min', True, 3.0),
        ([1, 2, 3, 7, 2, 0], 'smooth:3:last:3:mean', True, 11 / 3),
        # Evaluated every second round: means of two are 1, 2, 5.
        ([1, _NAN, 3, _NAN, 7], 'smooth:2:last:3:max', True, 5.0),
    ],
)
def test_reduction(values, reduction, higher_is_better, expected):
  parsed = reductions.parse(reduction)
  assert str(parsed) == reduction
  result = parsed.apply(_frame(values), 'validation/accuracy', higher_is_better)
  assert result == pytest.approx(expected, nan_ok=True)


def test_last_rounds_of_a_diverged_run_do_not_exist():
  frame = _frame([60, 70, _NAN], diverged=[0, 0, 1])
  for reduction in (reductions.Last(2), reductions.Smooth(2, 2, 'max')):
    assert math.isnan(reduction.apply(frame, 'validation/accuracy'))
  assert reductions.Best().apply(frame, 'validation/accuracy') == 70


def test_metric_is_found_with_or_without_unit():
  frame = _frame([1], **{'validation/accuracy_top5 [%]': [2]})
  assert reductions.column(frame, 'validation/accuracy') == (
      'validation/accuracy [%]'
  )
  at_first = reductions.At(1)
  assert at_first.apply(frame, 'validation/accuracy_top5 [%]') == 2
  with pytest.raises(ValueError, match="'validation/loss'.*accuracy_top5"):
    at_first.apply(frame, 'validation/loss')


def test_one_spelling():
  assert str(reductions.parse('rounds_to:0.50')) == 'rounds_to:0.5'
  assert reductions.parse('last:08') == reductions.Last(8)
  assert reductions.RoundsTo(0.5) != reductions.SecondsTo(0.5)
  assert str(reductions.SecondsTo(0.1 + 0.2)) == 'seconds_to:0.3'


@pytest.mark.parametrize(
    'reduction',
    ['', 'last', 'last:0', 'last:-1', 'last:x', 'best:2', 'at:', 'mean:3',
     'rounds_to:0.5:smooth:0',
     'rounds_to:x', 'smooth:3:max', 'smooth:3:last:2:median'],
)
def test_unknown_reduction_is_refused(reduction):
  named = f'unknown reduction {reduction!r}; '
  with pytest.raises(ValueError, match=named) as e:
    reductions.parse(reduction)
  assert '\n' not in str(e.value)


def test_a_target_is_looked_for_in_the_smoothed_curve():
  # Evaluated every second round; means of the latest two: 0.2, 0.4, 0.35, 0.5.
  values = [math.nan, 0.2, math.nan, 0.6, math.nan, 0.1, math.nan, 0.9]
  times = {'round_time': [1.0] * 8, 'evaluation_time': [0, 2.0] * 4}
  frame = _frame(values, **times)
  apply = lambda text: reductions.parse(text).apply(
      frame, 'validation/accuracy'
  )
  assert apply('rounds_to:0.5') == 4
  assert apply('rounds_to:0.49:smooth:2') == 8
  assert apply('rounds_to:0.39:smooth:2') == 4
  assert apply('rounds_to:0.6:smooth:2') == math.inf
  assert apply('seconds_to:0.5') == 4
  # Of whole rounds, as the times beside which it stands.
  assert apply('seconds_to:0.49:smooth:2') == 8 + 4 * 2
  assert apply('seconds_to:0.39:smooth:2') == 4 + 2 * 2


def test_mean_is_of_the_rounds_that_have_a_value():
  frame = _frame([1.0, math.nan, 4.0])
  assert reductions.parse('mean').apply(frame, 'validation/accuracy') == 2.5
