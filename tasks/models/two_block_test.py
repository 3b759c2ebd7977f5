"""The simplex, and a model with label probabilities, against NumPy."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tasks.models import objectives
from tasks.models import two_block


def nearest(v):
  """Π(v) of one row: Σ max(v − θ, 0) = 1 by bisection."""
  low, high = v.min() - 1, v.max()
  for _ in range(80):
    middle = (low + high) / 2
    if np.maximum(v - middle, 0).sum() > 1:
      low = middle
    else:
      high = middle
  return np.maximum(v - low, 0)


def test_projection():
  scales = np.logspace(-2, 2, 40)[:, None]
  v = np.random.default_rng(0).normal(size=[40, 6]) * scales
  v = np.concatenate([v, np.zeros([1, 6]), np.eye(6)])
  ours = two_block.project_to_simplex(tf.constant(v)).numpy()
  np.testing.assert_allclose(ours, [nearest(row) for row in v], atol=1e-9)
  np.testing.assert_allclose(ours.sum(1), 1, atol=1e-12)
  np.testing.assert_allclose(ours[-6:], np.eye(6), atol=1e-12)


class _Linear:
  """Logits x W."""

  uses_dropout = False

  def __init__(self, w):
    self.variables = collections.namedtuple('Variables', 'trainable')(
        [tf.Variable(w)]
    )
    self.decayed = self.variables.trainable

  def __call__(self, x, dropout):
    return tf.matmul(x, self.variables.trainable[0])


def _softmax(z):
  e = np.exp(z - z.max(1, keepdims=True))
  return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize('unlabelled', ['ignored', 'argmax', 'block'])
def test_gradient_is_that_of_the_two_blocks(unlabelled):
  rng = np.random.default_rng(1)
  received, now = rng.normal(size=[2, 4, 3]).astype(np.float32)
  x = rng.normal(size=[6, 4]).astype(np.float32)
  y = np.array([2, -1, -1, 0, -1, -1], np.int32)
  spec = collections.OrderedDict(
      x=tf.TensorSpec([None, 4]), y=tf.TensorSpec([None], tf.int32)
  )
  model = two_block.TwoBlockModel(
      _Linear(received),
      _Linear(np.zeros_like(received)),
      objectives.classification(),
      spec,
      unlabelled=unlabelled,
      temperature=0.7,
      unlabelled_weight=0.3,
      weight_decay=0.01,
  )
  model.begin_round()
  model.trainable_variables[0].assign(now)
  with tf.GradientTape() as tape:
    output = model.forward_pass(
        collections.OrderedDict(x=tf.constant(x), y=tf.constant(y))
    )
  gradient = tape.gradient(output.loss, model.trainable_variables[0])

  p, p_received = _softmax(x @ now), _softmax(x @ received)
  targets = np.zeros([6, 3])
  for k, label in enumerate(y):
    if label >= 0:
      targets[k, label] = 1
    elif unlabelled == 'argmax':
      targets[k, p_received[k].argmax()] = 0.3
    elif unlabelled == 'block':
      targets[k] = 0.3 * nearest(np.log(p_received[k]) / 0.7)
  loss = -(targets * np.log(p)).sum() / 6 + 0.01 * (now**2).sum()
  expected = x.T @ (targets.sum(1, keepdims=True) * p - targets) / 6
  np.testing.assert_allclose(output.loss, loss, rtol=1e-5)
  np.testing.assert_allclose(gradient, expected + 0.02 * now, atol=1e-6)
  metrics = model.report_local_unfinalized_metrics()
  hits = [p[k].argmax() == y[k] for k in (0, 3)]
  np.testing.assert_allclose(metrics['accuracy'], [sum(hits), 2])
  np.testing.assert_allclose(metrics['num_examples'], [6])


def test_evaluation_is_that_of_any_classifier():
  """No penalty, and each label counts."""
  rng = np.random.default_rng(3)
  w = rng.normal(size=[4, 3]).astype(np.float32)
  x = rng.normal(size=[5, 4]).astype(np.float32)
  y = np.array([2, 0, 1, 1, 0], np.int32)
  model = two_block.TwoBlockModel(
      _Linear(w),
      _Linear(np.zeros_like(w)),
      objectives.classification(),
      collections.OrderedDict(
          x=tf.TensorSpec([None, 4]), y=tf.TensorSpec([None], tf.int32)
      ),
      unlabelled='block',
      temperature=0.7,
      weight_decay=0.1,
  )
  batch = collections.OrderedDict(x=tf.constant(x), y=tf.constant(y))
  loss = model.forward_pass(batch, training=False).loss
  expected = -np.log(_softmax(x @ w)[np.arange(5), y]).mean()
  np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_block_y_minimises_the_loss_at_the_received_model():
  rng = np.random.default_rng(2)
  logs = np.log(_softmax(rng.normal(size=[1, 4])))
  tau = 0.5
  f = lambda y: -(y * logs[0]).sum() + tau / 2 * (y**2).sum()
  y = two_block.project_to_simplex(tf.constant(logs / tau)).numpy()[0]
  for other in rng.dirichlet(np.ones(4), 300):
    assert f(other) > f(y) - 1e-9


def test_batch_without_labels_has_finite_gradients():
  spec = collections.OrderedDict(
      x=tf.TensorSpec([None, 4]), y=tf.TensorSpec([None], tf.int32)
  )
  model = two_block.TwoBlockModel(
      _Linear(np.ones([4, 3], np.float32)),
      _Linear(np.ones([4, 3], np.float32)),
      objectives.classification(),
      spec,
      unlabelled='ignored',
      temperature=1.0,
  )
  batch = collections.OrderedDict(
      x=tf.ones([2, 4]), y=tf.constant([-1, -1], tf.int32)
  )
  with tf.GradientTape() as tape:
    loss = model.forward_pass(batch).loss
  np.testing.assert_array_equal(
      tape.gradient(loss, model.trainable_variables[0]), np.zeros([4, 3])
  )
  metrics = model.report_local_unfinalized_metrics()
  np.testing.assert_array_equal(metrics['loss'], [0, 0])
