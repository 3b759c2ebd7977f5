"""The models in training: losses at the start, TFF's losses, TFF's protocol."""

import collections
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.simulation.baselines import keras_metrics
from tensorflow_federated.python.simulation.baselines.stackoverflow import (
  word_prediction_models,
)

from tasks.models import autoencoder
from tasks.models import bag_of_words
from tasks.models import cnn
from tasks.models import language
from tasks.models import objectives
from tasks.models import resnet
from tasks.models import wrapper
from tff_fedopt import runtime


def _batch(x, y):
  return collections.OrderedDict(x=tf.constant(x), y=tf.constant(y))


def _draw(*shape):
  return np.random.default_rng(0).random(shape).astype(np.float32)


def _ids(below, *shape):
  return np.random.default_rng(0).integers(1, below, shape).astype(np.int32)


_TEXT = objectives.next_token(dict(accuracy=[0]))
_PIXELS = _draw(6, 784)

# network, objective, x, y, loss of random guessing
_STARTS = {
    'resnet': (
        lambda: resnet.ResNet(10, 0, filters=16, blocks=(1, 1)),
        objectives.classification(),
        _draw(4, 24, 24, 3),
        _ids(10, 4),
        math.log(10),
    ),
    'cnn': (
        lambda: cnn.ConvDropoutNet(62, 0),
        objectives.classification(),
        _draw(4, 28, 28, 1),
        _ids(62, 4),
        math.log(62),
    ),
    'shakespeare': (
        lambda: language.RecurrentNet(
            90, 0, embedding_size=8, units=(256, 256)
        ),
        _TEXT,
        _ids(90, 2, 80),
        _ids(90, 2, 80),
        math.log(90),
    ),
    'words': (
        lambda: language.RecurrentNet(
            10_004, 0, embedding_size=96, units=(670,), projection=96
        ),
        _TEXT,
        _ids(10_004, 2, 20),
        _ids(10_004, 2, 20),
        math.log(10_004),
    ),
    # Mean over 500 tags, SUM over 7 rows.
    'tags': (
        lambda: bag_of_words.BagOfWordsRegression(10_000, 500, 0),
        objectives.tags(500),
        _ids(10_000, 7, 12),
        _ids(500, 7, 3),
        7 * math.log(2),
    ),
}


@pytest.mark.parametrize('case', _STARTS)
def test_loss_at_the_start_is_that_of_guessing(case):
  make, objective, x, y, expected = _STARTS[case]
  model = wrapper.TaskModel(make(), objective, None)
  loss = float(model.forward_pass(_batch(x, y), training=False).loss)
  assert loss == pytest.approx(expected, rel=0.03)


def test_autoencoder_starts_with_the_loss_of_its_mean_output():
  network = autoencoder.Autoencoder(0)
  model = wrapper.TaskModel(network, objectives.reconstruction(), None)
  loss = float(model.forward_pass(_batch(_PIXELS, _PIXELS)).loss)
  errors = (_PIXELS - network(_PIXELS, None).numpy()) ** 2
  assert loss == pytest.approx(errors.mean(axis=1).sum(), rel=1e-5)
  # Six rows; outputs spread around 1/2, where the error is 1/12 a pixel.
  assert 6 / 12 < loss < 6 / 3


