"""Problems with known optimum, and algorithms on them."""

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt.tables import known_optimum
from tff_fedopt.tables import small_problems


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
