"""A problem of a few numbers, for the tests of this package."""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

INPUT_SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 2], tf.float32),
    y=tf.TensorSpec([None, 1], tf.float32),
)


class LinearModel(tff.learning.models.VariableModel):
  """y = x·w, squared error halved; metrics are sums, as in the tasks."""

  def __init__(self):
    self._w = tf.Variable(tf.zeros([2, 1]), name='w')
    self._sums = tf.Variable(tf.zeros([2]), trainable=False, name='sums')

  @property
  def trainable_variables(self):
    return [self._w]

  @property
  def non_trainable_variables(self):
    return []

  @property
  def local_variables(self):
    return [self._sums]

  @property
  def input_spec(self):
    return INPUT_SPEC

  def predict_on_batch(self, x, training=True):
    return tf.matmul(x, self._w)

  def forward_pass(self, batch_input, training=True):
    predictions = self.predict_on_batch(batch_input['x'], training)
    losses = 0.5 * tf.square(predictions - batch_input['y'])
    rows = tf.shape(predictions)[0]
    self._sums.assign_add(
        [tf.reduce_sum(losses), tf.cast(rows, tf.float32)]
    )
    return tff.learning.models.BatchOutput(
        loss=tf.reduce_mean(losses), predictions=predictions, num_examples=rows
    )

  def report_local_unfinalized_metrics(self):
    return collections.OrderedDict(loss=self._sums.read_value())

  def metric_finalizers(self):
    return collections.OrderedDict(
        loss=tf.function(lambda s: tf.math.divide_no_nan(s[0], s[1]))
    )

  def reset_metrics(self):
    self._sums.assign(tf.zeros([2]))


def arrays(index: int, examples: int = 4):
  """The examples of one client, y = x·(1, -1) + index."""
  rng = np.random.default_rng(index)
  x = rng.normal(size=[examples, 2]).astype(np.float32)
  y = x @ np.array([[1], [-1]], np.float32) + index
  return collections.OrderedDict(x=x, y=y.astype(np.float32))


def client_data(num_clients: int = 4, batch_size: int = 2):
  """Clients 'c0', 'c1', … of four examples each, batched."""
  data = tff.simulation.datasets.TestClientData(
      {f'c{i}': arrays(i) for i in range(num_clients)}
  )
  return data.preprocess(lambda ds: ds.batch(batch_size))
