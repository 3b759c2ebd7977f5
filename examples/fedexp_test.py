"""FedExP against NumPy, round by round."""

import collections
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

import tff_fedopt
from tff_fedopt import algorithms
from tff_fedopt import plugins
from tff_fedopt.problems import array_problem


@pytest.fixture(autouse=True, scope='module')
def _plugin():
  """The example, for these tests alone."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(algorithms, '_ALGORITHMS', dict(algorithms._ALGORITHMS))
    patch.setattr(plugins, '_loaded', {})
    plugins.load(str(pathlib.Path(__file__).with_name('fedexp.py')))
    yield
    del sys.modules['fedexp']


_RATE = 0.1
_CLIENTS = {
    'a': np.array([[4.0, 1.0], [6.0, -1.0], [5.0, 3.0]]),
    'b': np.array([[-5.0, 2.0], [-4.0, 0.0], [-6.0, 1.0], [-3.0, 0.0]]),
}


def _loss(weights, batch, received):
  """½ ‖x − row‖², whose gradient is x minus the mean row."""
  del received
  [x] = weights
  return tf.reduce_mean(tf.reduce_sum((x - batch['row']) ** 2, axis=1)) / 2


def _model():
  spec = {'row': tf.TensorSpec([None, 2], tf.float64)}
  return array_problem.build_model([np.zeros(2)], spec, _loss)


def _numpy(epsilon, rounds):
  """The models after each round, and the extrapolations."""
  x, models, scales = np.zeros(2), [], []
  for _ in range(rounds):
    changes = []
    for rows in _CLIENTS.values():
      y = x.copy()
      for start in range(0, len(rows), 2):
        y -= _RATE * (y - rows[start : start + 2].mean(axis=0))
      changes.append(x - y)
    mean = np.mean(changes, axis=0)
    squares = np.mean([change @ change for change in changes])
    scales.append(max(1.0, squares / (2 * (mean @ mean + epsilon))))
    x = x - scales[-1] * mean
    models.append(x)
  return models, scales


@pytest.mark.parametrize('epsilon', [0.01, 100.0])
def test_rounds_are_those_of_the_algorithm_box(epsilon):
  process = tff_fedopt.algorithms.build(
      'fedexp',
      _model,
      client_learning_rate=_RATE,
      client_weighting='uniform',
      epsilon=epsilon,
  )
  clients = tff.simulation.datasets.TestClientData({
      name: collections.OrderedDict(row=rows)
      for name, rows in _CLIENTS.items()
  }).preprocess(lambda dataset: dataset.batch(2))
  results = tff_fedopt.run(process, clients, [list(_CLIENTS)] * 4)
  wanted, scales = _numpy(epsilon, 4)
  for result, x in zip(results, wanted):
    np.testing.assert_allclose(result.weights[0], x, rtol=1e-12)
  # Clients that disagree are extrapolated, unless ε forbids it.
  assert (max(scales) > 2) == (epsilon < 1)


def test_without_extrapolation_it_is_fedavg():
  weights = []
  for name in ('fedavg', 'fedexp'):
    own = {'epsilon': 1e9} if name == 'fedexp' else {}
    process = tff_fedopt.algorithms.build(name, _model, **own)
    clients = tff.simulation.datasets.TestClientData({
        'a': collections.OrderedDict(row=_CLIENTS['a'])
    }).preprocess(lambda dataset: dataset.batch(2))
    (result,) = tff_fedopt.run(process, clients, [['a']])
    weights.append(result.weights[0])
  np.testing.assert_array_equal(*weights)


def test_it_is_registered_under_its_name():
  assert 'fedexp' in tff_fedopt.algorithms.names()
  cls = tff_fedopt.algorithms.hyperparameters('fedexp')
  assert cls is sys.modules['fedexp'].FedExP
