"""ResNet with group normalisation, pre-activation form, for 24x24 crops."""

import tensorflow as tf

from tasks.models import group_norm
from tasks.models import residual_net
from tasks.models import variables as variables_lib

_EPSILON = 1e-3


class ResNet(residual_net.ResidualNet):
  """The CIFAR network of the published runs, and smaller ones of its family.

    stem    conv 7x7 stride 2 - GN - ReLU - max-pool 3x3 stride 2
    stage s `blocks[s]` basic blocks of width 2^s `filters`, all of stride 1:
            x + conv3x3(ReLU(GN(conv3x3(ReLU(GN(x)))))); the very first block
            has no leading GN-ReLU; where the width changes the shortcut is a
            1x1 convolution of x and a GN
    head    GN - ReLU - mean over space - dense

  With `filters=64`, `blocks=(2, 2, 2, 2)` and two groups this is ResNet-18-GN:
  11 181 642 parameters for 10 classes, 11 227 812 for 100.
  """

  def _make_stem(self, width):
    self._stem = self._conv('stem/conv', 7, 3, width)
    self._stem_norm = self._norm('stem/norm', width)

  def _make_block(self, name, width_in, width):
    block = dict(shortcut=None, norm1=None)
    if self._blocks:  # The very first one comes right after the stem's.
      block['norm1'] = self._norm(f'{name}/norm1', width_in)
    block['conv1'] = self._conv(f'{name}/conv1', 3, width_in, width)
    block['norm2'] = self._norm(f'{name}/norm2', width)
    block['conv2'] = self._conv(f'{name}/conv2', 3, width, width)
    if width_in != width:
      block['shortcut'] = (
          self._conv(f'{name}/shortcut', 1, width_in, width),
          self._norm(f'{name}/norm_shortcut', width),
      )
    return block

  def _make_head(self, width, num_classes):
    self._head_norm = self._norm('head/norm', width)
    self._dense = (
        self.variables.add(
            'head/kernel', [width, num_classes], variables_lib.normal(0.01)
        ),
        self.variables.add('head/bias', [num_classes], variables_lib.zeros),
    )

  def __call__(self, x, dropout):
    """Returns logits `[batch, classes]` of images `[batch, 24, 24, 3]`."""
    del dropout
    x = tf.nn.conv2d(x, self._stem, strides=2, padding='SAME')
    x = self._norm_relu(x, self._stem_norm)
    x = tf.nn.max_pool2d(x, 3, strides=2, padding='SAME')
    for block in self._blocks:
      x = self._apply_block(x, block)
    x = tf.reduce_mean(self._norm_relu(x, self._head_norm), axis=[1, 2])
    kernel, bias = self._dense
    return tf.matmul(x, kernel) + bias

  def _conv(self, name, size, width_in, width):
    return self.variables.add(
        f'{name}/kernel', [size, size, width_in, width], variables_lib.he_normal
    )

  def _norm(self, name, width):
    return (
        self.variables.add(f'{name}/scale', [width], variables_lib.ones),
        self.variables.add(f'{name}/offset', [width], variables_lib.zeros),
    )

  def _apply_block(self, x, block):
    residual = x
    if block['norm1'] is not None:
      residual = self._norm_relu(residual, block['norm1'])
    residual = tf.nn.conv2d(residual, block['conv1'], 1, 'SAME')
    residual = self._norm_relu(residual, block['norm2'])
    residual = tf.nn.conv2d(residual, block['conv2'], 1, 'SAME')
    if block['shortcut'] is not None:
      kernel, norm = block['shortcut']
      x = tf.nn.conv2d(x, kernel, 1, 'SAME')
      x = group_norm.group_norm(x, *norm, self._groups, _EPSILON)
    return x + residual

  def _norm_relu(self, x, norm):
    return tf.nn.relu(group_norm.group_norm(x, *norm, self._groups, _EPSILON))
