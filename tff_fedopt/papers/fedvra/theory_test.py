"""FedVRA's measured theory against formulas, limits and broken versions."""

import numpy as np
import pytest

from tff_fedopt.papers.fedvra import theory
from tff_fedopt.problems import in_numpy


def test_stationarity_falls_with_rounds_and_repeats():
  few, many = (
      theory.stationarity(seed=0, rounds=r, part='all').value for r in (25, 100)
  )
  assert many < few / 2
  again = theory.stationarity.__wrapped__(seed=0, rounds=25, part='all')
  assert again.value == few


def test_first_round_counts_the_start():
  """With R = 1 it is the squared gradient at the start, (H (2 − x*))²."""
  problem = theory.noisy_quadratics.random_problem(0)
  slope = problem.matrices.mean(0) @ (problem.start[0] - problem.optimum)
  measured = theory.stationarity(seed=0, rounds=1, part='all').value
  assert measured == pytest.approx(slope @ slope)


def test_admm_removes_variance_between_clients():
  assert theory.reduced_variance(
      seed=0, rounds=20, dual_step=1.0
  ).value > 0.9
  # Without duals there is nothing to remove it.
  none = theory.reduced_variance(seed=0, rounds=20, dual_step=0.0).value
  assert none == pytest.approx(0)


def test_variance_grows_with_the_wrong_sign(monkeypatch):
  right = in_numpy.fedvra

  def wrong(*args):
    for result in right(*args):
      yield in_numpy.Round(
          result.x, result.local, -result.memory, -result.shared
      )

  monkeypatch.setattr(in_numpy, 'fedvra', wrong)
  value = theory.reduced_variance.__wrapped__(0, 20, 1.0).value
  assert value < -1


def test_the_best_dual_step_rises_with_differences():
  steps = [0.0, 0.25, 1.0]
  assert theory.best_step_rises(0, [0.1, 3.0], steps).value == 1.0
  assert theory.saved_loss(0, [0.1, 3.0]).value > 0.5
  # FedVRA with a = 0 is FedProx, whose pull matters little beside noise.
  prox, average = (
      theory.noisy_distance(
          seed=0, dual_step=0.0, spread=0.1, algorithm=name
      ).value
      for name in ('fedvra', 'fedavg')
  )
  assert prox == pytest.approx(average, rel=0.1)


def test_special_cases_of_the_library():
  rates = {'client_learning_rate': 0.05, 'gamma': 0.5}
  proximal = ['fedprox', {'client_learning_rate': 0.05, 'mu': 0.5}]
  same = lambda a: theory.same_models(
      0, ['fedvra', {**rates, 'dual_step': a}], proximal, 2
  ).value
  assert same('0') == -12
  assert same('1') > -3


def test_distance_has_a_curve():
  measured = theory.exact_distance(seed=0, dual_step=1.0, aggregation_step=2.0)
  rounds, values = measured.curve
  assert len(rounds) == len(values) == 40 and values[-1] == measured.value
  assert np.diff(values[::10]).max() < 0
