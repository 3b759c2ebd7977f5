"""FedInit's measured theory against formulas, limits and broken versions."""

import math

import numpy as np
import pytest

from tff_fedopt.papers.fedinit import theory
from tff_fedopt.problems import in_numpy

_TOY = {'steps': 5, 'rate': 0.02, 'rounds': 200}


def test_divergence_falls_with_beta_until_training_diverges():
  assert theory.least_fall(0, [-0.1, 0.0, 0.1], **_TOY).value > 0.05
  assert theory.diverges(0, 2.0, **_TOY).value == 1
  assert theory.diverges(0, 0.1, **_TOY).value == 0
  assert math.isinf(theory.distance(seed=0, beta=2.0, **_TOY).value)


def test_it_rises_if_clients_start_on_the_other_side(monkeypatch):
  right = in_numpy.fedopt

  def wrong(problem, plan, rounds, rate, server, decay, relaxation):
    return right(problem, plan, rounds, rate, server, decay, -relaxation)

  monkeypatch.setattr(in_numpy, 'fedopt', wrong)
  shared = {**_TOY, 'rounds': 199}
  assert theory.least_fall(0, [-0.1, 0.0, 0.1], **shared).value < 0


def test_divergence_is_that_of_the_exact_fixed_point():
  """β 0: local models are x̃ + (I − (I − η H_i)^K)(m_i − x̃)."""
  problem = theory._problem(0)
  ways = [
      np.eye(4) - np.linalg.matrix_power(np.eye(4) - 0.02 * h, 5)
      for h in problem.matrices
  ]
  x = np.linalg.solve(
      sum(ways), sum(w @ m for w, m in zip(ways, problem.minimisers))
  )
  expected = np.mean([
      np.square(w @ (m - x)).sum() for w, m in zip(ways, problem.minimisers)
  ])
  measured = theory.divergence(seed=0, beta=0.0, **{**_TOY, 'rounds': 400})
  assert measured.value == pytest.approx(expected, rel=1e-6)


def test_the_bound_of_beta_is_where_training_diverges():
  bound = theory.largest_stable(0, 2.0, **_TOY).value
  assert 1 < bound < 2
  assert theory.diverges(0, bound, **_TOY).value == 0
  assert theory.diverges(0, bound + 0.01, **_TOY).value == 1
  # Without a β that diverges, or one that does not, there is none.
  assert math.isnan(theory.largest_stable(0, 0.1, **_TOY).value)
  assert 0.5 <= theory.best_share(0, 2.0, **_TOY).value < 1


def test_divergence_rises_with_local_steps():
  shared = {'beta': 0.1, 'rate': 0.02, 'rounds': 200}
  one, four = (
      theory.divergence(seed=0, steps=k, **shared).value for k in (1, 4)
  )
  found = theory.least_rise(0, [1, 4], **shared).value
  assert found == pytest.approx(four / one - 1) and found > 1
  assert theory.least_rise(0, [4, 1], **shared).value < 0


def test_divergence_vanishes_with_one_minimiser():
  assert theory.last_divergence(0, [0.0, 0.1], 300).value < -20
  assert theory.last_divergence(0, [0.0], 5).value > -5


def test_mean_divergence_falls_as_one_over_rounds():
  few, many = (
      theory.mean_divergence(seed=0, rounds=t, beta=0.1).value
      for t in (100, 200)
  )
  assert few / many == pytest.approx(2)


def test_twice_the_rate_is_more_than_twice_the_divergence():
  value = theory.doubling(
      0, [0.02, 0.01], beta=0.0, steps=5, rounds=200
  ).value
  assert 1 < value < 2.2


def test_conditions_and_factor():
  assert theory.condition(0, 0.1, 141).value == pytest.approx(-0.41)
  assert theory.condition(0, 0.1, 39).value == pytest.approx(0.61)
  assert theory.factor_gain(0, 0.0).value == pytest.approx(1 - 1 / 1.2)
  assert theory.factor_falls(0, [0.1, 10.0]).value > 0.1


def test_stability_of_one_step_is_the_change_of_one_minimiser(monkeypatch):
  """One round of one step: η ‖H_0 d‖ / C with all clients."""
  rounds = theory._rounds

  def once(problem, plan, count, rate, beta, schedule):
    del count
    return rounds(problem, plan, 1, rate, beta, schedule)

  monkeypatch.setattr(theory, '_rounds', once)
  measured = theory.stability.__wrapped__(0, 0.1, 1, 10).value
  moved = np.full(4, 0.1 / 2)
  expected = 0.1 * np.linalg.norm(theory._problem(0).matrices[0] @ moved) / 10
  assert measured == pytest.approx(expected)


def test_library_follows_equation_10():
  assert theory.recursion(0, 3, 0.2).value == -12


def test_gradients_repeat():
  arguments = {'seed': 0, 'rounds': 32, 'beta': 0.1}
  first, second = (
      theory.mean_gradient.__wrapped__(**arguments).value for _ in range(2)
  )
  assert first == second > 0


def test_more_local_steps_come_further_in_few_rounds():
  few, many = (
      theory.early_gradient(seed=0, steps=k, beta=0.0).value for k in (1, 8)
  )
  assert many < few
