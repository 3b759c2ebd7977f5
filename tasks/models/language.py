"""Recurrent networks that predict the next character or word."""

from collections.abc import Sequence

import tensorflow as tf

from tasks.models import embedding
from tasks.models import fast_lstm
from tasks.models import variables as variables_lib


class RecurrentNet:
  """Embedding, LSTM layers, an optional linear projection, dense logits.

  Id 0 is padding and must be at the end of a row: there the LSTM state and
  output are carried over. The state starts at zero in every row.

  Shakespeare (vocabulary 90, embedding 8, LSTM 256 twice, no projection) has
  820 522 parameters; Stack Overflow (10 004, 96, 670 once, projection 96) has
  4 050 748.
  """

  uses_dropout = False

  def __init__(
      self,
      vocabulary: int,
      seed: int,
      *,
      embedding_size: int,
      units: Sequence[int],
      projection: int | None = None,
      lstm_initializer: variables_lib.Initializer = (
          variables_lib.glorot_uniform
      ),
      dense_initializer: variables_lib.Initializer = (
          variables_lib.glorot_uniform
      ),
  ):
    """Creates the weights.

    Args:
      vocabulary: int, number of ids with padding and special ones.
      seed: int, seed of the initial values.
      embedding_size: int.
      units: ints, width of each LSTM layer.
      projection: int or None, width of a linear layer before the logits.
      lstm_initializer: initialiser of the LSTM input kernels.
      dense_initializer: initialiser of the dense kernels.
    """
    self.variables = variables_lib.Variables(seed)
    add = self.variables.add
    self._table = add(
        'embedding', [vocabulary, embedding_size], variables_lib.uniform(0.05)
    )
    self._lstms = []
    width = embedding_size
    for layer, size in enumerate(units, start=1):
      self._lstms.append((
          add(f'lstm{layer}/kernel', [width, 4 * size], lstm_initializer),
          add(
              f'lstm{layer}/recurrent_kernel',
              [size, 4 * size],
              variables_lib.orthogonal,
          ),
          add(
              f'lstm{layer}/bias', [4 * size], variables_lib.unit_forget_bias
          ),
      ))
      width = size
    self._dense = []
    for layer, size in enumerate(
        [vocabulary] if projection is None else [projection, vocabulary],
        start=1,
    ):
      self._dense.append((
          add(f'dense{layer}/kernel', [width, size], dense_initializer),
          add(f'dense{layer}/bias', [size], variables_lib.zeros),
      ))
      width = size
    self.decayed = [v for v in self.variables.trainable if 'kernel' in v.name]

  def __call__(self, x, dropout):
    """Returns logits `[batch, time, vocabulary]` of int32 `[batch, time]`."""
    del dropout
    lengths = tf.math.count_nonzero(x, axis=1, dtype=tf.int32)
    # Time comes first inside: the recurrent kernels want it, and transposing
    # ids and narrow rows is cheap.
    hidden = embedding.lookup(self._table, tf.transpose(x))
    for kernel, recurrent_kernel, bias in self._lstms:
      hidden = fast_lstm.lstm(hidden, kernel, recurrent_kernel, bias, lengths)
    hidden = tf.transpose(hidden, [1, 0, 2])
    shape = tf.shape(hidden)
    hidden = tf.reshape(hidden, [-1, hidden.shape[-1]])
    for kernel, bias in self._dense:
      hidden = tf.matmul(hidden, kernel) + bias
    return tf.reshape(hidden, [shape[0], shape[1], hidden.shape[-1]])
