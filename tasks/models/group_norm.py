"""Group normalisation written for the CPU: two reductions each way."""

import tensorflow as tf


def group_norm(
    x: tf.Tensor,
    scale: tf.Tensor,
    offset: tf.Tensor,
    groups: int,
    epsilon: float,
) -> tf.Tensor:
  """Normalises each image over space and over the channels of each group.

    y = scale (x - mean) / sqrt(variance + epsilon) + offset

  Mean and variance come from sums per image and channel, so that the large
  array is read once for them and once for y; the gradient likewise is
  a dy + b x + c with coefficients per image and channel.

  Args:
    x: float32 `[batch, height, width, channels]`.
    scale: float32 `[channels]`.
    offset: float32 `[channels]`.
    groups: int, number of equal groups of neighbouring channels.
    epsilon: float, added to the variance.

  Returns:
    float32, of x's shape.

  Raises:
    ValueError: the channels do not divide into the groups.
  """
  channels = x.shape[-1]
  if channels % groups:
    raise ValueError(
        f'{channels} channels do not divide into {groups} groups; choose a'
        ' divisor'
    )
  size = channels // groups
  count = x.shape[1] * x.shape[2] * size

  def by_group(sums):
    """[batch, channels] -> the group's mean, repeated: [batch, channels]."""
    per_group = tf.reduce_sum(tf.reshape(sums, [-1, groups, size]), axis=2)
    return tf.repeat(per_group / count, size, axis=1)

  spread = lambda value: value[:, tf.newaxis, tf.newaxis, :]

  @tf.custom_gradient
  def normalise(x, scale, offset):
    mean = by_group(tf.reduce_sum(x, axis=[1, 2]))
    centred = x - spread(mean)
    variance = by_group(tf.reduce_sum(tf.square(centred), axis=[1, 2]))
    inverse = tf.math.rsqrt(variance + epsilon)
    slope = inverse * scale

    def gradient(dy):
      sum_dy = tf.reduce_sum(dy, axis=[1, 2])
      sum_dy_x = tf.reduce_sum(dy * centred, axis=[1, 2]) * inverse
      mean_dy = by_group(sum_dy * scale)
      mean_dy_x = by_group(sum_dy_x * scale)
      dx = (
          dy * spread(slope)
          - centred * spread(inverse * inverse * mean_dy_x)
          - spread(inverse * mean_dy)
      )
      return (
          dx,
          tf.reduce_sum(sum_dy_x, axis=0),
          tf.reduce_sum(sum_dy, axis=0),
      )

    return centred * spread(slope) + offset, gradient

  return normalise(x, tf.convert_to_tensor(scale), tf.convert_to_tensor(offset))
