"""Networks against TFF's Keras networks with the same weights."""

import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.simulation.baselines.emnist import (
  emnist_models,
)
from tensorflow_federated.python.simulation.baselines.shakespeare import (
  char_prediction_models,
)
from tensorflow_federated.python.simulation.baselines.stackoverflow import (
  word_prediction_models,
)
from tensorflow_federated.python.simulation.models import resnet_models

from tasks.models import autoencoder
from tasks.models import bag_of_words
from tasks.models import cnn
from tasks.models import language
from tasks.models import resnet
from tasks.models import strided_resnet
from tasks.models import vgg


def _images(*shape):
  return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def _tokens(vocabulary, batch, time):
  ids = np.random.default_rng(2).integers(1, vocabulary, (batch, time))
  ids[0, time // 2 :] = 0  # Padding.
  return ids.astype(np.int32)


def _keras_lr():
  return tf.keras.Sequential([tf.keras.layers.Dense(7, input_shape=(20,))])


_CASES = {
    'resnet': (
        lambda: resnet.ResNet(10, 3, filters=32, blocks=(1, 2), groups=32),
        lambda: resnet_models.create_resnet(
            (24, 24, 3),
            10,
            resnet_models.ResidualBlock.BASIC,
            [1, 2],
            initial_filters=32,
        ),
        _images(3, 24, 24, 3),
        tf.nn.softmax,
    ),
    'cnn': (
        lambda: cnn.ConvDropoutNet(62, 3),
        lambda: emnist_models.create_conv_dropout_model(only_digits=False),
        _images(3, 28, 28, 1),
        tf.nn.softmax,
    ),
    'autoencoder': (
        lambda: autoencoder.Autoencoder(3),
        emnist_models.create_autoencoder_model,
        _images(3, 784),
        tf.identity,
    ),
    'shakespeare': (
        lambda: language.RecurrentNet(
            90, 3, embedding_size=8, units=(256, 256)
        ),
        lambda: char_prediction_models.create_recurrent_model(90, 12),
        _tokens(90, 3, 12),
        tf.identity,
    ),
    'words': (
        lambda: language.RecurrentNet(
            104, 3, embedding_size=96, units=(670,), projection=96
        ),
        lambda: word_prediction_models.create_recurrent_model(104),
        _tokens(104, 3, 8),
        tf.identity,
    ),
}


@pytest.mark.parametrize('case', _CASES)
def test_equals_tff_network(case):
  make, make_keras, x, last = _CASES[case]
  network, keras = make(), make_keras()
  ours = network.variables.trainable
  theirs = _in_our_order(case, keras)
  assert [v.shape for v in ours] == [v.shape for v in theirs]
  for mine, other in zip(ours, theirs):
    other.assign(mine)
  weight = None
  gradients = []
  for forward, variables in (
      (lambda: last(network(tf.constant(x), None)), ours),
      (lambda: keras(x, training=False), theirs),
  ):
    with tf.GradientTape() as tape:
      y = forward()
      if weight is None:
        weight = np.random.default_rng(4).normal(size=y.shape)
        first = y
      loss = tf.reduce_sum(y * tf.cast(weight, tf.float32))
    gradients.append(
        [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]
    )
  np.testing.assert_allclose(first, y, atol=1e-5)
  for mine, other in zip(*gradients):
    scale = max(np.abs(other).max(), 1e-3)
    np.testing.assert_allclose(mine / scale, other / scale, atol=2e-4)


def _in_our_order(case, keras):
  """Keras's variables; it lists a shortcut's before the second convolution."""
  variables = list(keras.trainable_variables)
  if case != 'resnet':
    return variables
  layers = {layer.name: layer for layer in keras.layers}
  order = sorted(
      (layer for layer in keras.layers if layer.trainable_variables),
      key=lambda layer: list(layers).index(layer.name),
  )
  # Layers of a kind are numbered as they were made, which is our order.
  made = []
  for kind in ('conv2d', 'group_normalization', 'dense'):
    made.append(
        sorted(
            (l for l in order if l.name.startswith(kind)),
            key=lambda l: [int(n) for n in l.name.split('_') if n.isdigit()],
        )
    )
  convs, norms, dense = (iter(layers) for layers in made)
  result = []
  for v in resnet.ResNet(
      10, 3, filters=32, blocks=(1, 2), groups=32
  ).variables.trainable:
    if v.name.endswith('offset:0'):
      continue
    source = norms if 'norm' in v.name else convs
    if v.name.startswith('head/kernel'):
      source = dense
    if v.name.startswith('head/bias'):
      continue
    result.extend(next(source).trainable_variables)
  return result


def test_bag_of_words_equals_dense_layer_on_frequencies():
  # 21 is a word that is not known: it counts, and has no weights.
  ids = np.array(
      [[1, 20, 1, 5], [21, 3, 0, 0], [21, 0, 0, 0], [0, 0, 0, 0]], np.int32
  )
  frequencies = np.zeros((4, 20), np.float32)
  frequencies[0, [0, 19, 4]] = [0.5, 0.25, 0.25]
  frequencies[1, 2] = 0.5
  network = bag_of_words.BagOfWordsRegression(20, 7, 3)
  kernel, bias = network.variables.trainable
  bias.assign(tf.range(7.0))
  weight = tf.constant(_images(4, 7))
  with tf.GradientTape(persistent=True) as tape:
    ours = network(tf.constant(ids), None)
    dense = tf.matmul(frequencies, kernel) + bias
    losses = [tf.reduce_sum(y * weight) for y in (ours, dense)]
  np.testing.assert_allclose(ours, dense, atol=1e-6)
  for variable in (kernel, bias):
    mine, other = (tape.gradient(loss, variable) for loss in losses)
    np.testing.assert_allclose(mine, other, atol=1e-6)


_FULL = {
    'cifar10': (lambda: resnet.ResNet(10, 0), 11_181_642),
    'cifar100': (lambda: resnet.ResNet(100, 0), 11_227_812),
    'strided 10': (lambda: strided_resnet.StridedResNet(10, 0), 11_181_642),
    'strided 100': (lambda: strided_resnet.StridedResNet(100, 0), 11_227_812),
    'vgg': (lambda: vgg.Vgg11(10, 0), 9_750_922),
    'cnn': (lambda: cnn.ConvDropoutNet(62, 0), 1_206_590),
    'autoencoder': (lambda: autoencoder.Autoencoder(0), 2_837_314),
    'shakespeare': (
        lambda: language.RecurrentNet(
            90, 0, embedding_size=8, units=(256,) * 2
        ),
        820_522,
    ),
    'words': (
        lambda: language.RecurrentNet(
            10_004, 0, embedding_size=96, units=(670,), projection=96
        ),
        4_050_748,
    ),
    'tags': (
        lambda: bag_of_words.BagOfWordsRegression(10_000, 500, 0), 5_000_500
    ),
}


@pytest.mark.parametrize('case', _FULL)
def test_published_number_of_parameters(case):
  make, expected = _FULL[case]
  with tf.Graph().as_default():
    variables = make().variables.trainable
  assert sum(v.shape.num_elements() for v in variables) == expected


def test_resnet_has_stride_only_in_the_stem():
  network = resnet.ResNet(10, 0, filters=2, blocks=(1, 1), groups=2)
  with tf.Graph().as_default() as graph:
    x = tf.zeros([1, 24, 24, 3])
    network_in_graph = resnet.ResNet(10, 0, filters=2, blocks=(1, 1), groups=2)
    network_in_graph(x, None)
    strides = [
        (op.type, op.get_attr('strides')[1])
        for op in graph.get_operations()
        if op.type in ('Conv2D', 'MaxPool')
    ]
  assert strides[:2] == [('Conv2D', 2), ('MaxPool', 2)]
  assert {stride for _, stride in strides[2:]} == {1}
  assert len(network.decayed) == 8  # Six kernels, dense kernel and bias.


class TestInitialWeights:

  def test_are_a_function_of_seed_and_name(self):
    one, same, other = (
        cnn.ConvDropoutNet(5, seed, filters=(2, 3), units=4).variables.trainable
        for seed in (1, 1, 2)
    )
    for a, b in zip(one, same):
      np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one[0], other[0])
    assert not np.array_equal(one[0], one[2][..., :1, :2])

  def test_ignore_the_global_seed_and_are_equal_in_tff(self):
    make = lambda: language.RecurrentNet(
        9, 4, embedding_size=3, units=(5,), projection=2
    ).variables.trainable

    @tff.tensorflow.computation
    def in_tff():
      variables = make()
      with tf.control_dependencies([v.initializer for v in variables]):
        return [tf.identity(v) for v in variables]

    tf.random.set_seed(1)
    from tff_fedopt import runtime  # pylint: disable=g-import-not-at-top

    runtime.use()
    for mine, remote in zip(make(), in_tff(), strict=True):
      np.testing.assert_array_equal(mine, remote)

  def test_have_the_right_spread(self):
    network = resnet.ResNet(10, 0, filters=64, blocks=(1,))
    kernel = network.variables.trainable[3]
    assert kernel.name == 'stage1/block1/conv1/kernel:0'
    assert np.std(kernel) == pytest.approx(math.sqrt(2 / (9 * 64)), rel=0.02)
    glorot = autoencoder.Autoencoder(0).variables.trainable[0]
    assert np.std(glorot) == pytest.approx(math.sqrt(2 / 1784), rel=0.01)

  @pytest.mark.parametrize(
      'make, name, width, over',
      [
          (lambda: vgg.Vgg11(10, 0), 'conv2/kernel', 128, 9 * 64),
          (lambda: vgg.Vgg11(10, 0), 'dense1/kernel', 512, 512),
          (
              lambda: strided_resnet.StridedResNet(10, 0, blocks=(1, 1)),
              'stage2/block1/conv1/kernel',
              128,
              9 * 128,
          ),
      ],
      ids=['vgg', 'vgg dense', 'strided'],
  )
  def test_have_the_spread_of_fedinits_networks(self, make, name, width, over):
    """Kernels N(0, 2 / over), the last layer uniform within 1/√fan-in."""
    variables = {v.name: v.numpy() for v in make().variables.trainable}
    assert variables[f'{name}:0'].shape[-1] == width
    spread = np.std(variables[f'{name}:0'])
    assert spread == pytest.approx(math.sqrt(2 / over), rel=0.02)
    head = variables['head/kernel:0']
    limit = 1 / math.sqrt(len(head))
    assert 0.99 * limit < np.abs(head).max() <= limit

  def test_recurrent_kernel_is_orthogonal(self):
    network = language.RecurrentNet(9, 0, embedding_size=3, units=(6,))
    recurrent, bias = network.variables.trainable[2:4]
    np.testing.assert_allclose(
        tf.matmul(recurrent, recurrent, transpose_b=True), np.eye(6), atol=1e-5
    )
    np.testing.assert_array_equal(bias, [0] * 6 + [1] * 6 + [0] * 12)

  def test_names_are_unique(self):
    network = cnn.ConvDropoutNet(5, 0, filters=(2, 3), units=4)
    with pytest.raises(ValueError, match='conv1/bias.*unique'):
      network.variables.add('conv1/bias', [1], lambda shape, seed: 0.0)


