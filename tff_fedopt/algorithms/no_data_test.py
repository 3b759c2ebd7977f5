"""A round in which no client has a batch: nothing moves or is measured."""

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.algorithms import fedopt_test
from tff_fedopt.testing import problems

_MEMORY = dict(num_clients=4)


def _process(name, hyperparameters, state_dir):
  if name in ('scaffold', 'feddyn', 'fedinit', 'fedvra') or (
      'track_consistency' in hyperparameters
  ):
    hyperparameters = dict(hyperparameters, state_dir=state_dir)
  problem = fedopt_test.p2()
  runtime.use()
  process = algorithms.build(name, problem.model_fn, **hyperparameters)
  state = process.initialize()
  state, _ = process.next(state, [problem.client_input(i) for i in (0, 1)])
  return problem, process, state


def _held(state):
  """All that the server holds but the count of rounds."""
  return tf.nest.flatten(
      [state.global_model_weights, state.aggregator, state.finalizer]
  )


@pytest.mark.parametrize(
    'name,hyperparameters',
    [
        ('fedavgm', {}),
        ('fedadam', dict(client_optimizer='adam', client_state='sync')),
        ('fedcm', {}),
        ('fedcm', dict(form='code')),
        ('scaffold', _MEMORY),
        ('fedvra', _MEMORY),
        ('feddyn', dict(_MEMORY, track_consistency=True, form='code')),
    ],
)
def test_the_server_stays_where_it_is(name, hyperparameters, tmp_path):
  problem, process, state = _process(name, hyperparameters, tmp_path)
  empty = problem.client_input(2)
  empty['examples'] = empty['examples'].take(0)
  output = process.next(state, [empty])
  for before, after in zip(_held(state), _held(output.state), strict=True):
    np.testing.assert_array_equal(before, after)
  assert output.state.client_work['round'] == state.client_work['round'] + 1
  metrics = output.metrics
  assert np.isnan(metrics['client_work']['train']['loss'])
  assert metrics['client_work']['non_finite_clients'] == 0
  if 'track_consistency' in hyperparameters:
    assert np.isnan(metrics['finalizer']['consistency'])


def test_with_memory_of_all_clients_consistency_stays_known(tmp_path):
  problem, process, state = _process(
      'fedavg', dict(_MEMORY, track_consistency=True), tmp_path
  )
  empty = problem.client_input(2)
  empty['examples'] = empty['examples'].take(0)
  output = process.next(state, [empty])
  assert output.metrics['finalizer']['consistency'] > 0


def test_clients_with_a_batch_are_measured_alone():
  problem = fedopt_test.p2()
  empty = problem.client_input(2)
  empty['examples'] = empty['examples'].take(0)
  runtime.use()
  process = algorithms.build('fedavgm', problem.model_fn)
  both = process.next(process.initialize(), [problem.client_input(0), empty])
  alone = process.next(process.initialize(), [problem.client_input(0)])
  loss = lambda output: output.metrics['client_work']['train']['loss']
  assert loss(both) == loss(alone)
  weights = lambda output: [
      output.state.global_model_weights['model'].trainable
  ]
  assert problems.distance(weights(both), weights(alone)) == 0
