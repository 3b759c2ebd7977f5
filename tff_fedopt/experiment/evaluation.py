"""Evaluation of weights on a stream of batches, in this process."""

import collections
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


class Evaluator:
  """Evaluates weights of one model; traced once per shape of batch.

  Batches are read one after the other, so memory does not depend on how many
  there are, and an interrupt acts between two of them.
  """

  def __init__(
      self, model_fn: Callable[[], tff.learning.models.VariableModel]
  ):
    """Builds the model.

    Args:
      model_fn: Returns a new model.
    """
    self._model = model_fn()
    self._variables = (
        *self._model.trainable_variables,
        *self._model.non_trainable_variables,
    )
    self._step = tf.function(
        lambda batch: self._model.forward_pass(batch, training=False) and None,
        # One graph for every number of rows, the last batch's too.
        input_signature=[self._model.input_spec],
    )
    # TFF's for Keras make variables whenever they are traced, which only works
    # outside of the tf.function that they are.
    self._finalizers = {
        name: getattr(finalizer, 'python_function', finalizer)
        for name, finalizer in self._model.metric_finalizers().items()
    }

  @property
  def metric_names(self) -> tuple[str, ...]:
    return tuple(self._finalizers)

  def __call__(
      self,
      weights: tff.learning.models.ModelWeights,
      dataset: tf.data.Dataset,
      max_examples: int | None = None,
  ) -> Mapping[str, Any]:
    """Returns the model's metrics on a dataset.

    Args:
      weights: The model's weights, arrays as leaves.
      dataset: Batches of the model's input.
      max_examples: Use only so many of the first rows; None for all.

    Returns:
      Each metric by name, a number or an array.
    """
    values = (*weights.trainable, *weights.non_trainable)
    for variable, value in zip(self._variables, values, strict=True):
      variable.assign(value)
    self._model.reset_metrics()
    for batch in _head(dataset, max_examples):
      self._step(batch)
    unfinalized = self._model.report_local_unfinalized_metrics()
    return collections.OrderedDict(
        (name, np.asarray(finalize(unfinalized[name]))[()])
        for name, finalize in self._finalizers.items()
    )


def _head(dataset, max_examples):
  """The first `max_examples` rows of batches; reads no further batch."""
  left = max_examples
  for batch in dataset:
    if left is not None:
      rows = tf.nest.flatten(batch)[0].shape[0]
      if rows >= left:
        yield tf.nest.map_structure(lambda rows: rows[:left], batch)
        return
      left -= rows
    yield batch
