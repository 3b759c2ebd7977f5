"""Two blocks of variables: the model x, and label probabilities y of a client.

```
f(x, y) = mean over examples of ν (−Σ_c y_c log p_c(x) + τ/2 ‖y‖²)
          y in the simplex; y = the label and ν = 1 where it is known
block y: y = Π(log p(x_0) / τ)     x_0: the model that the client received
block x: local steps on f(·, y)
```

Π projects on the simplex; with it y minimises f at x = x_0 exactly, so that y
need not be kept from round to round.

Source: FedVRA's extension to two blocks of variables with constraints, derived
from its problem class; its own algorithm could not be found.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tasks.models import objectives
from tasks.models import wrapper


def project_to_simplex(v: tf.Tensor) -> tf.Tensor:
  """The nearest points of the simplex, Π(v).

  ```
  y = max(v − θ, 0), θ such that Σ y = 1
  ```

  Args:
    v: Float tensor [n, c].

  Returns:
    A tensor [n, c], rows at least 0 with sum 1.
  """
  ordered = tf.sort(v, axis=1, direction='DESCENDING')
  excess = tf.cumsum(ordered, axis=1) - 1
  counts = tf.range(1, tf.shape(v)[1] + 1)
  positive = ordered * tf.cast(counts, v.dtype) > excess
  # The largest count of entries that stay above θ.
  count = tf.reduce_max(tf.where(positive, counts, 0), axis=1)
  theta = tf.gather(excess, count - 1, batch_dims=1) / tf.cast(count, v.dtype)
  return tf.nn.relu(v - theta[:, tf.newaxis])


class TwoBlockModel(wrapper.TaskModel):
  """A classifier that learns from examples without labels, too."""

  def __init__(
      self,
      network: wrapper.Network,
      received: wrapper.Network,
      objective: objectives.Objective,
      input_spec: Any,
      *,
      unlabelled: str,
      temperature: float,
      unlabelled_weight: float = 1.0,
      weight_decay: float = 0.0,
  ):
    """Creates the model.

    Args:
      network: As for `TaskModel`.
      received: Another such network, which holds the received model.
      objective: Of evaluation, and of what is measured on known labels.
      input_spec: As for `TaskModel`; y is −1 where a label is not known.
      unlabelled: `ignored`, `argmax` or `block`.
      temperature: τ.
      unlabelled_weight: ν of examples without a label. At 1 the guesses of an
        untrained model drown the labels where most are unknown.
      weight_decay: As for `TaskModel`.
    """
    super().__init__(
        network, objective, input_spec, weight_decay=weight_decay
    )
    self._received = received
    self._unlabelled = unlabelled
    self._temperature = temperature
    self._weight = unlabelled_weight

  def begin_round(self) -> None:
    """Keeps x_0: the weights as they are now."""
    mine = self._network.variables.trainable
    for kept, variable in zip(self._received.variables.trainable, mine):
      kept.assign(variable)

  def forward_pass(
      self, batch_input: Mapping[str, Any], training: bool = True
  ) -> tff.learning.models.BatchOutput:
    if not training:
      return super().forward_pass(batch_input, training)
    x, y = batch_input['x'], batch_input['y']
    known = y >= 0
    logits = self.predict_on_batch(x, True)
    targets = tf.where(
        known[:, tf.newaxis],
        tf.one_hot(y, logits.shape[1], dtype=logits.dtype),
        self._weight * self._probabilities(x, logits),
    )
    # Not TensorFlow's cross-entropy: its gradient takes rows to sum to 1.
    losses = -tf.reduce_sum(targets * tf.nn.log_softmax(logits), axis=1)
    rows = tf.shape(y)[0]
    # Labels that are known are measured, all examples are counted.
    _, measured = self._objective.compute(
        tf.boolean_mask(y, known), tf.boolean_mask(logits, known)
    )
    sums = dict(measured)
    sums['num_examples'] = tf.cast(rows, tf.float32)[tf.newaxis]
    self._sums.assign_add(
        tf.concat([sums[name] for name in self._sizes], axis=0)
    )
    loss = tf.reduce_sum(losses) / tf.cast(rows, losses.dtype)
    return tff.learning.models.BatchOutput(
        loss + self.penalty(), logits, rows
    )

  def _probabilities(self, x, like):
    """y of examples without a label, as `like` [n, c]; 0 if ignored."""
    if self._unlabelled == 'ignored':
      return tf.zeros_like(like)
    logits = tf.stop_gradient(self._received(x, None))
    if self._unlabelled == 'argmax':
      return tf.one_hot(
          tf.argmax(logits, 1), logits.shape[1], dtype=logits.dtype
      )
    return project_to_simplex(tf.nn.log_softmax(logits) / self._temperature)
