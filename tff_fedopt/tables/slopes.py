"""How a number depends on another: the slope and its standard error."""

from collections.abc import Sequence

import numpy as np


def linear(
    values: Sequence[float], numbers: Sequence[float]
) -> tuple[float, float]:
  """Fits number = a + b value by least squares.

  Args:
    values: At least three, not all the same.
    numbers: As many.

  Returns:
    b, and its standard error from the residuals (two parameters are fitted).

  Raises:
    ValueError: If there are fewer than three points.
  """
  x, y = np.asarray(values, float), np.asarray(numbers, float)
  if len(x) < 3 or x.shape != y.shape:
    raise ValueError(
        f'{len(x)} values and {len(y)} numbers; a slope with its error needs as'
        ' many of both, three or more'
    )
  x = x - x.mean()
  slope = x @ y / (x @ x)
  residuals = y - y.mean() - slope * x
  error = np.sqrt(residuals @ residuals / (len(x) - 2) / (x @ x))
  return float(slope), float(error)


def log_log(
    values: Sequence[float], numbers: Sequence[float]
) -> tuple[float, float]:
  """Fits log number = a + b log value, as `linear` does.

  Args:
    values: Above 0, at least three different ones.
    numbers: Above 0, as many.

  Returns:
    b, and its standard error.

  Raises:
    ValueError: If there are fewer than three points, or one is not above 0.
  """
  if min(values) <= 0 or min(numbers) <= 0:
    raise ValueError('a point is not above 0 and has no logarithm')
  return linear(np.log(values), np.log(numbers))


def semi_log(
    values: Sequence[float], numbers: Sequence[float]
) -> tuple[float, float]:
  """Fits log number = a + b value: the relative change of the number by value.

  Args:
    values: At least three different ones.
    numbers: Above 0, as many.

  Returns:
    b, and its standard error.

  Raises:
    ValueError: If there are fewer than three points, or a number is not above
      0.
  """
  if min(numbers) <= 0:
    raise ValueError('a point is not above 0 and has no logarithm')
  return linear(values, np.log(numbers))
