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


@pytest.mark.parametrize('size', [1, 2, 5])
def test_loss_by_hand(size):
  evaluate = evaluation.Evaluator(toy.LinearModel)
  # Nothing is left over from the first time.
  for _ in range(2):
    metrics = evaluate(_WEIGHTS, _batches(size))
    assert metrics['loss'] == pytest.approx(0.5 * 39 / 5)
  assert evaluate.metric_names == ('loss',)


def _drawn(dataset, size, seed=0):
  return list(evaluation.sampled_batches(dataset, size, seed))


def _numbered(rows, batch):
  return tf.data.Dataset.from_tensor_slices(np.arange(rows)).batch(batch)


@pytest.mark.parametrize('batch', [1, 7, 100])
def test_a_sample_is_that_of_numpy_in_stored_order(batch):
  rows = np.concatenate(_drawn(_numbered(60, batch), 20, seed=3))
  chosen = np.random.default_rng(3).choice(60, 20, replace=False)
  assert rows.tolist() == sorted(chosen)
  sizes = [len(part) for part in _drawn(_numbered(60, batch), 20, seed=3)]
  assert max(sizes) == min(batch, 20) and sum(sizes) == 20


def test_a_sample_of_rows_stored_by_class_has_all_classes():
  by_class = tf.data.Dataset.from_tensor_slices(np.repeat(np.arange(10), 100))
  [first] = _drawn(by_class.batch(1000), 100)
  shares = np.bincount(first, minlength=10) / 100
  # Ten times 1/10 with a deviation of 0.03 each.
  np.testing.assert_allclose(shares, 0.1, atol=0.09)


def test_a_sample_is_the_same_each_time_and_another_with_another_seed():
  again = [np.concatenate(_drawn(_numbered(60, 8), 20, s)) for s in (0, 0, 1)]
  np.testing.assert_array_equal(again[0], again[1])
  assert again[0].tolist() != again[2].tolist()
  whole = np.concatenate(_drawn(_numbered(9, 4), 1000))
  assert whole.tolist() == list(range(9))
  with pytest.raises(ValueError, match='0 rows; expected 1 or more'):
    evaluation.sampled_batches(_numbered(9, 4), 0, 0)


def test_parts_of_unlike_rows_stay_batches_of_their_own():
  def batches():
    for width in (2, 3, 3):
      yield np.full([4, width], width)

  dataset = tf.data.Dataset.from_generator(
      batches, output_signature=tf.TensorSpec([None, None], tf.int64)
  )
  shapes = [part.shape.as_list() for part in _drawn(dataset, 12)]
  assert shapes == [[4, 2], [4, 3], [4, 3]]


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