def test_embedding_gradient_is_repeatable():
  network = language.RecurrentNet(50, 0, embedding_size=8, units=(4,))
  ids = tf.constant(_tokens(50, 64, 20))

  @tf.function
  def gradient():
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(network(ids, None) ** 2)
    return tape.gradient(loss, network.variables.trainable)

  first = gradient()
  assert isinstance(first[0], tf.Tensor)
  for _ in range(5):
    for a, b in zip(first, gradient()):
      np.testing.assert_array_equal(a, b)


def _plain_group_norm(x, scale, offset, groups=2):
  n, h, w, c = x.shape
  parts = x.reshape(n, h * w, groups, c // groups)
  mean = parts.mean(axis=(1, 3), keepdims=True)
  variance = parts.var(axis=(1, 3), keepdims=True)
  normal = ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)
  return normal * scale + offset


def _plain_conv(x, kernel, stride):
  """A convolution with equal padding on all sides, by its definition."""
  size = kernel.shape[0]
  p = size // 2
  x = np.pad(x, ((0, 0), (p, p), (p, p), (0, 0)))
  windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
  return np.einsum('nhwcij,ijco->nhwo', windows[:, ::stride, ::stride], kernel)


def test_strided_resnet_is_its_definition():
  network = strided_resnet.StridedResNet(5, 3, filters=4, blocks=(1, 1))
  rng = np.random.default_rng(0)
  for v in network.variables.trainable:
    v.assign(v + 0.1 * rng.normal(size=v.shape))
  w = {
      v.name.removesuffix(':0'): v.numpy() for v in network.variables.trainable
  }
  images = _images(2, 32, 32, 3)
  relu = lambda x: np.maximum(x, 0)

  def unit(x, name, stride):
    y = _plain_conv(x, w[f'{name}/kernel'], stride)
    return _plain_group_norm(
        y, w[f'{name}/norm/scale'], w[f'{name}/norm/offset']
    )

  x = relu(unit(images, 'stem/conv', 2))
  assert x.shape == (2, 16, 16, 4)
  x = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
  x = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
  x = x[:, ::2, ::2].max(axis=(-1, -2))
  for name, stride in (('stage1/block1', 1), ('stage2/block1', 2)):
    y = unit(relu(unit(x, f'{name}/conv1', stride)), f'{name}/conv2', 1)
    x = relu(y + (x if stride == 1 else unit(x, f'{name}/shortcut', 2)))
  assert x.shape == (2, 4, 4, 8)
  expected = x.mean(axis=(1, 2)) @ w['head/kernel'] + w['head/bias']
  np.testing.assert_allclose(network(images, None), expected, atol=1e-4)


