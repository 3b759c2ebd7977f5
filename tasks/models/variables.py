"""Trainable variables whose initial values are functions of (seed, name).

Initial values come from stateless generators, so that a network built twice
with one seed, eagerly or inside the graph of a TFF computation, starts from
the same weights, and no layer depends on how many others were made before.
"""

from collections.abc import Callable, Sequence
import hashlib
import math

import tensorflow as tf

# Standard deviation of a unit normal cut at two standard deviations.
_TRUNCATED_STDDEV = 0.87962566103423978


# From a shape and a pair of int64 seeds to the initial value.
Initializer = Callable[[Sequence[int], Sequence[int]], tf.Tensor]


def seed_pair(seed: int, name: str) -> list[int]:
  """Returns the two int64 words that a stateless TensorFlow generator takes."""
  digest = hashlib.sha256(f'{seed}/{name}'.encode()).digest()
  return [
      int.from_bytes(digest[start : start + 8], 'little') >> 1
      for start in (0, 8)
  ]


def fans(shape: Sequence[int]) -> tuple[int, int]:
  """Returns the numbers of inputs and outputs of a dense or conv kernel."""
  field = math.prod(shape[:-2])
  return field * shape[-2], field * shape[-1]


def zeros(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
  """Every value 0."""
  del seed
  return tf.zeros(shape)


def ones(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
  """Every value 1."""
  del seed
  return tf.ones(shape)


def unit_forget_bias(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
  """LSTM bias `[4 * units]`: 1 for the forget gate (second), 0 elsewhere."""
  del seed
  units = shape[0] // 4
  return tf.concat([tf.zeros(units), tf.ones(units), tf.zeros(2 * units)], 0)


def uniform(limit: float) -> Initializer:
  """Returns an initialiser: uniform in [-limit, limit)."""

  def initial_value(shape, seed):
    return tf.random.stateless_uniform(
        shape, seed, -limit, limit, alg='philox'
    )

  return initial_value


def normal(stddev: float) -> Initializer:
  """Returns an initialiser: normal with mean 0."""

  def initial_value(shape, seed):
    return tf.random.stateless_normal(shape, seed, 0.0, stddev, alg='philox')

  return initial_value


def _truncated_normal(shape, seed, variance):
  stddev = math.sqrt(variance) / _TRUNCATED_STDDEV
  return tf.random.stateless_truncated_normal(
      shape, seed, 0.0, stddev, alg='philox'
  )


def glorot_uniform(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
  """Uniform with variance 2 / (fan_in + fan_out)."""
  return uniform(math.sqrt(6.0 / sum(fans(shape))))(shape, seed)


def glorot_normal(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
  """Truncated normal with variance 2 / (fan_in + fan_out)."""
  return _truncated_normal(shape, seed, 2.0 / sum(fans(shape)))


def he_normal(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
  """Truncated normal with variance 2 / fan_in."""
  return _truncated_normal(shape, seed, 2.0 / fans(shape)[0])


def orthogonal(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
  """A matrix with orthonormal rows (or columns, whichever are fewer)."""
  rows, columns = shape
  draw = tf.random.stateless_normal(
      [max(rows, columns), min(rows, columns)], seed, alg='philox'
  )
  q, r = tf.linalg.qr(draw)
  q *= tf.sign(tf.linalg.diag_part(r))  # makes the draw uniform
  return tf.transpose(q) if rows < columns else q


class Variables:
  """Creates and holds the trainable variables of one network, in order."""

  def __init__(self, seed: int):
    """Starts with no variable.

    Args:
      seed: int, seed of the initial values.
    """
    self._seed = seed
    self.trainable: list[tf.Variable] = []

  def add(
      self, name: str, shape: Sequence[int], initializer: Initializer
  ) -> tf.Variable:
    """Creates a float32 variable.

    Args:
      name: str, unique in the network; decides the variable's random stream.
      shape: sequence of ints.
      initializer: function of (shape, pair of int seeds) to a tensor.

    Returns:
      The `tf.Variable`.

    Raises:
      ValueError: the name is taken.
    """
    if any(v.name == f'{name}:0' for v in self.trainable):
      raise ValueError(f'variable {name!r} exists; names must be unique')
    shape = [int(size) for size in shape]
    variable = tf.Variable(
        lambda: initializer(shape, seed_pair(self._seed, name)),
        name=name,
        shape=shape,
        dtype=tf.float32,
    )
    self.trainable.append(variable)
    return variable
