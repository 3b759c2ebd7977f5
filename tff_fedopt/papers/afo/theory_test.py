"""AFO's measured theory against formulas, and what a mistake would do."""

import numpy as np
import pytest

from tff_fedopt.papers.afo import theory
from tff_fedopt.problems import client_optimizers
from tff_fedopt.problems import in_numpy
from tff_fedopt.problems import noisy_quadratics

_EQUAL = {'rate': 0.05, 'server_rate': 1.0, 'rounds': 400}


@pytest.mark.parametrize('extra_steps', [1, 9])
def test_bias_is_that_of_the_exact_fixed_point(extra_steps):
  problem = noisy_quadratics.random_problem(0)
  eye = np.broadcast_to(np.eye(4), problem.matrices.shape)
  steps = (1 + extra_steps,) * problem.clients
  fixed = client_optimizers.linear_fixed_point(
      problem.matrices, eye, problem.minimisers, 0.05, steps
  )
  expected = np.linalg.norm(fixed - problem.optimum)
  measured = theory.bias(seed=0, extra_steps=extra_steps, **_EQUAL)
  assert measured.value == pytest.approx(expected, rel=1e-6)
  # The same bits on a second call.
  again = theory.bias.__wrapped__(seed=0, extra_steps=extra_steps, **_EQUAL)
  assert again.value == measured.value


def test_one_step_and_one_minimiser_leave_no_bias():
  assert theory.bias(seed=0, extra_steps=0, **_EQUAL).value < 1e-7
  shared = theory.bias(seed=0, extra_steps=9, spread=0.0, **_EQUAL)
  assert shared.value < 1e-12


def test_a_falling_rate_removes_the_bias_and_a_rising_one_does_not(monkeypatch):
  def ratio(rounds):
    return theory.bias_ratio(
        0,
        top={'schedule': 'constant'},
        bottom={'schedule': 'inverse_sqrt:1:1'},
        extra_steps=9,
        rate=0.03,
        server_rate=1.0,
        rounds=rounds,
    ).value

  assert ratio(400) > 10
  monkeypatch.setattr(
      in_numpy, '_decay', lambda text: lambda t: 1.0 + 0.001 * t
  )
  assert not ratio(399) > 10


def test_stationary_error_is_the_formulas():
  """Σ_h η² σ² s / m / (1 − (1 − ηh)^2K), s = Σ_{k<K} (1 − ηh)^2k."""
  rate, steps, clients = 0.1, 4, 2
  h = np.linspace(0.5, 2.0, 4)
  shrink = (1 - rate * h) ** 2
  s = sum(shrink**k for k in range(steps))
  expected = (rate**2 * s / clients / (1 - shrink**steps)).sum()
  measured = theory.stationary_error(
      seed=0, clients=clients, rate=rate, steps=steps, rounds=150
  )
  assert measured.value == pytest.approx(expected, rel=0.05)


def test_gradients_fall_with_rounds_as_bounded():
  few, many = (
      theory.smallest_gradient(
          seed=0, server='fedyogi', rounds=t, clients=4, steps=4, alike=False
      ).value
      for t in (32, 128)
  )
  assert many < few / 1.7


def test_scaffold_gains_most_where_nothing_else_is_random():
  assert theory.scaffold_gain(
      seed=0, cohort=20, noise=0.0, rounds=60, rate=0.03, steps=5
  ).value > 0.5
  fall = theory.least_fall(
      0, cohorts=[20, 5], noise=0.3, rounds=48, rate=0.03, steps=5
  ).value
  gains = [
      theory.scaffold_gain(
          seed=0, cohort=c, noise=0.3, rounds=48, rate=0.03, steps=5
      ).value
      for c in (20, 5)
  ]
  assert fall == pytest.approx(gains[0] - gains[1])


def test_fedopt_is_plain_averaging():
  assert theory.plain_averaging(0, 2).value == -12


def test_fedopt_of_another_rate_is_not_plain_averaging(monkeypatch):
  run = noisy_quadratics.run

  def halved(problem, plan, rounds, algorithm, given):
    given = {**given, 'server_learning_rate': 0.5}
    return run(problem, plan, rounds, algorithm, given)

  monkeypatch.setattr(noisy_quadratics, 'run', halved)
  assert theory.plain_averaging(0, 2).value > -2


def test_pachinko_is_counted_right(monkeypatch):
  """Client 0 has each label once; all others have one label only."""
  labels = np.zeros([500, 100], int)
  labels[0] = np.arange(100)
  dealt = np.arange(50_000).reshape(500, 100)
  dealt[0, 0] = dealt[0, 1]
  monkeypatch.setattr(theory, '_allocated', lambda *_: (dealt, labels))
  settings = {'alpha': 0.1, 'beta': 10.0}
  assert theory.coarse_labels(0, **settings).value == 1
  assert theory.fine_labels(0, **settings).value == 1
  assert theory.used_twice(0, **settings).value == 1
  monkeypatch.setattr(theory, '_allocated', lambda *_: (dealt, labels[:1]))
  assert theory.coarse_labels(0, **settings).value == 16  # 80 of 100 in 5s.


def test_pachinko_concentrates_and_uses_no_image_twice():
  settings = {'alpha': 0.1, 'beta': 10.0}
  assert theory.coarse_labels(0, **settings).value <= 5
  assert theory.fine_labels(0, **settings).value >= 4
  assert theory.used_twice(0, **settings).value == 0
  # With α = 10 labels are spread.
  assert theory.coarse_labels(0, alpha=10.0, beta=10.0).value > 5