def test_vgg_is_its_definition():
  network = vgg.Vgg11(5, 3, filters=2)
  rng = np.random.default_rng(0)
  for v in network.variables.trainable:
    v.assign(v + 0.1 * rng.normal(size=v.shape))
  w = {
      v.name.removesuffix(':0'): v.numpy() for v in network.variables.trainable
  }
  images = x = _images(2, 32, 32, 3)
  for number in range(1, 9):
    x = _plain_conv(x, w[f'conv{number}/kernel'], 1)
    x = np.maximum(x + w[f'conv{number}/bias'], 0)
    if number in (1, 2, 4, 6, 8):
      n, h, _, c = x.shape
      x = x.reshape(n, h // 2, 2, h // 2, 2, c).max(axis=(2, 4))
  x = x.reshape(2, -1)
  for name in ('dense1', 'dense2'):
    x = np.maximum(x @ w[f'{name}/kernel'] + w[f'{name}/bias'], 0)
  expected = x @ w['head/kernel'] + w['head/bias']
  np.testing.assert_allclose(network(images, None), expected, rtol=1e-4)


def test_weight_decay_is_for_kernels():
  for network, others in (
      (resnet.ResNet(3, 0, filters=2, blocks=(1,)), {'head/bias:0'}),
      (strided_resnet.StridedResNet(3, 0, filters=2, blocks=(1,)),
       {'head/bias:0'}),
      (vgg.Vgg11(3, 0, filters=2), set()),
  ):
    names = {v.name for v in network.variables.trainable}
    kernels = {name for name in names if name.endswith('kernel:0')}
    assert {v.name for v in network.decayed} == kernels | others

