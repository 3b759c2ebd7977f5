"""Problems of a few numbers: a model of arrays, and clients of one batch each.

TensorFlow is loaded on use.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# From the weights, a batch and the weights as the client received them to the
# mean loss of the batch's rows, a scalar tensor.
LossFn = Callable[[Sequence[Any], Mapping[str, Any], Sequence[Any]], Any]


def build_model(
    first: Sequence[np.ndarray], input_spec: Mapping[str, Any], loss_fn: LossFn
):
  """Returns a `tff.learning.models.VariableModel`.

  Args:
    first: Its initial weights, arrays of one dtype.
    input_spec: A batch's tensors by name, as `tf.TensorSpec`; the first
      dimension of each counts the rows.
    loss_fn: See `LossFn`.
  """
  import tensorflow as tf
  import tensorflow_federated as tff

  dtype = first[0].dtype

  class Model(tff.learning.models.VariableModel):
    """The arrays, copies as they were received, and the rows' mean loss."""

    def __init__(self):
      self._weights = tuple(tf.Variable(w) for w in first)
      self._received = tuple(tf.Variable(w, trainable=False) for w in first)
      self._sums = tf.Variable(tf.zeros([2], dtype), trainable=False)

    trainable_variables = property(lambda self: self._weights)
    non_trainable_variables = ()
    local_variables = property(lambda self: (self._sums,))
    input_spec = property(lambda self: collections.OrderedDict(input_spec))

    def begin_round(self):
      for received, weight in zip(self._received, self._weights):
        received.assign(weight)

    def predict_on_batch(self, x, training=True):
      raise NotImplementedError

    def forward_pass(self, batch_input, training=True):
      loss = loss_fn(self._weights, batch_input, self._received)
      rows = tf.shape(next(iter(batch_input.values())))[0]
      count = tf.cast(rows, dtype)
      self._sums.assign_add([loss * count, count])
      return tff.learning.models.BatchOutput(loss, (), rows)

    def report_local_unfinalized_metrics(self):
      return collections.OrderedDict(loss=self._sums.read_value())

    def metric_finalizers(self):
      return collections.OrderedDict(loss=lambda sums: sums[0] / sums[1])

    def reset_metrics(self):
      self._sums.assign(tf.zeros([2], dtype))

  return Model()


class ArrayProblem:
  """Clients that share one array; each has one batch, gone through often.

  Attributes:
    client_ids: The clients' names.
    first: The first model, float64.
  """

  def __init__(
      self,
      first: np.ndarray,
      batches: Sequence[Mapping[str, np.ndarray]],
      steps: Sequence[int],
  ):
    """Keeps the data.

    Args:
      first: The first model.
      batches: Each client's only batch, tensors by name.
      steps: How often each client goes through it in a round.
    """
    self.client_ids = [str(i) for i in range(len(batches))]
    self.first = first
    self._batches = batches
    self._steps = steps

  def dataset_for_client(self, client_id: str, seed: int):
    """Returns the client's batches of any round."""
    del seed  # Nothing is random.
    import tensorflow as tf

    i = int(client_id)
    batch = collections.OrderedDict(self._batches[i])
    return tf.data.Dataset.from_tensors(batch).repeat(self._steps[i])

  def loss(self, x: Any, batch: Mapping[str, Any], received: Any) -> Any:
    """Returns a client's loss, a scalar tensor.

    Args:
      x: The model.
      batch: Its batch.
      received: The model as the server sent it.
    """
    raise NotImplementedError

  def model_fn(self):
    """Returns the model as a `tff.learning.models.VariableModel`."""
    import tensorflow as tf

    return build_model(
        [self.first],
        {
            name: tf.TensorSpec([None, *array.shape[1:]], array.dtype)
            for name, array in self._batches[0].items()
        },
        lambda weights, batch, received: self.loss(
            weights[0], batch, received[0]
        ),
    )
