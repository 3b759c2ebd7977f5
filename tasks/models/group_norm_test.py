"""Group normalisation equals Keras's, forward and backward."""

import numpy as np
import pytest
import tensorflow as tf

from tasks.models import group_norm


@pytest.mark.parametrize('groups', [1, 2, 3, 12])
def test_equals_keras(groups):
  rng = np.random.default_rng(groups)
  draw = lambda *shape: tf.constant(rng.normal(1, 2, size=shape), tf.float32)
  x, d_y = draw(4, 6, 5, 12), draw(4, 6, 5, 12)
  layer = tf.keras.layers.GroupNormalization(groups=groups, epsilon=1e-3)
  layer.build(x.shape)
  layer.gamma.assign(draw(12))
  layer.beta.assign(draw(12))

  def results(forward):
    with tf.GradientTape() as tape:
      tape.watch(x)
      y = forward(x)
      loss = tf.reduce_sum(y * d_y)
    return [y, *tape.gradient(loss, [x, layer.gamma, layer.beta])]

  ours = results(
      lambda x: group_norm.group_norm(x, layer.gamma, layer.beta, groups, 1e-3)
  )
  for mine, theirs in zip(ours, results(layer), strict=True):
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_channels_must_divide():
  with pytest.raises(ValueError, match='5 channels .* 2 groups'):
    group_norm.group_norm(
        tf.zeros([1, 2, 2, 5]), tf.ones(5), tf.zeros(5), 2, 1e-3
    )
