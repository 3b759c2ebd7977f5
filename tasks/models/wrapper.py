"""The one `tff.learning.models.VariableModel` that wraps every network here.

An objective (`objectives.Objective`) gives the scalar that is differentiated
and float32 sums (`[numerator, denominator]`, or one number for a plain count),
which are added over batches and over clients. Finalised metrics are quotients.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf
import tensorflow_federated as tff

from tasks.models import dropout as dropout_lib
from tasks.models import objectives
from tasks.models import variables as variables_lib


@tf.function
def _quotient(sums):
  return tf.math.divide_no_nan(sums[0], sums[1])


@tf.function
def _count(sums):
  return sums[0]


class Network(Protocol):
  """What is trained.

  Attributes:
    variables: Its `trainable` list is the model's weights.
    decayed: The variables that weight decay applies to.
    uses_dropout: Whether a training pass draws random numbers.
  """

  variables: variables_lib.Variables
  decayed: Sequence[tf.Variable]
  uses_dropout: bool

  def __call__(self, x: Any, dropout: dropout_lib.Dropout | None) -> Any:
    """Predictions; `dropout` is None in evaluation."""


class TaskModel(tff.learning.models.VariableModel):
  """A network, an objective and their metric sums as a TFF model."""

  def __init__(
      self,
      network: Network,
      objective: objectives.Objective,
      input_spec: Any,
      *,
      weight_decay: float = 0.0,
  ):
    """Creates the metric and seed variables beside the network's.

    Args:
      network: what is trained.
      objective: an `objectives.Objective`.
      input_spec: OrderedDict x, y of structures of `tf.TensorSpec`.
      weight_decay: float, λ of the penalty λ Σ w² over `network.decayed`, added
        to the training loss (as Keras's `l2(λ)`) but to no metric.
    """
    self._network = network
    self._objective = objective
    self._input_spec = input_spec
    self._weight_decay = weight_decay
    self._sizes = objective.metrics
    self._sums = tf.Variable(
        lambda: tf.zeros([sum(self._sizes.values())]),
        trainable=False,
        name='metric_sums',
    )
    # [seed, step] of the next training pass.
    self._random_state = (
        tf.Variable(
            lambda: tf.zeros([2], tf.int64),
            trainable=False,
            name='random_state',
            dtype=tf.int64,
        )
        if network.uses_dropout
        else None
    )

  @property
  def trainable_variables(self) -> list[tf.Variable]:
    return self._network.variables.trainable

  @property
  def non_trainable_variables(self) -> list[tf.Variable]:
    return []

  @property
  def local_variables(self) -> list[tf.Variable]:
    if self._random_state is None:
      return [self._sums]
    return [self._sums, self._random_state]

  @property
  def input_spec(self) -> Any:
    return self._input_spec

  def seed_randomness(self, seed: tf.Tensor, step: tf.Tensor) -> None:
    """Makes the next training pass's dropout a function of (seed, step).

    Without this call the step counts up by itself from 0 under seed 0.

    Args:
      seed: int64 scalar.
      step: int64 scalar, number of the local step.
    """
    if self._random_state is not None:
      self._random_state.assign(
          tf.stack([tf.cast(seed, tf.int64), tf.cast(step, tf.int64)])
      )

  def predict_on_batch(self, x: Any, training: bool = True) -> Any:
    """Returns the network's predictions (logits, or the reconstruction)."""
    if not training or self._random_state is None:
      return self._network(x, None)
    state = self._random_state.read_value()
    self._random_state.assign_add(tf.constant([0, 1], tf.int64))
    return self._network(x, dropout_lib.Dropout(state[0], state[1]))

  def penalty(self) -> tf.Tensor | float:
    """Returns λ Σ w² of the training loss."""
    if not self._weight_decay:
      return 0.0
    return self._weight_decay * tf.add_n(
        [tf.reduce_sum(tf.square(v)) for v in self._network.decayed]
    )

  def forward_pass(
      self, batch_input: Mapping[str, Any], training: bool = True
  ) -> tff.learning.models.BatchOutput:
    """Computes loss and predictions of a batch and adds to the metric sums."""
    predictions = self.predict_on_batch(batch_input['x'], training)
    loss, sums = self._objective.compute(batch_input['y'], predictions)
    self._sums.assign_add(
        tf.concat([sums[name] for name in self._sizes], axis=0)
    )
    if training:
      loss += self.penalty()
    return tff.learning.models.BatchOutput(
        loss=loss,
        predictions=predictions,
        num_examples=tf.shape(tf.nest.flatten(batch_input)[0])[0],
    )

  def report_local_unfinalized_metrics(self) -> Mapping[str, tf.Tensor]:
    """Returns the metric sums since the last reset."""
    parts = tf.split(self._sums, list(self._sizes.values()))
    return collections.OrderedDict(zip(self._sizes, parts))

  def metric_finalizers(self) -> Mapping[str, Any]:
    """Returns the function from sums to value of every metric."""
    return collections.OrderedDict(
        (name, _quotient if size == 2 else _count)
        for name, size in self._sizes.items()
    )

  @tf.function
  def reset_metrics(self) -> None:
    """Sets all metric sums to 0."""
    self._sums.assign(tf.zeros_like(self._sums))

