"""Tiny problems with known answers, and how tests run algorithms on them.

`testdata/` holds round by round weights that other people's implementations
gave on these problems: `official.json` those of google-research/federated,
`flsimulator.json` those of FL-Simulator.
"""

import collections
import json
import pathlib

import numpy as np
import tensorflow as tf

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.problems import array_problem
from tff_fedopt.processes import client_input

_TESTDATA = pathlib.Path(__file__).parent / 'testdata'


def golden(name):
  """The problems and cases of one file of `testdata`."""
  return json.loads((_TESTDATA / f'{name}.json').read_text())


class Problem:
  """A model with given initial weights, and clients with given examples.

  Attributes:
    model_fn: Returns a new model.
    dtype: The model's dtype.
    names: The clients' ids, in order.
    description: All that makes the problem, as JSON.
  """

  def __init__(self, description, dtype='float32'):
    self._d = description
    self.description = json.dumps(description)
    self.dtype = np.dtype(dtype)
    self.names = [str(i) for i in range(len(description['clients']))]

  @property
  def initial(self):
    layers = [name for name, _ in self._d['layers']]
    return [np.array(self._d['initial_weights'][n], self.dtype) for n in layers]

  def examples(self, i):
    """Client i's inputs and labels."""
    client = self._d['clients'][i]
    regression = self._d['model'] == 'linreg'
    label_dtype = self.dtype if regression else np.int32
    return np.array(client['x'], self.dtype), np.array(client['y'], label_dtype)

  def batches(self, i):
    """Client i's batches in order, all epochs; batches do not cross epochs."""
    x, y = self.examples(i)
    size = self._d['batch_size']
    epoch = [(x[s : s + size], y[s : s + size]) for s in range(0, len(x), size)]
    return epoch * self._d['local_epochs']

  def client_input(self, i, seed=0):
    x, y = self.examples(i)
    dataset = tf.data.Dataset.from_tensor_slices(
        collections.OrderedDict(x=x, y=y)
    )
    dataset = dataset.batch(self._d['batch_size'])
    return client_input.client_input(
        self.names[i], dataset.repeat(self._d['local_epochs']), seed
    )

  def model_fn(self):
    """Linear regression, softmax regression or a tanh network."""
    x, y = self.examples(0)
    return array_problem.build_model(
        self.initial,
        dict(
            x=tf.TensorSpec([None, x.shape[1]], x.dtype),
            y=tf.TensorSpec([None, *y.shape[1:]], y.dtype),
        ),
        self._loss,
    )

  def _loss(self, weights, batch, received):
    del received
    x, y = batch['x'], batch['y']
    if self._d['model'] == 'mlp':
      x = tf.tanh(x @ weights[0] + weights[1])
    z = x @ weights[-2] + weights[-1]
    if self._d['model'] == 'linreg':
      return tf.reduce_mean(tf.square(z - y))
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(y, z)
    )

  def gradient(self, weights, x, y):
    """Mean gradient over a batch in NumPy, written without TensorFlow."""
    kind = self._d['model']
    n = len(x)
    if kind == 'linreg':
      w, b = weights
      r = 2 * (x @ w + b - y) / n
      return [x.T @ r, r.sum(0)]
    hidden = np.tanh(x @ weights[0] + weights[1]) if kind == 'mlp' else x
    w, b = weights[-2:]
    z = hidden @ w + b
    z = np.exp(z - z.max(1, keepdims=True))
    r = z / z.sum(1, keepdims=True)
    r[np.arange(n), y] -= 1
    r /= n
    grads = [hidden.T @ r, r.sum(0)]
    if kind == 'mlp':
      back = (r @ w.T) * (1 - hidden**2)
      grads = [x.T @ back, back.sum(0)] + grads
    return grads


def rounds(problem, cohorts, name, **hyperparameters):
  """Runs an algorithm and returns the trainable weights after every round."""
  runtime.use()
  process = _process(problem, name, hyperparameters)
  state = algorithms.set_hyperparameters(
      process, process.initialize(), name, hyperparameters
  )
  weights = []
  for cohort in cohorts:
    state, _ = process.next(state, [problem.client_input(i) for i in cohort])
    model = state.global_model_weights['model']
    weights.append([np.array(w) for w in model.trainable])
  return weights


_processes = {}


def _process(problem, name, hyperparameters):
  """A traced process, which other numbers and the other engine share."""
  trace_key = algorithms.trace_key(name, hyperparameters)
  key = (problem.description, problem.dtype, name, trace_key)
  if key not in _processes:
    _processes[key] = algorithms.build(
        name, problem.model_fn, **hyperparameters
    )
  return _processes[key]


def distance(a, b):
  """Largest difference of any weight in any round."""
  return max(
      np.max(np.abs(np.asarray(x) - np.asarray(y)))
      for one, other in zip(a, b, strict=True)
      for x, y in zip(one, other, strict=True)
  )
