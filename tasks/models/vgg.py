"""VGG-11 without normalisation for 32x32 images."""

import math
from typing import Any

import tensorflow as tf

from tasks.models import variables as variables_lib

_POOL = None  # Where an image is halved.
_LAYERS = (1, _POOL, 2, _POOL, 4, 4, _POOL, 8, 8, _POOL, 8, 8, _POOL)


class Vgg11:
  """Eight 3x3 convolutions, five poolings, three dense layers, all with ReLU.

    64 - pool - 128 - pool - 256 - 256 - pool - 512 - 512 - pool - 512 - 512
    - pool - dense 512 - dense 512 - dense classes

  9 750 922 parameters for 10 classes at full width. FedInit names VGG-11 but
  its code was not published; normalisation and classifier are unknown, and this
  is our choice. Kernels start N(0, 2 / fan-in), since nothing normalises; the
  last layer uniform within 1/√fan-in; biases at 0.
  """

  uses_dropout = False

  def __init__(self, num_classes: int, seed: int, *, filters: int = 64):
    """Creates the weights.

    Args:
      num_classes: int.
      seed: int, seed of the initial values.
      filters: int, width of the first convolution.
    """
    self.variables = variables_lib.Variables(seed)
    self._convolutions: list[Any] = []
    width_in = 3
    for factor in _LAYERS:
      if factor is _POOL:
        self._convolutions.append(_POOL)
        continue
      width = factor * filters
      name = f'conv{len(self.variables.trainable) // 2 + 1}'
      self._convolutions.append(self._layer(name, [3, 3, width_in, width]))
      width_in = width
    self._dense = [
        self._layer(f'dense{i}', [width_in, width_in]) for i in (1, 2)
    ]
    self._head = (
        self.variables.add(
            'head/kernel',
            [width_in, num_classes],
            variables_lib.uniform(1 / math.sqrt(width_in)),
        ),
        self.variables.add('head/bias', [num_classes], variables_lib.zeros),
    )
    self.decayed = [v for v in self.variables.trainable if 'kernel' in v.name]

  def __call__(self, x, dropout):
    """Returns logits `[batch, classes]` of images `[batch, 32, 32, 3]`."""
    del dropout
    for layer in self._convolutions:
      if layer is _POOL:
        x = tf.nn.max_pool2d(x, 2, 2, 'VALID')
      else:
        kernel, bias = layer
        x = tf.nn.relu(
            tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, 'SAME'), bias)
        )
    x = tf.reshape(x, [-1, x.shape[-1]])
    for kernel, bias in self._dense:
      x = tf.nn.relu(tf.matmul(x, kernel) + bias)
    kernel, bias = self._head
    return tf.matmul(x, kernel) + bias

  def _layer(self, name, shape):
    fan_in, _ = variables_lib.fans(shape)
    return (
        self.variables.add(
            f'{name}/kernel', shape, variables_lib.normal(math.sqrt(2 / fan_in))
        ),
        self.variables.add(f'{name}/bias', shape[-1:], variables_lib.zeros),
    )
