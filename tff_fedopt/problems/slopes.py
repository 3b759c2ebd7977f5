"""How a number depends on another: the slope on logarithmic scales."""

from collections.abc import Sequence

import numpy as np


def log_log(
    values: Sequence[float], numbers: Sequence[float]
) -> tuple[float, float]:
  """Fits log number = a + b log value by least squares.

  Args:
    values: Above 0, at least three different ones.
    numbers: Above 0, as many.

  Returns:
    b, and its standard error from the residuals (two parameters are fitted).

  Raises:
    ValueError: If there are fewer than three points, or one is not above 0.
  """
  values, numbers = np.asarray(values, float), np.asarray(numbers, float)
  if len(values) < 3 or values.shape != numbers.shape:
    raise ValueError(
        f'{len(values)} values and {len(numbers)} numbers; a slope with its'
        ' error needs as many of both, three or more'
    )
  if not (values > 0).all() or not (numbers > 0).all():
    raise ValueError('a point is not above 0 and has no logarithm')
  x, y = np.log(values), np.log(numbers)
  x = x - x.mean()
  slope = x @ y / (x @ x)
  residuals = y - y.mean() - slope * x
  error = np.sqrt(residuals @ residuals / (len(x) - 2) / (x @ x))
  return float(slope), float(error)
