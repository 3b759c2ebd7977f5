"""The wrapper: metric sums, weight decay, dropout; objectives by number."""

import collections
import math

import numpy as np
import pytest
import tensorflow as tf

from tasks.models import cnn
from tasks.models import objectives
from tasks.models import variables as variables_lib
from tasks.models import wrapper


class _Identity:
  """Predicts its input; one weight that only decays."""

  uses_dropout = False

  def __init__(self):
    self.variables = variables_lib.Variables(0)
    self.decayed = [
        self.variables.add(
            'w', [2], lambda shape, seed: tf.constant([1.0, 2.0])
        )
    ]

  def __call__(self, x, dropout):
    del dropout
    return x


def _batch(x, y):
  return collections.OrderedDict(x=tf.constant(x), y=tf.constant(y))


def _values(model):
  finalizers = model.metric_finalizers()
  sums = model.report_local_unfinalized_metrics()
  assert list(finalizers) == list(sums)
  return {name: float(finalizers[name](sums[name])) for name in sums}


class TestMetrics:

  def test_sum_over_batches_until_reset(self):
    model = wrapper.TaskModel(_Identity(), objectives.classification(), None)
    model.forward_pass(_batch([[9.0, 0.0]] * 3, [0, 1, 0]))
    output = model.forward_pass(_batch([[0.0, 9.0]], [1]))
    assert output.num_examples == 1
    sums = model.report_local_unfinalized_metrics()
    assert {s.dtype for s in sums.values()} == {tf.float32}
    np.testing.assert_array_equal(sums['accuracy'], [3, 4])
    assert _values(model)['num_examples'] == 4
    model.reset_metrics()
    assert set(_values(model).values()) == {0.0}

  def test_weight_decay_is_in_the_training_loss_only(self):
    plain, decayed = (
        wrapper.TaskModel(
            _Identity(), objectives.classification(), None, weight_decay=decay
        )
        for decay in (0.0, 0.1)
    )
    batch = _batch([[9.0, 0.0]], [1])
    difference = (
        decayed.forward_pass(batch).loss - plain.forward_pass(batch).loss
    )
    assert float(difference) == pytest.approx(0.1 * (1 + 4))
    assert float(
        decayed.forward_pass(batch, training=False).loss
    ) == pytest.approx(9.0, abs=1e-3)
    assert _values(decayed)['loss'] == pytest.approx(9.0, abs=1e-3)


class TestObjectives:

  def test_padding_counts_in_the_loss_of_text_but_not_in_accuracy(self):
    targets = np.array([[3, 1, 0], [2, 0, 0]], np.int32)
    logits = np.zeros((2, 3, 4), np.float32)
    logits[0, 0, 3] = logits[0, 1, 2] = logits[1, 0, 2] = 5.0
    objective = objectives.next_token(dict(accuracy=[0], no_one=[0, 1]))
    loss, sums = objective.compute(tf.constant(targets), tf.constant(logits))
    hit, miss = (math.log(math.exp(5) + 3) - z for z in (5, 0))
    # Six positions, three of them padding with equal scores.
    expected = (2 * hit + miss + 3 * math.log(4)) / 6
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(sums['loss'], [2 * expected, 2], rtol=1e-5)
    np.testing.assert_array_equal(sums['accuracy'], [2, 3])
    np.testing.assert_array_equal(sums['no_one'], [2, 2])
    np.testing.assert_array_equal(sums['num_tokens'], [3])

  def test_reconstruction_sums_over_the_batch(self):
    y, predictions = tf.zeros([3, 4]), tf.fill([3, 4], 2.0)
    loss, sums = objectives.reconstruction().compute(y, predictions)
    assert float(loss) == 12.0  # Squared error 4, mean over pixels, 3 rows.
    np.testing.assert_array_equal(sums['mse'], [12, 3])
    mean, _ = objectives.reconstruction('mean').compute(y, predictions)
    assert float(mean) == 4.0

  def test_tags_equal_keras(self):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(6, 9)).astype(np.float32)
    tags = np.array(
        [[1, 9, 0], [2, 0, 0], [0, 0, 0], [3, 4, 5], [9, 8, 7], [6, 0, 0]],
        np.int32,
    )
    truth = np.zeros((6, 9), np.float32)
    for row, ids in enumerate(tags):
      truth[row, [i - 1 for i in ids if i]] = 1
    loss, sums = objectives.tags(9).compute(
        tf.constant(tags), tf.constant(logits)
    )
    probabilities = tf.sigmoid(logits)
    keras = tf.keras.losses.BinaryCrossentropy(
        reduction=tf.keras.losses.Reduction.SUM
    )
    assert float(loss) == pytest.approx(
        float(keras(truth, probabilities)), rel=1e-5
    )
    for name, metric in dict(
        recall_at_5=tf.keras.metrics.Recall(top_k=5),
        precision=tf.keras.metrics.Precision(),
    ).items():
      metric.update_state(truth, probabilities)
      numerator, denominator = sums[name].numpy()
      assert numerator / denominator == pytest.approx(float(metric.result()))
    assert sums['recall_at_5'][1] == 10


class TestDropout:

  def _model(self):
    network = cnn.ConvDropoutNet(5, 0, filters=(2, 3), units=16)
    return wrapper.TaskModel(network, objectives.classification(), None)

  def _predict(self, model, training=True):
    x = np.random.default_rng(0).random((4, 28, 28, 1)).astype(np.float32)
    return model.predict_on_batch(tf.constant(x), training).numpy()

  def test_is_a_function_of_seed_and_step(self):
    model, again = self._model(), self._model()
    seen = []
    for seed, step in ((7, 0), (7, 1), (8, 0)):
      model.seed_randomness(seed, step)
      again.seed_randomness(seed, step)
      seen.append(self._predict(model))
      np.testing.assert_array_equal(seen[-1], self._predict(again))
    assert not np.allclose(seen[0], seen[1])
    assert not np.allclose(seen[0], seen[2])

  def test_steps_by_itself_and_is_off_in_evaluation(self):
    model = self._model()
    assert not np.allclose(self._predict(model), self._predict(model))
    np.testing.assert_array_equal(
        self._predict(model, training=False),
        self._predict(model, training=False),
    )

  def test_drops_the_given_share(self):
    from tasks.models import dropout  # pylint: disable=g-import-not-at-top

    drop = dropout.Dropout(tf.constant(3, tf.int64), tf.constant(5, tf.int64))
    ones = tf.ones([200_000])
    first, second = drop(ones, 0.25).numpy(), drop(ones, 0.25).numpy()
    assert np.mean(first == 0) == pytest.approx(0.25, abs=0.005)
    assert first.max() == pytest.approx(1 / 0.75)
    # Two masks of one step are independent.
    both = np.mean((first == 0) & (second == 0))
    assert both == pytest.approx(0.0625, abs=0.005)
