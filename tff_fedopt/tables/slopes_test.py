"""Slopes whose values are known."""

import numpy as np
import pytest

from tff_fedopt.tables import slopes


def test_slopes_and_their_errors():
  assert slopes.log_log([1, 2, 4], [3, 12, 48]) == pytest.approx((2, 0))
  # Residuals ±δ, ∓2δ, ±δ: no slope, error √(6 δ² / 1 / Σ x²).
  d, x = 0.1, np.log(2)
  slope, error = slopes.log_log([1, 2, 4], np.exp([d, -2 * d, d]))
  assert slope == pytest.approx(0)
  assert error == pytest.approx(np.sqrt(6 * d**2 / (2 * x**2)))
  assert slopes.linear([-1, 0, 1], [1, 3, 5]) == pytest.approx((2, 0))
  values = np.array([-0.2, 0.0, 0.1, 0.3])
  found = slopes.semi_log(values, 5 * np.exp(-3 * values))
  assert found == pytest.approx((-3, 0))


def test_what_has_no_slope_is_refused():
  for fit in (slopes.linear, slopes.log_log, slopes.semi_log):
    with pytest.raises(ValueError, match='three or more'):
      fit([1, 2], [1, 2])
  for fit in (slopes.log_log, slopes.semi_log):
    with pytest.raises(ValueError, match='not above 0'):
      fit([1, 2, 3], [1, 0, 2])
