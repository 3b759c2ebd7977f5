"""The LSTM equals the Keras layer, forward and backward, padding included."""

import numpy as np
import pytest
import tensorflow as tf

from tasks.models import fast_lstm


def _both(time, lengths, features=5, units=7, seed=0):
  """Outputs and gradients of (ours, Keras's) on one random problem."""
  rng = np.random.default_rng(seed)
  draw = lambda *shape: tf.constant(rng.normal(size=shape), tf.float32)
  batch = len(lengths)
  x, d_outputs = draw(batch, time, features), draw(batch, time, units)
  layer = tf.keras.layers.LSTM(units, return_sequences=True)
  layer(x)
  for weight in layer.weights:
    weight.assign(0.4 * draw(*weight.shape))
  lengths = tf.constant(lengths, tf.int32)

  def ours(x):
    outputs = fast_lstm.lstm(
        tf.transpose(x, [1, 0, 2]), *layer.weights, lengths
    )
    return tf.transpose(outputs, [1, 0, 2])

  keras = lambda x: layer(x, mask=tf.sequence_mask(lengths, time))
  results = []
  for forward in (ours, keras):

    @tf.function
    def run(x, forward=forward):
      with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = forward(x)
        loss = tf.reduce_sum(outputs * d_outputs)
      return [outputs, *tape.gradient(loss, [x, *layer.weights])]

    results.append([value.numpy() for value in run(x)])
  return results


@pytest.mark.parametrize(
    'time, lengths',
    [
        (8, [8, 8, 8]),
        (9, [9, 1, 4, 6]),
        (6, [3, 0, 2]),  # Steps that no row uses, and a row of padding only.
        (1, [1]),
        (3, [0, 0]),
    ],
)
def test_equals_keras(time, lengths):
  ours, keras = _both(time, lengths)
  for mine, theirs in zip(ours, keras, strict=True):
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('lengths', [[3, 0, 2], [5, 1, 5], [0, 0, 0]])
def test_reads_nothing_that_the_op_leaves_undefined(lengths, monkeypatch):
  """Beyond the longest row the op's gates are whatever was in the memory."""
  real = tf.raw_ops.BlockLSTMV2

  def with_garbage(seq_len_max, x, **arguments):
    i, c, f, o, g, tanh_c, h = real(seq_len_max=seq_len_max, x=x, **arguments)
    undefined = tf.range(tf.shape(x, tf.int64)[0]) >= seq_len_max
    spoil = lambda gate: tf.where(undefined[:, None, None], np.nan, gate)
    return spoil(i), c, spoil(f), spoil(o), spoil(g), spoil(tanh_c), h

  monkeypatch.setattr(tf.raw_ops, 'BlockLSTMV2', with_garbage)
  ours, keras = _both(7, lengths)
  for mine, theirs in zip(ours, keras, strict=True):
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_two_layers_equal_keras():
  """The carried-over output of the first layer is input of the second."""
  lengths = tf.constant([6, 1, 0, 4], tf.int32)
  draw = lambda *shape: np.random.default_rng(sum(shape)).normal(
      size=shape
  ).astype(np.float32)
  x, d_outputs = tf.constant(draw(4, 6, 3)), tf.constant(draw(4, 6, 5))
  layers = [
      tf.keras.layers.LSTM(units, return_sequences=True) for units in (4, 5)
  ]
  mask = tf.sequence_mask(lengths, 6)

  def keras():
    hidden = x
    for layer in layers:
      hidden = layer(hidden, mask=mask)
    return hidden

  def ours():
    hidden = tf.transpose(x, [1, 0, 2])
    for layer in layers:
      hidden = fast_lstm.lstm(hidden, *layer.weights, lengths)
    return tf.transpose(hidden, [1, 0, 2])

  keras()
  weights = [w for layer in layers for w in layer.weights]
  for weight in weights:
    weight.assign(0.5 * draw(*weight.shape))
  results = []
  for forward in (ours, keras):
    with tf.GradientTape() as tape:
      tape.watch(x)
      outputs = forward()
      loss = tf.reduce_sum(outputs * d_outputs)
    results.append([outputs, *tape.gradient(loss, [x, *weights])])
  for mine, theirs in zip(*results, strict=True):
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_padding_repeats_the_last_output():
  (outputs, *_), _ = _both(5, [5, 2])
  np.testing.assert_array_equal(outputs[1, 2:], outputs[1, [1, 1, 1]])


def test_equals_keras_at_the_width_of_the_tasks():
  ours, keras = _both(80, [80, 80, 33, 7], features=8, units=64, seed=1)
  for mine, theirs in zip(ours, keras, strict=True):
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(mine / scale, theirs / scale, atol=1e-5)


def test_works_without_static_sizes():
  weights = [tf.ones([2, 12]), tf.ones([3, 12]), tf.zeros([12])]

  @tf.function(
      input_signature=[
          tf.TensorSpec([None, None, 2], tf.float32),
          tf.TensorSpec([None], tf.int32),
      ]
  )
  def gradient(x, lengths):
    with tf.GradientTape() as tape:
      tape.watch(x)
      loss = tf.reduce_sum(fast_lstm.lstm(x, *weights, lengths))
    return tape.gradient(loss, x)

  full = gradient(tf.ones([4, 2, 2]), tf.constant([4, 2]))
  alone = gradient(tf.ones([2, 1, 2]), tf.constant([2]))
  assert full.shape == [4, 2, 2]
  # A row of two steps has the same gradient whatever stands beside it, but
  # that its last output is counted once more for each padded position.
  padded = gradient(tf.ones([3, 1, 2]), tf.constant([2]))
  assert not np.allclose(padded[:2], alone)
  np.testing.assert_allclose(full[2:, 1], 0.0)
