"""Arithmetic on tuples of tensors that stand for one model."""

from collections.abc import Sequence

import tensorflow as tf

from tff_fedopt.optimizers import base


def scaled(scalar: tf.Tensor | float, a: Sequence[tf.Tensor]) -> base.Tensors:
  """scalar · a; the scalar is cast to each tensor's dtype."""
  return tuple(tf.cast(scalar, t.dtype) * t for t in a)


def add(a: Sequence[tf.Tensor], b: Sequence[tf.Tensor]) -> base.Tensors:
  """a + b."""
  return tuple(t + u for t, u in zip(a, b))


def sub(a: Sequence[tf.Tensor], b: Sequence[tf.Tensor]) -> base.Tensors:
  """a − b."""
  return tuple(t - u for t, u in zip(a, b))


def add_scaled(
    a: Sequence[tf.Tensor], scalar: tf.Tensor | float, b: Sequence[tf.Tensor]
) -> base.Tensors:
  """a + scalar · b."""
  return tuple(t + tf.cast(scalar, t.dtype) * u for t, u in zip(a, b))


def divide_no_nan(
    a: Sequence[tf.Tensor], b: Sequence[tf.Tensor]
) -> base.Tensors:
  """a / b element-wise, and 0 where b is 0."""
  return tuple(tf.math.divide_no_nan(t, u) for t, u in zip(a, b))


def zeros_like(a: Sequence[tf.Tensor]) -> base.Tensors:
  return tuple(tf.zeros_like(t) for t in a)


def ones_like(a: Sequence[tf.Tensor]) -> base.Tensors:
  return tuple(tf.ones_like(t) for t in a)


def squared_norm(a: Sequence[tf.Tensor]) -> tf.Tensor:
  """‖a‖² over all tensors, in the dtype of the first."""
  return tf.add_n(
      [tf.cast(tf.reduce_sum(tf.square(t)), a[0].dtype) for t in a]
  )


def all_finite(a: Sequence[tf.Tensor]) -> tf.Tensor:
  """Whether every entry of every tensor in the nest is finite."""
  floats = [t for t in tf.nest.flatten(a) if t.dtype.is_floating]
  return tf.reduce_all(
      tf.stack([tf.reduce_all(tf.math.is_finite(t)) for t in floats])
  )
