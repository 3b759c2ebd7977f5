"""The convolutional network with dropout for EMNIST characters."""

from collections.abc import Sequence

import tensorflow as tf

from tasks.models import variables as variables_lib


class ConvDropoutNet:
  """Two 3x3 convolutions, pooling and two dense layers with dropout.

    conv 3x3 - ReLU - conv 3x3 - ReLU - max-pool 2x2 - dropout 0.25
    - flatten - dense - ReLU - dropout 0.5 - dense

  Convolutions are without padding; all kernels start Glorot-uniform. The
  published widths give 1 206 590 parameters for 62 classes.
  """

  uses_dropout = True

  def __init__(
      self,
      num_classes: int,
      seed: int,
      *,
      filters: Sequence[int] = (32, 64),
      units: int = 128,
  ):
    """Creates the weights.

    Args:
      num_classes: int.
      seed: int, seed of the initial values.
      filters: two ints, channels of the convolutions.
      units: int, width of the hidden dense layer.
    """
    self.variables = variables_lib.Variables(seed)
    first, second = filters
    self._conv1 = self._layer('conv1', [3, 3, 1, first])
    self._conv2 = self._layer('conv2', [3, 3, first, second])
    self._dense1 = self._layer('dense1', [12 * 12 * second, units])
    self._dense2 = self._layer('dense2', [units, num_classes])
    self.decayed = [v for v in self.variables.trainable if 'kernel' in v.name]

  def __call__(self, x, dropout):
    """Returns logits `[batch, classes]` of images `[batch, 28, 28, 1]`."""
    drop = dropout if dropout is not None else lambda x, rate: x
    for kernel, bias in (self._conv1, self._conv2):
      x = tf.nn.relu(
          tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, 'VALID'), bias)
      )
    x = drop(tf.nn.max_pool2d(x, 2, 2, 'VALID'), 0.25)
    kernel, bias = self._dense1
    x = tf.reshape(x, [-1, kernel.shape[0]])
    x = drop(tf.nn.relu(tf.matmul(x, kernel) + bias), 0.5)
    kernel, bias = self._dense2
    return tf.matmul(x, kernel) + bias

  def _layer(self, name, shape):
    return (
        self.variables.add(
            f'{name}/kernel', shape, variables_lib.glorot_uniform
        ),
        self.variables.add(f'{name}/bias', shape[-1:], variables_lib.zeros),
    )
