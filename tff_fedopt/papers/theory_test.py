"""How tables of theory are laid out, and what they compare with."""

import math

import pytest

from tff_fedopt import papers
from tff_fedopt.papers import theory
from tff_fedopt.tables import spec

TABLES = ('afo_theory', 'la_theory', 'vra_theory', 'init_theory', 'init_toy')


def _cube(seed, x, factor=1.0):
  return spec.Measured(factor * x**3 + seed)


def test_a_sweep_has_points_a_slope_and_its_error():
  cells = theory.sweep(
      'Cubes', 'of x', _cube, theory.LOG, 'x', 'x =', (1, 2, 4), 'over x',
      factor=5.0,
  )
  assert [(c.panel, c.row, c.column) for c in cells] == [
      *[('Cubes', 'of x', f'x = {k}') for k in (1, 2, 4)],
      (theory.SLOPES, 'over x', 'slope'),
      (theory.SLOPES, 'over x', 'standard error'),
  ]
  values = [
      c.measure.function(seed=0, **c.measure.arguments).value for c in cells
  ]
  assert values == pytest.approx([5, 40, 320, 3, 0])
  slope = cells[-2].measure.function
  assert slope.__qualname__ == '_cube.slope'
  assert slope.__module__ == _cube.__module__


def _decay(seed, x):
  return spec.Measured(math.exp(-3 * x) + seed)


def test_relative_slopes_are_of_chosen_values_and_have_a_name():
  cells = theory.sweep(
      'Decay', 'of x', _decay, theory.LOG, 'x', 'x', (-1, 0, 1, 900),
      'ln over x', relative=True, fitted=(-1, 0, 1),
  )
  assert [c.column for c in cells[:4]] == ['x −1', 'x 0', 'x 1', 'x 900']
  slope, error = cells[-2:]
  values = [
      c.measure.function(seed=0, **c.measure.arguments).value
      for c in (slope, error)
  ]
  assert values == pytest.approx([-3, 0])
  # Not that of logarithms over logarithms.
  names = {theory.Slope(_decay, 'slope', r).__qualname__ for r in (False, True)}
  assert names == {'_decay.slope', '_decay.relative_slope'}


def test_measured_numbers_are_kept_by_their_arguments():
  calls = []

  @theory.cached
  def measure(seed, x):
    calls.append(x)
    return spec.Measured(x)

  for x in (1, 2, 1):
    assert measure(seed=0, x=x).value == x
  assert measure(x=2, seed=0).value == 2
  assert calls == [1, 2]
  assert measure.__qualname__.endswith('measure')


def test_claims_come_first_and_agreement_last():
  cells = papers.get('afo_theory').cells('quick')
  panels = list(dict.fromkeys(c.panel for c in cells))
  assert panels[0] == theory.CLAIMS
  assert panels[-2:] == [theory.SLOPES, theory.AGREEMENT]


@pytest.mark.parametrize('name', TABLES)
def test_every_profile_measures_the_same(name):
  table = papers.get(name)
  keys = lambda profile: [
      (c.key, c.measure.arguments) for c in table.cells(profile)
  ]
  assert keys('quick') == keys('small') == keys('paper')
  assert not any(c.candidates for c in table.cells('quick'))


def test_the_library_is_where_numpy_is():
  value = theory.library_difference(
      0, 'fedinit', {'client_learning_rate': 0.1, 'relaxation': 0.2}
  ).value
  assert value == -12


def test_a_broken_sign_is_seen_against_the_library(monkeypatch):
  steps = theory.in_numpy.local_steps

  def uphill(problem, plan, round_num, cohort, start, rate, more=None):
    return steps(problem, plan, round_num, cohort, start, -rate, more)

  monkeypatch.setattr(theory.in_numpy, 'local_steps', uphill)
  value = theory.library_difference(
      0, 'fedinit', {'client_learning_rate': 0.1, 'relaxation': 0.2}
  ).value
  assert value > -2


def test_what_rounding_leaves_is_no_difference():
  assert theory.log10(1e-3) == pytest.approx(-3)
  assert theory.log10(3e-16) == theory.log10(0.0) == -12

  slope = theory.Slope(_cube, 'error')
  assert slope(seed=0, over='x', values=[1, 2, 4, 7]).value == 0
