"""Tests of evaluation."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.experiment import evaluation
from tff_fedopt.testing import toy

_X = np.array([[1, 0], [0, 1], [1, 1], [2, 0], [0, 3]], np.float32)
_Y = np.zeros([5, 1], np.float32)
# With w = (2, 1) the predictions are 2, 1, 3, 4, 3.
_WEIGHTS = tff.learning.models.ModelWeights(
    [np.array([[2], [1]], np.float32)], []
)


def _batches(size):
  return tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(x=_X, y=_Y)
  ).batch(size)


@pytest.mark.parametrize(
    'limit, squares', [(None, 39), (1, 4), (3, 14), (4, 30), (9, 39)]
)
@pytest.mark.parametrize('size', [1, 2, 5])
def test_loss_by_hand(limit, squares, size):
  evaluate = evaluation.Evaluator(toy.LinearModel)
  rows = min(limit or 5, 5)
  metrics = evaluate(_WEIGHTS, _batches(size), limit)
  assert metrics['loss'] == pytest.approx(0.5 * squares / rows)
  # Nothing is left over from it.
  assert evaluate(_WEIGHTS, _batches(size), 2)['loss'] == 0.5 * 5 / 2
  assert evaluate.metric_names == ('loss',)


def test_limit_stops_reading():
  def rows():
    yield from ([[1.0, 0.0]], [[1.0, 0.0]])
    raise RuntimeError('read too far')

  dataset = tf.data.Dataset.from_generator(
      rows, output_signature=tf.TensorSpec([1, 2], tf.float32)
  ).map(lambda x: collections.OrderedDict(x=x, y=x[:, :1]))
  evaluate = evaluation.Evaluator(toy.LinearModel)
  assert evaluate(_WEIGHTS, dataset, 2)['loss'] == 0.5


def test_traced_once_for_all_batch_sizes():
  traces = []

  class Counting(toy.LinearModel):

    def forward_pass(self, batch_input, training=True):
      traces.append(training)
      return super().forward_pass(batch_input, training)

  evaluate = evaluation.Evaluator(Counting)
  for size in (1, 2, 3):
    evaluate(_WEIGHTS, _batches(size))
  assert traces == [False]
