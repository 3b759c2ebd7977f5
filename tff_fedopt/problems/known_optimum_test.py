"""Problems with known optimum, and algorithms on them."""

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt.experiment import sampling as sampling_lib
from tff_fedopt.problems import known_optimum
from tff_fedopt.problems import small_problems


@pytest.mark.parametrize('name', sorted(small_problems.PROBLEMS))
@pytest.mark.parametrize('seed', [0, 1])
def test_the_optimum_is_one(name, seed):
  problem = small_problems.PROBLEMS[name](seed, (1,) * small_problems.CLIENTS)
  model = problem.model_fn()

  def gradients_at(x):
    model.trainable_variables[0].assign(x)
    model.begin_round()
    found = []
    for i in problem.client_ids:
      [batch] = problem.dataset_for_client(i, 0)
      with tf.GradientTape() as tape:
        loss = model.forward_pass(batch).loss
      found.append(tape.gradient(loss, model.trainable_variables[0]).numpy())
    return np.array(found)

  there = gradients_at(problem.optimum)
  assert np.abs(there.mean(axis=0)).max() < 1e-12
  assert np.abs(there).max() > 0.1  # Clients do not agree.
  assert np.abs(gradients_at(problem.first).mean(axis=0)).max() > 0.1


def test_k_means_assigns_points_at_the_received_centroids():
  problem = small_problems.KMeans(0, (1,) * small_problems.CLIENTS)
  model = problem.model_fn()
  received = np.roll(problem.optimum, 1, axis=0)
  now = problem.optimum + [0.3, -0.2]
  model.trainable_variables[0].assign(received)
  model.begin_round()
  model.trainable_variables[0].assign(now)
  [batch] = problem.dataset_for_client('2', 0)
  with tf.GradientTape() as tape:
    loss = model.forward_pass(batch).loss
  gradient = tape.gradient(loss, model.trainable_variables[0])

  points = batch['rows'].numpy()
  squares = lambda x: np.sum((points[:, np.newaxis] - x) ** 2, axis=2)
  ordered = np.sort(squares(received), axis=1)
  assert (ordered[:, 1] - ordered[:, 0]).min() > 0.2  # y is a corner.
  nearest = squares(received).argmin(axis=1)
  own = squares(now)[np.arange(len(points)), nearest]
  np.testing.assert_allclose(loss, np.mean(own) / 2 + 0.1 / 2, rtol=1e-12)
  expected = [
      np.sum(now[c] - points[nearest == c], axis=0) / len(points)
      for c in range(3)
  ]
  np.testing.assert_allclose(gradient, expected, atol=1e-12)


@pytest.mark.parametrize('steps', ['one', 'unequal'])
@pytest.mark.parametrize('sampling', ['all', 'unequal'])
def test_distances_are_those_of_a_run_in_numpy(steps, sampling):
  seed, rate = 3, 0.05
  measured = known_optimum.remaining_distance(
      'quadratics',
      'fedavg',
      steps,
      sampling,
      4,
      seed,
      client_learning_rate=rate,
  )
  local_steps = (1, 8, 3, 5, 2, 6) if steps == 'unequal' else (1,) * 6
  likely = np.ones(6)
  if sampling == 'unequal':
    likely = np.array([1.0, 0.9, 0.8, 0.6, 0.5, 0.4])
  problem = small_problems.LeastSquares(seed, (1,) * 6)
  clients = []
  for i in problem.client_ids:
    [batch] = problem.dataset_for_client(i, 0)
    rows = batch['rows'].numpy()
    clients.append((rows[:, :-1], rows[:, -1]))
  optimum = np.linalg.solve(
      sum(a.T @ a for a, _ in clients), sum(a.T @ b for a, b in clients)
  )
  x, expected = np.zeros(8), []
  for r in range(4):
    rng = np.random.default_rng(sampling_lib.derive_seed(seed, 'sampling', r))
    ends = []
    for i in np.flatnonzero(rng.random(6) < likely):
      (a, b), y = clients[i], x
      for _ in range(local_steps[i]):
        y = y - rate * 2 * a.T @ (a @ y - b) / len(b)
      ends.append(y)
    x = np.mean(ends, axis=0)
    distance = np.linalg.norm(x - optimum) / np.linalg.norm(optimum)
    expected.append(np.log10(distance))
  assert measured.curve[0] == [1, 2, 3, 4]
  np.testing.assert_allclose(measured.curve[1], expected, atol=1e-9)
  assert measured.value == measured.curve[1][-1]


def test_fedvra_solves_k_means():
  """Unequal local steps, unequal sampling; the clusters' means are reached."""
  given = dict(
      problem='kmeans',
      algorithm='fedvra',
      seed=0,
      gamma=1.0,
      dual_step='rho:0.6',
      client_learning_rate=0.2,
  )
  measured = known_optimum.remaining_distance(
      steps='unequal', sampling='unequal', rounds=40, **given
  )
  assert measured.value < -4
  rounds, curve = measured.curve
  assert len(rounds) == len(curve) == 40 and curve[0] > -1
  assert known_optimum.stored_models(**given).value == 1.0