def test_text_loss_and_accuracies_equal_tff_with_padding():
  """TFF's loss averages over padding too; its accuracies mask by target."""
  words = 20
  oov, eos, vocabulary = words + 1, words + 3, words + 4
  rng = np.random.default_rng(5)
  rows = rng.integers(1, vocabulary, (8, 11)).astype(np.int32)
  for row, end in enumerate([11, 2, 5, 11, 7, 3, 9, 11]):
    rows[row, end:] = 0
  # Enough unknown words and ends that leaving them out changes the share.
  rows[:, 1], rows[0, 5:9], rows[3, 4:8] = oov, eos, eos
  x, y = rows[:, :-1], rows[:, 1:]
  masks = dict(
      accuracy=[0],
      accuracy_no_oov=[0, oov],
      accuracy_no_oov_or_eos=[0, oov, eos],
  )
  keras = word_prediction_models.create_recurrent_model(
      vocabulary, embedding_size=6, lstm_size=9
  )
  network = language.RecurrentNet(
      vocabulary, 0, embedding_size=6, units=(9,), projection=6
  )
  model = wrapper.TaskModel(network, objectives.next_token(masks), None)
  spec = tf.TensorSpec([None, None], tf.int32)
  theirs = tff.learning.models.from_keras_model(
      keras,
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=collections.OrderedDict(x=spec, y=spec),
      metrics=[
          keras_metrics.MaskedCategoricalAccuracy(name=name, masked_tokens=ids)
          for name, ids in masks.items()
      ],
  )
  for variable, other in zip(
      model.trainable_variables, theirs.trainable_variables, strict=True
  ):
    variable.assign(3.0 * rng.normal(size=variable.shape))
    other.assign(variable)
  # Random targets are hardly ever hit: half of them become the prediction.
  predicted = tf.argmax(network(tf.constant(x), None), 2).numpy()
  hit = (rng.random(y.shape) < 0.5) & (y > 0) & (predicted > 0)
  y = np.where(hit, predicted, y).astype(np.int32)
  batch = _batch(x, y)
  mine, other = model.forward_pass(batch), theirs.forward_pass(batch)
  assert float(mine.loss) == pytest.approx(float(other.loss), rel=1e-5)
  unmasked = tf.keras.losses.sparse_categorical_crossentropy(
      y, mine.predictions, from_logits=True
  ).numpy()
  assert float(mine.loss) != pytest.approx(unmasked[y > 0].mean(), rel=0.01)
  sums, finalizers = (
      model.report_local_unfinalized_metrics(),
      model.metric_finalizers(),
  )
  reported = theirs.report_local_unfinalized_metrics()
  values = {}
  for name in masks:
    total, count = (float(value) for value in reported[name])
    values[name] = float(finalizers[name](sums[name]))
    assert values[name] == pytest.approx(total / count, abs=1e-6)
    assert float(sums[name][1]) == count
  assert len(set(values.values())) == 3


def test_tag_metrics_pool_over_batches_and_equal_keras():
  rng = np.random.default_rng(8)
  model = wrapper.TaskModel(
      bag_of_words.BagOfWordsRegression(30, 12, 0), objectives.tags(12), None
  )
  model.trainable_variables[0].assign(4 * rng.normal(size=(30, 12)))
  metrics = dict(
      recall_at_5=tf.keras.metrics.Recall(top_k=5),
      precision=tf.keras.metrics.Precision(),
  )
  for rows, most in ((40, 1), (3, 8)):  # Mean of the batches is not the pool.
    x = rng.integers(0, 31, (rows, 6)).astype(np.int32)
    y = rng.integers(0, 13, (rows, most)).astype(np.int32)
    output = model.forward_pass(_batch(np.sort(x)[:, ::-1].copy(), y))
    truth = tf.reduce_max(tf.one_hot(y - 1, 12), axis=1)
    for metric in metrics.values():
      metric.update_state(truth, tf.sigmoid(output.predictions))
  sums = model.report_local_unfinalized_metrics()
  for name, metric in metrics.items():
    value = model.metric_finalizers()[name](sums[name])
    assert float(value) == pytest.approx(float(metric.result()), abs=1e-6)


def test_one_round_of_tff_equals_descent_by_hand():
  """One client, so the average is its model; metrics add up over batches."""
  runtime.use()
  spec = tf.TensorSpec([None, 5], tf.int32)

  def model_fn():
    return wrapper.TaskModel(
        language.RecurrentNet(9, 3, embedding_size=4, units=(5, 3)),
        _TEXT,
        collections.OrderedDict(x=spec, y=spec),
    )

  rows = _ids(9, 5, 6)
  rows[1, 2:], rows[4, 1:] = 0, 0  # The last batch has padded columns only.
  data = tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(x=rows[:, :-1], y=rows[:, 1:])
  ).batch(2)
  process = tff.learning.algorithms.build_weighted_fed_avg(
      model_fn,
      client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.5),
      server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
  )
  output = process.next(process.initialize(), [data])
  weights = process.get_model_weights(output.state).trainable

  model = model_fn()
  total = 0.0
  for batch in data:
    with tf.GradientTape() as tape:
      result = model.forward_pass(batch)
    total += float(result.loss) * int(result.num_examples)
    for variable, gradient in zip(
        model.trainable_variables,
        tape.gradient(result.loss, model.trainable_variables),
    ):
      variable.assign_sub(0.5 * gradient)
  for mine, variable in zip(weights, model.trainable_variables, strict=True):
    np.testing.assert_allclose(mine, variable, atol=1e-6)
  train = output.metrics['client_work']['train']
  assert train['num_examples'] == 5
  assert train['num_tokens'] == np.count_nonzero(rows[:, 1:])
  assert train['loss'] == pytest.approx(total / 5, rel=1e-5)
