"""Algorithms in NumPy against the library, formulas and limit cases."""

import numpy as np
import pytest

from tff_fedopt.problems import in_numpy
from tff_fedopt.problems import noisy_quadratics


def _last(rounds):
  *_, last = rounds
  return last


_RATE = {'client_learning_rate': 0.1}
_SERVER = {**_RATE, 'server_learning_rate': 0.3, 'tau': 0.1}
_CASES = {
    'decay': (
        'fedavg',
        {**_RATE, 'client_learning_rate_schedule': 'inverse_sqrt:1:1'},
    ),
    'adagrad': ('fedadagrad', _SERVER),
    'adam': ('fedadam', {**_SERVER, 'beta1': 0.5, 'beta2': 0.9}),
    'yogi': ('fedyogi', {**_SERVER, 'beta1': 0.0}),
    'relaxed': ('fedinit', {**_RATE, 'relaxation': 0.2}),
    'scaffold': ('scaffold', _RATE),
    'fedvra': ('fedvra', {**_RATE, 'gamma': 0.5, 'dual_step': '0.7'}),
    'fedadmm': ('fedadmm', {**_RATE, 'gamma': 0.5}),
}


def _uneven():
  problem = noisy_quadratics.random_problem(
      0, clients=4, copies=2, dimension=3, noise=0.5, ripple=0.2
  )
  return problem, noisy_quadratics.Plan(3, (3, 1, 2, 4), batch=2, seed=7)


@pytest.mark.parametrize('name', _CASES)
def test_library_and_numpy_take_the_same_steps(name):
  algorithm, hyperparameters = _CASES[name]
  problem, plan = _uneven()
  difference = in_numpy.difference(
      problem, plan, 3, algorithm, hyperparameters
  )
  assert difference < 1e-12


@pytest.mark.parametrize(
    'name,change',
    [
        ('relaxed', {'relaxation': -0.2}),
        ('fedvra', {'dual_step': '-0.7'}),
        ('decay', {'client_learning_rate_schedule': 'constant'}),
        ('adam', {'beta1': 0.0}),
    ],
)
def test_a_broken_sign_is_far_away(name, change):
  algorithm, hyperparameters = _CASES[name]
  problem, plan = _uneven()
  right, wrong = (
      _last(in_numpy.run(problem, plan, 3, algorithm, given)).x
      for given in (hyperparameters, {**hyperparameters, **change})
  )
  assert np.abs(right - wrong).max() > 1e-2


def test_what_is_not_there_is_said():
  problem, plan = _uneven()
  with pytest.raises(ValueError, match='there is no feddyn in NumPy'):
    in_numpy.run(problem, plan, 1, 'feddyn', _RATE)
  with pytest.raises(ValueError, match='fedavg in NumPy has no momentum'):
    in_numpy.run(problem, plan, 1, 'fedavg', {**_RATE, 'momentum': 0.9})
  with pytest.raises(ValueError, match='no exponential schedule in NumPy'):
    schedule = {'client_learning_rate_schedule': 'exponential:0.1:5'}
    in_numpy.run(problem, plan, 1, 'fedavg', _RATE | schedule)


def test_one_client_of_one_step_is_gradient_descent():
  """x = x* + (I − η H)^t (x_0 − x*)."""
  problem = noisy_quadratics.random_problem(1, clients=1)
  plan = noisy_quadratics.everyone(1, 1)
  last = _last(in_numpy.run(problem, plan, 5, 'fedavg', _RATE))
  shrink = np.eye(4) - 0.1 * problem.matrices[0]
  away = np.linalg.matrix_power(shrink, 5) @ (
      problem.start[0] - problem.optimum
  )
  np.testing.assert_allclose(last.x[0], problem.optimum + away, atol=1e-12)


def test_noise_has_the_stationary_variance_of_sgd():
  """η² σ² / (m S) / (1 − (1 − η h)²) for each curvature h, one local step."""
  problem = noisy_quadratics.random_problem(
      0, clients=2, copies=4000, alike=True, noise=1.0
  )
  plan = noisy_quadratics.everyone(2, 1, batch=3)
  last = _last(in_numpy.run(problem, plan, 150, 'fedavg', _RATE))
  h = np.linalg.eigvalsh(problem.matrices[0])
  expected = (0.1**2 / 6 / (1 - (1 - 0.1 * h) ** 2)).sum()
  measured = np.square(last.x - problem.optimum).sum(-1)
  error = measured.std() / np.sqrt(len(measured))
  assert abs(measured.mean() - expected) < 4 * error + 0.01 * expected


@pytest.mark.parametrize(
    'algorithm,more', [('scaffold', {}), ('fedadmm', {'gamma': 1.0})]
)
def test_corrected_methods_reach_the_optimum(algorithm, more):
  problem = noisy_quadratics.random_problem(2, clients=3)
  plan = noisy_quadratics.Plan(3, (1, 5, 2))
  last = _last(in_numpy.run(problem, plan, 400, algorithm, _RATE | more))
  np.testing.assert_allclose(last.x[0], problem.optimum, atol=1e-8)
  fedavg = _last(in_numpy.run(problem, plan, 400, 'fedavg', _RATE))
  assert np.linalg.norm(fedavg.x[0] - problem.optimum) > 0.05
  # The server's dual or control variate is the mean of the clients'.
  np.testing.assert_allclose(last.shared, last.memory.mean(0), atol=1e-12)


def test_gradients_are_those_of_the_loss():
  problem = noisy_quadratics.random_problem(3, clients=2, ripple=0.4)
  x, step = np.array([[0.3, -0.2, 1.0, 0.5]]), 1e-6

  def loss(i, at):
    d = at - problem.minimisers[i]
    return 0.5 * d @ problem.matrices[i] @ d + 0.4 * np.cos(2 * at).sum()

  for i in (0, 1):
    numeric = [
        (loss(i, x[0] + e) - loss(i, x[0] - e)) / (2 * step)
        for e in step * np.eye(4)
    ]
    [ours] = problem.gradients(np.array([i]), x)[0]
    np.testing.assert_allclose(ours, numeric, atol=1e-8)


def test_problems_share_their_first_clients_and_repeat():
  few, many = (
      noisy_quadratics.random_problem(5, clients=c) for c in (2, 4)
  )
  np.testing.assert_array_equal(few.matrices, many.matrices[:2])
  alike = noisy_quadratics.random_problem(5, clients=3, alike=True)
  assert (alike.minimisers == alike.minimisers[0]).all()
  plan = noisy_quadratics.Plan(2, (2,) * 4, seed=1)
  noisy = noisy_quadratics.random_problem(5, clients=4, copies=2, noise=1.0)
  first, second = (
      _last(in_numpy.run(noisy, plan, 5, 'scaffold', _RATE)) for _ in range(2)
  )
  np.testing.assert_array_equal(first.x, second.x)
  # Copies have noise of their own.
  assert np.abs(first.x[0] - first.x[1]).max() > 1e-3
