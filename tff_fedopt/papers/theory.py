"""How tables of theory are laid out: points, slopes, claims, agreement.

A measuring function takes `seed` and numbers or texts by name and returns a
`Measured`. A sweep shows it over one of its arguments, and the slope of its
logarithm over that argument's; a claim is one number that decides a statement.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
import json
import math
from typing import Any

from tasks import source
from tff_fedopt.problems import in_numpy
from tff_fedopt.problems import noisy_quadratics
from tff_fedopt.tables import slopes
from tff_fedopt.tables import spec

CLAIMS = 'Claims'
SLOPES = 'Slopes on logarithmic scales'
AGREEMENT = 'These runs in NumPy against the library'
_SOURCE = source.guessed('the statements leave the problem and its sizes free')
NOTES = (
    'Quadratic clients F_i(x) = ½ (x − m_i)ᵀ H_i (x − m_i) with curvatures from'
    ' 0.5 to 2 and axes of their own, in 4 dimensions; not convex: + 0.3 Σ cos'
    ' 2x (where it is so). Claims: one number each, its rule in brackets.',
    'Slopes: least squares of logarithms over the points above, standard error'
    ' from their residuals. Runs in NumPy, written independently of the'
    ' library; the last panel is how far they are from it.',
)

LOG = spec.Quantity('log10', higher_is_better=False, decimals=2)
SLOPE = spec.Quantity('slope', decimals=3)


def number(name: str, decimals: int = 3, **changes: Any) -> spec.Quantity:
  """A quantity without unit, less of which is better."""
  return spec.Quantity(
      name, higher_is_better=False, decimals=decimals, **changes
  )


def log10(value: float) -> float:
  """log10 of a distance; −12 for less: what rounding leaves is none."""
  return max(math.log10(value), -12.0) if value > 0 else -12.0


def cached(function: Callable[..., spec.Measured]):
  """Keeps what a measuring function returned, by its arguments."""
  kept = {}

  @functools.wraps(function)
  def call(**arguments):
    key = json.dumps(arguments, sort_keys=True)
    if key not in kept:
      kept[key] = function(**arguments)
    return kept[key]

  return call


class Slope:
  """The slope of a measured number over one of its arguments, or its error."""

  def __init__(
      self,
      function: Callable[..., spec.Measured],
      part: str,
      relative: bool = False,
  ):
    """Keeps what it is the slope of.

    Args:
      function: What measures the number.
      part: `slope`, or its standard `error`.
      relative: Whether it is that of the number's logarithm over the value
        itself, which may be 0 or less, and not over the value's logarithm.
    """
    self._function, self._part = function, ('slope', 'error').index(part)
    self._fit = slopes.semi_log if relative else slopes.log_log
    # By module and name a measurement is known.
    self.__module__ = function.__module__
    kind = 'relative_' if relative else ''
    self.__qualname__ = f'{function.__qualname__}.{kind}{part}'

  def __call__(
      self, seed: int, over: str, values: Sequence[float], **arguments
  ):
    """Measures at all values; returns the slope."""
    numbers = [
        self._function(seed=seed, **{over: v}, **arguments).value
        for v in values
    ]
    found = self._fit(values, numbers)[self._part]
    return spec.Measured(found if abs(found) > 1e-9 else 0.0)


def cell(
    panel: str,
    row: str,
    column: str,
    function: Callable[..., spec.Measured],
    quantity: spec.Quantity,
    arguments: Mapping[str, Any] | None = None,
) -> spec.Cell:
  """Returns a measured cell."""
  return spec.Cell(
      row,
      column,
      panel=panel,
      quantity=quantity,
      measure=spec.Measure(function, dict(arguments or {}), _SOURCE),
  )


def claim(
    row: str,
    function: Callable[..., spec.Measured],
    quantity: spec.Quantity,
    **arguments: Any,
) -> spec.Cell:
  """Returns the cell whose number decides a statement; `row` says the rule."""
  return cell(CLAIMS, row, 'measured', function, quantity, arguments)


def sweep(
    panel: str,
    row: str,
    function: Callable[..., spec.Measured],
    quantity: spec.Quantity,
    over: str,
    symbol: str,
    values: Sequence[float],
    slope: str = '',
    relative: bool = False,
    fitted: Sequence[float] = (),
    **arguments: Any,
) -> list[spec.Cell]:
  """Returns the number at each value, and its slope with standard error.

  Args:
    panel: The panel of the numbers.
    row: Their row.
    function: What measures one.
    quantity: What it is.
    over: Name of the argument that changes.
    symbol: What columns call it.
    values: What it is set to.
    slope: The row in the panel of slopes, which says what theory says; '' for
      no slope.
    relative: As `Slope` takes it.
    fitted: The values that the slope is of; all if none are given.
    **arguments: The others.
  """
  cells = [
      cell(
          panel,
          row,
          f'{symbol} {value:g}'.replace('-', '−'),
          function,
          quantity,
          {over: value, **arguments},
      )
      for value in values
  ]
  if slope:
    given = {'over': over, 'values': list(fitted or values), **arguments}
    cells += [
        cell(SLOPES, slope, name, Slope(function, part, relative), SLOPE, given)
        for part, name in (('slope', 'slope'), ('error', 'standard error'))
    ]
  return cells


def ordered(cells: Sequence[spec.Cell]) -> list[spec.Cell]:
  """Claims first, then points, slopes and agreement, else as given."""
  last = {CLAIMS: 0, SLOPES: 2, AGREEMENT: 3}
  return sorted(cells, key=lambda c: last.get(c.panel, 1))


def agreement(
    algorithm: str, title: str = '', **hyperparameters: Any
) -> spec.Cell:
  """Returns the cell that compares NumPy's and the library's runs.

  Args:
    algorithm: Its name.
    title: The column, by default that name.
    **hyperparameters: Of the algorithm.
  """
  return cell(
      AGREEMENT,
      'largest difference of x (at most −5)',
      title or algorithm,
      library_difference,
      LOG,
      {'algorithm': algorithm, 'hyperparameters': hyperparameters},
  )


def library_difference(
    seed: int, algorithm: str, hyperparameters: Mapping[str, Any]
) -> spec.Measured:
  """log10 of how far a run in NumPy is from the library's.

  Five clients of which three take part, with unequal steps, noise and a problem
  that is not convex.
  """
  problem = noisy_quadratics.random_problem(
      seed, clients=5, copies=2, noise=0.5, ripple=0.2
  )
  plan = noisy_quadratics.Plan(3, (3, 1, 2, 4, 2), batch=2, seed=seed)
  return spec.Measured(
      log10(
          in_numpy.difference(problem, plan, 4, algorithm, hyperparameters)
      )
  )
