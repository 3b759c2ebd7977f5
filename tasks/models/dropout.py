"""Dropout whose masks are a function of (seed, step)."""

import tensorflow as tf


class Dropout:
  """Draws the dropout masks of one forward pass, each with its own stream."""

  def __init__(self, seed: tf.Tensor, step: tf.Tensor):
    """Names the forward pass.

    Args:
      seed: int64 scalar, the client's seed in this round.
      step: int64 scalar, number of the local step.
    """
    self._seed = seed
    self._step = step
    self._masks = 0

  def __call__(self, x, rate):
    """Zeroes a share `rate` of x and scales the rest by 1 / (1 - rate)."""
    # Seeds use all bits; the step is far below 2**48, which leaves 16 bits to
    # number the masks inside a step.
    self._masks += 1
    stream = self._step + (self._masks << 48)
    return tf.nn.experimental.stateless_dropout(
        x, rate, seed=tf.stack([self._seed, stream]), rng_alg='philox'
    )
