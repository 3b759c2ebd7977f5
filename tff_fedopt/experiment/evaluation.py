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
  ) -> Mapping[str, Any]:
    """Returns the model's metrics on a dataset.

    Args:
      weights: The model's weights, arrays as leaves.
      dataset: Batches of the model's input.

    Returns:
      Each metric by name, a number or an array.
    """
    values = (*weights.trainable, *weights.non_trainable)
    for variable, value in zip(self._variables, values, strict=True):
      variable.assign(value)
    self._model.reset_metrics()
    for batch in dataset:
      self._step(batch)
    unfinalized = self._model.report_local_unfinalized_metrics()
    return collections.OrderedDict(
        (name, np.asarray(finalize(unfinalized[name]))[()])
        for name, finalize in self._finalizers.items()
    )


def sampled_batches(
    dataset: tf.data.Dataset, size: int, seed: int
) -> tf.data.Dataset:
  """Returns so many rows, drawn uniformly without replacement, as batches.

  Neither the order in which rows are stored (by client, often by class) nor a
  run decides which they are. They are held in memory.

  Args:
    dataset: Batches, whose first axis is rows; read twice, and not again.
    size: Number of rows; all of them if there are fewer.
    seed: Decides which rows, 0 or above.

  Returns:
    A `tf.data.Dataset` of the same structure, iterable many times, in the order
    of `dataset`.

  Raises:
    ValueError: If `size` is not positive.
  """
  if size < 1:
    raise ValueError(f'{size} rows; expected 1 or more')
  counts = [_rows(batch) for batch in dataset]
  total = sum(counts)
  chosen = np.sort(
      np.random.default_rng(seed).choice(total, min(size, total), replace=False)
  )
  parts, start = [], 0
  for batch, count in zip(dataset, counts):
    # Rows of this batch, by their place in it.
    low, high = np.searchsorted(chosen, [start, start + count])
    if high > low:
      parts.append(_gathered(batch, chosen[low:high] - start))
    start += count
  batches = _merged(parts, max(counts))
  return tf.data.Dataset.from_generator(
      lambda: iter(batches), output_signature=dataset.element_spec
  )


def _rows(batch):
  return int(tf.shape(tf.nest.flatten(batch)[0])[0])


def _gathered(batch, rows):
  return tf.nest.map_structure(lambda t: tf.gather(t, rows), batch)


def _merged(parts, size):
  """Puts parts together to batches of `size` where their rows are alike."""
  groups: list[list] = []
  alike = lambda part: [t.shape[1:] for t in tf.nest.flatten(part)]
  for part in parts:
    if groups and alike(groups[-1][0]) == alike(part):
      groups[-1].append(part)
    else:
      groups.append([part])
  batches = []
  for group in groups:
    together = tf.nest.map_structure(lambda *ts: tf.concat(ts, axis=0), *group)
    count = _rows(together)
    batches += [
        _gathered(together, range(k, min(k + size, count)))
        for k in range(0, count, size)
    ]
  return batches
