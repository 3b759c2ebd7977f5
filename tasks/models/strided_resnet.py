"""ResNet-18 with group normalisation as in FL-Simulator: strided stages."""

import math

import tensorflow as tf

from tasks.models import group_norm
from tasks.models import residual_net
from tasks.models import variables as variables_lib

_EPSILON = 1e-5


class StridedResNet(residual_net.ResidualNet):
  """The CIFAR network of FedInit, and smaller ones of its family.

    stem    conv 7x7 stride 2 - GN - ReLU - max-pool 3x3 stride 2
    stage s `blocks[s]` basic blocks of width 2^s `filters`:
            ReLU(x' + GN(conv3x3(ReLU(GN(conv3x3(x)))))); the first block of
            every stage but the first has stride 2 and x' = GN(conv1x1(x)), else
            x' = x
    head    mean over space - dense

  This is torchvision's ResNet-18, every batch normalisation replaced by a group
  normalisation: with `filters=64`, `blocks=(2, 2, 2, 2)` and two groups
  11 181 642 parameters for 10 classes, 11 227 812 for 100. Padding is the same
  on all sides. Initial values as there: convolutions N(0, 2 / fan-out), dense
  weights and bias uniform within 1/√fan-in.

  Source: FL-Simulator; FedInit (settings of the experiments).
  """

  def _make_stem(self, width):
    self._stem = self._conv_norm('stem/conv', 7, 3, width)

  def _make_block(self, name, width_in, width):
    wider = width_in != width
    return dict(
        stride=2 if wider else 1,
        conv1=self._conv_norm(f'{name}/conv1', 3, width_in, width),
        conv2=self._conv_norm(f'{name}/conv2', 3, width, width),
        shortcut=(
            self._conv_norm(f'{name}/shortcut', 1, width_in, width)
            if wider
            else None
        ),
    )

  def _make_head(self, width, num_classes):
    limit = variables_lib.uniform(1 / math.sqrt(width))
    self._dense = (
        self.variables.add('head/kernel', [width, num_classes], limit),
        self.variables.add('head/bias', [num_classes], limit),
    )

  def __call__(self, x, dropout):
    """Returns logits `[batch, classes]` of images `[batch, size, size, 3]`."""
    del dropout
    x = tf.nn.relu(self._apply(x, self._stem, 2))
    # Nothing is below 0 after the ReLU: padding with 0 is no padding at all.
    x = tf.nn.max_pool2d(_padded(x, 1), 3, 2, 'VALID')
    for block in self._blocks:
      residual = tf.nn.relu(self._apply(x, block['conv1'], block['stride']))
      residual = self._apply(residual, block['conv2'], 1)
      if block['shortcut'] is not None:
        x = self._apply(x, block['shortcut'], block['stride'])
      x = tf.nn.relu(x + residual)
    kernel, bias = self._dense
    return tf.matmul(tf.reduce_mean(x, axis=[1, 2]), kernel) + bias

  def _conv_norm(self, name, size, width_in, width):
    return (
        self.variables.add(
            f'{name}/kernel',
            [size, size, width_in, width],
            variables_lib.normal(math.sqrt(2 / (size * size * width))),
        ),
        self.variables.add(f'{name}/norm/scale', [width], variables_lib.ones),
        self.variables.add(f'{name}/norm/offset', [width], variables_lib.zeros),
    )

  def _apply(self, x, conv_norm, stride):
    kernel, scale, offset = conv_norm
    if stride == 1:
      x = tf.nn.conv2d(x, kernel, 1, 'SAME')
    else:
      x = _padded(x, kernel.shape[0] // 2)
      x = tf.nn.conv2d(x, kernel, stride, 'VALID')
    return group_norm.group_norm(x, scale, offset, self._groups, _EPSILON)


def _padded(x, margin):
  """The images with zeros around them, as many on every side."""
  if not margin:
    return x
  return tf.pad(x, [[0, 0], [margin, margin], [margin, margin], [0, 0]])
