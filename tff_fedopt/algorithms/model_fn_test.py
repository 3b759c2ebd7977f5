"""What `build` says of a `model_fn`, and what it takes from it."""

import collections
import functools
import re
import traceback
import warnings

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.processes import client_input
from tff_fedopt.testing import toy

SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 3], tf.float32),
    y=tf.TensorSpec([None, 1], tf.int32),
)


def _keras(*between, **first):
  """A network of two dense layers, with other layers between them."""
  return tf.keras.Sequential([
      tf.keras.layers.Input([3]),
      tf.keras.layers.Dense(2, kernel_initializer='zeros', **first),
      *between,
      tf.keras.layers.Dense(2, kernel_initializer='ones'),
  ])


def _wrapped(keras_model, **options):
  return tff.learning.models.from_keras_model(
      keras_model,
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=SPEC,
      **options,
  )


def _initial(model_fn):
  runtime.use()
  process = algorithms.build('fedavg', model_fn)
  return process.get_model_weights(process.initialize())


def _refused(model_fn):
  with pytest.raises(ValueError) as caught:
    algorithms.build('fedavg', model_fn)
  message = str(caught.value)
  assert '\n' not in message
  # The user sees where `build` was called, not how TensorFlow got there.
  chain = ''.join(traceback.format_exception(caught.value))
  assert 'direct cause' not in chain and 'During handling' not in chain
  return message


class _Hand(toy.LinearModel):
  """A model written by hand, with a table that clients do not receive."""

  def __init__(self, table=0.0, w=None, dtype=tf.float32):
    super().__init__()
    self._table = tf.Variable(0.0, trainable=False, name='table')
    if table:
      self._table.assign(table)
    if w is not None:
      self._w.assign(w)
    self._more = tf.Variable(tf.zeros([2, 1], dtype), name='more')

  @property
  def trainable_variables(self):
    return [self._w, self._more]


class _NoSpec(toy.LinearModel):
  input_spec = None


def _frozen():
  model = _keras()
  model.trainable = False
  return _wrapped(model)


def _functional():
  return tff.learning.models.functional_model_from_keras(
      _keras,
      tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      SPEC,
  )


@functools.cache
def _same_again():
  return _wrapped(_keras())


def _cases():
  made = _keras()
  metric = tf.keras.metrics.SparseCategoricalAccuracy()
  functional = _functional()
  return {
      'keras_model': (made, 'is a Keras model; expected a function'),
      'model': (toy.LinearModel(), 'is a model; expected a function'),
      'functional': (functional, 'is a FunctionalModel; expected a function'),
      'returns_functional': (lambda: functional, 'model_from_functional'),
      'returns_keras': (_keras, 'from_keras_model'),
      'returns_none': (lambda: None, 'returned None; expected a tff.learn'),
      'number': (3, 'is of type int; expected a function'),
      'arguments': (lambda n: n, 'without arguments .*functools.partial'),
      'outside': (lambda: _wrapped(made), 'made outside this call'),
      'cached': (_same_again, 'made outside this call'),
      'metric_outside': (
          lambda: _wrapped(_keras(), metrics=[metric]),
          'total was made outside this call',
      ),
      'no_input_shape': (
          lambda: _wrapped(tf.keras.Sequential([tf.keras.layers.Dense(2)])),
          'no weights yet; expected .*Input',
      ),
      'nothing_to_train': (_frozen, 'no trainable weights'),
      'mixed': (
          lambda: _wrapped(_keras(dtype='float64')),
          'float64, .* is float32; expected one floating dtype',
      ),
      'whole_numbers': (
          lambda: _Hand(dtype=tf.int32),
          'more is int32; expected a floating dtype',
      ),
      'no_spec': (_NoSpec, 'no input_spec'),
      'batch_normalisation': (
          lambda: _wrapped(_keras(tf.keras.layers.BatchNormalization())),
          'moving_mean.*GroupNormalization.*trainable=False',
      ),
      'lost': (lambda: _Hand(table=1.0), 'sets table, .*non_trainable'),
  }


def test_mistakes_are_said_in_one_line():
  for name, (model_fn, expected) in _cases().items():
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      message = _refused(model_fn)
    assert message.startswith('model_fn'), name
    assert re.search(expected, message), (name, message)


def test_own_exceptions_come_through():
  def model_fn():
    raise KeyError('mine')

  with pytest.raises(KeyError, match='mine'):
    algorithms.build('fedavg', model_fn)


