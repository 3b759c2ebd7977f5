"""Training losses and metric sums of the tasks.

Where a published loss is a SUM over the batch, the sum is differentiated (the
tuned learning rates belong to it) while the reported `loss` is per example.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Objective:
  """A loss and its metrics.

  Attributes:
    metrics: length of the float32 sums of every metric, in order: 2 for
      [numerator, denominator], 1 for a count.
    compute: function (y, predictions) -> (loss to differentiate, dictionary of
      sums with the keys and lengths of `metrics`).
  """

  metrics: Mapping[str, int]
  compute: Callable[..., tuple[tf.Tensor, Mapping[str, tf.Tensor]]]


def _objective(compute, ratios, counts):
  sizes = [(name, 2) for name in ratios] + [(name, 1) for name in counts]
  return Objective(collections.OrderedDict(sizes), compute)


def _ratio(selected, among):
  """Returns [number of true in both, number of true in `among`]."""
  among = tf.cast(among, tf.float32)
  selected = tf.cast(selected, tf.float32)
  return tf.stack([tf.reduce_sum(selected * among), tf.reduce_sum(among)])


def _num_rows(y):
  return tf.cast(tf.shape(y)[0], tf.float32)


def classification() -> Objective:
  """Mean cross-entropy of logits `[batch, classes]` against int32 `[batch]`."""

  def compute(y, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    rows = _num_rows(y)
    hits = tf.equal(tf.argmax(logits, 1, output_type=y.dtype), y)
    return tf.reduce_mean(losses), dict(
        loss=tf.stack([tf.reduce_sum(losses), rows]),
        accuracy=_ratio(hits, tf.ones_like(hits)),
        num_examples=rows[tf.newaxis],
    )

  return _objective(compute, ['loss', 'accuracy'], ['num_examples'])


def next_token(exclusions: Mapping[str, Sequence[int]]) -> Objective:
  """Mean cross-entropy over ALL positions, padding (target 0) included.

  The published runs averaged over padded positions too, so that a masked mean
  would scale the gradients by (positions / non-pad positions) and detune the
  published rates. Accuracies leave positions out by their target.

  Args:
    exclusions: mapping from the name of an accuracy to the target ids that do
      not count for it.

  Returns:
    An `Objective` for logits `[batch, time, vocabulary]` and int32 targets
    `[batch, time]`.
  """

  def compute(y, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    loss = tf.reduce_mean(losses)
    rows = _num_rows(y)
    hits = tf.equal(tf.argmax(logits, 2, output_type=y.dtype), y)
    is_token = tf.not_equal(y, 0)
    sums = dict(
        loss=tf.stack([loss * rows, rows]),
        num_examples=rows[tf.newaxis],
        num_tokens=tf.reduce_sum(tf.cast(is_token, tf.float32))[tf.newaxis],
    )
    for name, excluded in exclusions.items():
      counts = tf.reduce_all(
          tf.not_equal(y[..., tf.newaxis], tf.constant(excluded, y.dtype)), -1
      )
      sums[name] = _ratio(hits, counts)
    return loss, sums

  return _objective(
      compute, ['loss', *exclusions], ['num_examples', 'num_tokens']
  )


def tags(num_tags: int) -> Objective:
  """Binary cross-entropy: mean over the tags, SUM over the batch.

  `recall_at_5` pools over examples the share of the true tags that are among
  the five highest scores; `precision` is that of probabilities above 0.5.

  Args:
    num_tags: int, number of tags.

  Returns:
    An `Objective` for logits `[batch, num_tags]` and int32 targets `[batch,
    tags]`, tag + 1 padded with 0.
  """

  def compute(y, logits):
    # Index -1 (padding) is outside the one-hot and gives a row of zeros.
    truth = tf.reduce_max(tf.one_hot(y - 1, num_tags), axis=1)
    losses = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(truth, logits), axis=1
    )
    total = tf.reduce_sum(losses)
    best = tf.math.top_k(logits, k=min(5, num_tags)).indices
    found = tf.gather(truth, best, batch_dims=1)
    positive = logits > 0.0
    rows = _num_rows(y)
    return total, dict(
        loss=tf.stack([total, rows]),
        recall_at_5=tf.stack([tf.reduce_sum(found), tf.reduce_sum(truth)]),
        precision=_ratio(truth, positive),
        num_examples=rows[tf.newaxis],
    )

  return _objective(
      compute, ['loss', 'recall_at_5', 'precision'], ['num_examples']
  )


def reconstruction(reduction: str = 'sum') -> Objective:
  """Squared error of `[batch, pixels]`, mean over pixels, SUM over the batch.

  Args:
    reduction: 'sum' (published rates belong to it) or 'mean' over the batch.

  Returns:
    An `Objective`; its `mse` is the mean over pixels and examples.
  """
  reduce = {'sum': tf.reduce_sum, 'mean': tf.reduce_mean}[reduction]

  def compute(y, predictions):
    errors = tf.reduce_mean(tf.math.squared_difference(predictions, y), axis=1)
    rows = _num_rows(y)
    mean = tf.stack([tf.reduce_sum(errors), rows])
    return reduce(errors), dict(
        loss=mean, mse=mean, num_examples=rows[tf.newaxis]
    )

  return _objective(compute, ['loss', 'mse'], ['num_examples'])
