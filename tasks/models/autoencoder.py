"""The bottleneck autoencoder for EMNIST images."""

from collections.abc import Sequence

import tensorflow as tf

from tasks.models import variables as variables_lib

WIDTHS = (1000, 500, 250, 30, 250, 500, 1000)


class Autoencoder:
  """Dense layers down to a linear code and up again, sigmoid everywhere else.

  The published widths give 2 837 314 parameters.
  """

  uses_dropout = False

  def __init__(
      self,
      seed: int,
      *,
      pixels: int = 784,
      widths: Sequence[int] = WIDTHS,
      initializer: variables_lib.Initializer = variables_lib.glorot_uniform,
  ):
    """Creates the weights.

    Args:
      seed: int, seed of the initial values.
      pixels: int, size of input and output.
      widths: ints, hidden widths; the narrowest is the code.
      initializer: initialiser of the kernels. The published code draws
        Glorot-normal, TFF's later version Glorot-uniform; the variance is the
        same.
    """
    self.variables = variables_lib.Variables(seed)
    self._code = min(range(len(widths)), key=lambda layer: widths[layer])
    sizes = [pixels, *widths, pixels]
    self._layers = [
        (
            self.variables.add(
                f'dense{layer + 1}/kernel',
                sizes[layer : layer + 2],
                initializer,
            ),
            self.variables.add(
                f'dense{layer + 1}/bias',
                [sizes[layer + 1]],
                variables_lib.zeros,
            ),
        )
        for layer in range(len(sizes) - 1)
    ]
    self.decayed = [kernel for kernel, _ in self._layers]

  def __call__(self, x, dropout):
    """Returns the reconstruction `[batch, pixels]` of `[batch, pixels]`."""
    del dropout
    for layer, (kernel, bias) in enumerate(self._layers):
      x = tf.matmul(x, kernel) + bias
      if layer != self._code:
        x = tf.sigmoid(x)
    return x