def test_values_given_in_model_fn_are_the_start(tmp_path):
  kernel = np.arange(6, dtype=np.float32).reshape(3, 2)
  stored = _keras()
  stored.layers[0].set_weights([kernel, np.ones(2)])
  stored.save(tmp_path / 'model.keras')
  stored.save_weights(tmp_path / 'weights.h5')

  def set_weights():
    model = _keras()
    model.layers[0].set_weights([kernel, np.ones(2)])
    return _wrapped(model)

  def assign():
    model = _keras(bias_initializer='ones')
    model.layers[0].kernel.assign(kernel)
    return _wrapped(model)

  def load_weights():
    model = _keras()
    model.load_weights(tmp_path / 'weights.h5')
    return _wrapped(model)

  def load_model():
    path = tmp_path / 'model.keras'
    return _wrapped(tf.keras.models.load_model(path, compile=False))

  for model_fn in (set_weights, assign, load_weights, load_model):
    weights = _initial(model_fn)
    np.testing.assert_array_equal(weights.trainable[0], kernel)
    np.testing.assert_array_equal(weights.trainable[1], [1, 1])
    np.testing.assert_array_equal(weights.trainable[2], np.ones([2, 2]))
  weights = _initial(lambda: _Hand(w=[[2.0], [3.0]]))
  np.testing.assert_array_equal(weights.trainable[0], [[2], [3]])


def test_frozen_layers_keep_the_values_they_were_given():
  def model_fn():
    model = _keras(tf.keras.layers.BatchNormalization(trainable=False))
    model.layers[0].set_weights([np.ones([3, 2]), np.full(2, 5.0)])
    model.layers[0].trainable = False
    return _wrapped(model)

  with warnings.catch_warnings():
    warnings.simplefilter('ignore', UserWarning)  # TFF's, of the layer.
    weights = _initial(model_fn)
  assert len(weights.trainable) == 2 and len(weights.non_trainable) == 6
  assert {tuple(np.ravel(w)) for w in weights.non_trainable} >= {
      (1,) * 6,
      (5, 5),
  }


def test_values_that_nobody_can_read_are_refused():
  def model_fn():
    if tf.executing_eagerly():
      raise RuntimeError('in graphs\nonly')
    return _Hand(w=[[2.0], [3.0]])

  message = _refused(model_fn)
  assert 'in graphs only' in message and 'set_model_weights' in message


@pytest.mark.parametrize('layer', ['Dropout', 'GaussianNoise'])
def test_randomness_without_the_seed_is_said(layer):
  layers = tf.keras.layers
  model_fn = lambda: _wrapped(_keras(getattr(layers, layer)(0.5)))
  with pytest.warns(UserWarning, match='seed_randomness') as caught:
    algorithms.build('fedavg', model_fn)
  [warning] = [w for w in caught if 'random' in str(w.message)]
  assert f'{layer[:5].lower()}' in str(warning.message).lower()
  assert warning.filename == __file__


def test_nothing_is_said_of_a_model_that_takes_the_seed():
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    algorithms.build('fedavg', toy.LinearModel)


class _PythonInside(toy.LinearModel):
  """A forward pass with an `if` and a loop in Python, not decorated."""

  def forward_pass(self, batch_input, training=True):
    output = super().forward_pass(batch_input, training)
    loss = output.loss
    if loss > 0:
      loss = 2 * loss
    for _ in tf.range(2):
      loss = loss / 2
    return tff.learning.models.BatchOutput(
        loss=loss,
        predictions=output.predictions,
        num_examples=output.num_examples,
    )


@pytest.mark.parametrize('algorithm', ['fedavg', 'fedsam'])
def test_a_forward_pass_may_hold_pythons_if_and_for(algorithm):
  """Whatever else of the local training AutoGraph leaves alone."""
  runtime.use()
  process = algorithms.build(
      algorithm, _PythonInside, client_learning_rate=0.1
  )
  state = process.initialize()
  batches = tf.data.Dataset.from_tensors(
      collections.OrderedDict(x=[[1.0, 2.0]], y=[[3.0]])
  )
  client = client_input.client_input('a', batches)
  after = process.next(state, [client]).state
  w = process.get_model_weights(after).trainable[0]
  assert np.any(np.asarray(w) != 0)
