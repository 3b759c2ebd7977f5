"""A model that is one array, for problems whose optimum is known."""

import collections
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def build(
    first: np.ndarray,
    input_spec: Mapping[str, Any],
    loss_fn: Callable[[Any, Mapping[str, Any], Any], Any],
):
  """Returns a `tff.learning.models.VariableModel`; TFF is loaded here.

  Args:
    first: Its initial weights, a float64 array.
    input_spec: A batch's tensors by name, as `tf.TensorSpec`; the first
      dimension of each counts the rows.
    loss_fn: From the weights, a batch and the weights as the client received
      them to the mean loss of the rows, a float64 scalar tensor.
  """
  import tensorflow as tf
  import tensorflow_federated as tff

  class Model(tff.learning.models.VariableModel):
    """The array, a copy of it as it was received, and the rows' mean loss."""

    def __init__(self):
      self._x = tf.Variable(first)
      self._received = tf.Variable(first, trainable=False)
      self._sums = tf.Variable(tf.zeros([2], tf.float64), trainable=False)

    trainable_variables = property(lambda self: (self._x,))
    non_trainable_variables = ()
    local_variables = property(lambda self: (self._sums,))
    input_spec = property(lambda self: collections.OrderedDict(input_spec))

    def begin_round(self):
      self._received.assign(self._x)

    def predict_on_batch(self, x, training=True):
      raise NotImplementedError

    def forward_pass(self, batch_input, training=True):
      loss = loss_fn(self._x, batch_input, self._received)
      rows = tf.shape(next(iter(batch_input.values())))[0]
      count = tf.cast(rows, tf.float64)
      self._sums.assign_add([loss * count, count])
      return tff.learning.models.BatchOutput(loss, (), rows)

    def report_local_unfinalized_metrics(self):
      return collections.OrderedDict(loss=self._sums.read_value())

    def metric_finalizers(self):
      return collections.OrderedDict(loss=lambda sums: sums[0] / sums[1])

    def reset_metrics(self):
      self._sums.assign(tf.zeros([2], tf.float64))

  return Model()
