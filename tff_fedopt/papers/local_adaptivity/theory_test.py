"""Local Adaptivity's measured theory against formulas and broken versions."""

import numpy as np
import pytest

from tff_fedopt.papers.local_adaptivity import theory
from tff_fedopt.problems import client_optimizers
from tff_fedopt.problems import noisy_quadratics


def test_fixed_point_stands_still_and_the_library_agrees():
  arguments = {'rate': 0.1, 'steps': 'unequal', 'preconditioners': 'different'}
  x = theory._solved(**arguments)
  moved = 0.0
  for h, p, m, tau in zip(theory._H, theory._P, theory._M, (10, 5, 2)):
    y = x
    for _ in range(tau):
      y = y - 0.1 * p @ h @ (y - m)
    moved = moved + (y - x)
  np.testing.assert_allclose(moved, 0, atol=1e-12)
  assert theory.library_movement(0, **arguments).value == -12


def test_another_rate_moves_it(monkeypatch):
  solved = theory._solved
  monkeypatch.setattr(
      theory, '_solved', lambda rate, *more: solved(0.5 * rate, *more)
  )
  moved = theory.library_movement(
      0, rate=0.1, steps='unequal', preconditioners='different'
  )
  assert moved.value > -5


def test_bias_vanishes_or_does_not_as_claimed():
  pair = {'rates': [1e-4, 1e-2]}
  ratio = lambda **more: theory.bias_ratio(0, **pair, **more).value
  assert ratio() == pytest.approx(0.01, rel=0.05)
  assert ratio(preconditioners='common') == pytest.approx(0.01, rel=0.05)
  assert ratio(preconditioners='different') > 0.9
  assert ratio(steps='unequal') > 0.9
  assert ratio(preconditioners='different', corrected=True) < 0.05
  assert theory.bias(0, 0.1, steps='one').value < 1e-12


def test_first_order_of_unequal_steps():
  """For small η: Σ τ_i H_i (x − m_i) = 0."""
  tau = np.array([10, 5, 2])[:, None, None]
  pulls = np.einsum('ijk,ik->j', tau * theory._H, theory._M)
  x = np.linalg.solve((tau * theory._H).sum(0), pulls)
  expected = np.linalg.norm(x - theory._optimum())
  assert theory.bias(0, 1e-6, steps='unequal').value == pytest.approx(
      expected, rel=1e-4
  )


@pytest.mark.parametrize('optimizer', ['adagrad', 'adam'])
def test_corrections_share_a_fixed_point(optimizer):
  local, general = (
      theory._adaptive_fixed_point(0, optimizer, correction, 0.1)[1]
      for correction in ('local', 'global')
  )
  np.testing.assert_allclose(local, general, atol=1e-8)


def test_corrections_need_the_right_n(monkeypatch):
  ratio = lambda: theory.adaptive_ratio(
      0, [0.03, 0.1], 'adagrad', 'local'
  ).value
  assert ratio() < 0.5
  right = client_optimizers.local_round

  def wrong(problem, x, optimizer, rate, steps):
    y, n = right(problem, x, optimizer, rate, steps)
    return y, n * (1 + np.arange(len(n)))[:, np.newaxis, np.newaxis]

  theory._adaptive_fixed_point.cache_clear()
  monkeypatch.setattr(client_optimizers, 'local_round', wrong)
  assert ratio() > 0.5
  theory._adaptive_fixed_point.cache_clear()


@pytest.mark.parametrize('optimizer', ['sgd', 'momentum', 'adam'])
def test_n_is_what_gradients_of_one_would_move(optimizer):
  """Where every gradient is 1 all the time, y moves by N_i."""
  ones = noisy_quadratics.Problem(
      np.zeros([1, 2, 2]), np.zeros([1, 2]), np.zeros([1, 2])
  )
  ones.__dict__['gradients'] = lambda cohort, x: np.ones_like(x)
  y, n = client_optimizers.local_round(ones, ones.start, optimizer, 0.1, 5)
  np.testing.assert_allclose(-y, n, rtol=1e-12)
  assert (n > 0).all()


def test_a_run_that_does_not_settle_is_refused():
  problem = noisy_quadratics.random_problem(0, clients=4)
  with pytest.raises(ValueError, match='still moving'):
    client_optimizers.fixed_point(
        problem, 'adagrad', 'none', 0.1, 10, 1.0, rounds=3
    )


@pytest.mark.parametrize('steps', [1, 7])
def test_contraction_of_sgd_is_the_formulas(steps):
  assert theory.formula_error(0, rate=0.1, steps=steps).value == -12
  # The bound is reached along the flattest axis, and by no pair surpassed.
  wrong = (1 - 0.1 * max(theory._CURVATURES)) ** (2 * steps)
  measured = theory.contraction(
      seed=0, optimizer='sgd', steps=steps, rate=0.1
  ).value
  assert measured > wrong + 0.1


def test_adaptive_clients_contract_more():
  assert theory.gained(0, 'adagrad', 50).value > 1
  assert theory.gained(0, 'adam', 50).value > 1
  assert theory.gained(0, 'sgd', 50).value == 0


def test_noise_adds_up_as_the_formula_says():
  """Σ_{s<k} (1 − ηλ)^2s / k, the mean over curvatures."""
  rate, steps = 0.1, 20
  shrink = (1 - rate * np.array(theory._CURVATURES)) ** 2
  expected = np.mean(sum(shrink**s for s in range(steps)) / steps)
  measured = theory.noise_share(0, rate, steps).value
  assert measured == pytest.approx(expected, rel=0.05)


def test_one_round_reaches_the_fixed_point():
  assert theory.one_round(0, rate=0.5, steps=2).value < -10


def test_momentum_contracts_as_its_matrices():
  assert theory.momentum_error(0, rate=0.1, steps=20).value == -12
  # Another momentum than the optimizer's is seen.
  assert theory.momentum_error(0, rate=0.1, steps=20, momentum=0.8).value > -6


def test_the_least_gain_over_numbers_of_steps():
  gains = [theory.gained(0, 'adagrad', k).value for k in (5, 20)]
  assert theory.least_gained(0, 'adagrad', [5, 20]).value == min(gains) > 0
