"""Looking up rows of a table by id, with a dense and repeatable gradient."""

import tensorflow as tf


def lookup(table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
  """Returns the rows of a table.

  The gradient is dense (TensorFlow's own would be `IndexedSlices`), because
  the optimizers and corrections work on whole variables.

  Args:
    table: float32 variable `[rows, width]`.
    ids: int32 tensor of any shape.

  Returns:
    float32 `ids.shape + [width]`.
  """
  rows, width = table.shape

  @tf.custom_gradient
  def gather(values):
    def gradient(d_out):
      return tf.math.unsorted_segment_sum(
          tf.reshape(d_out, [-1, width]), tf.reshape(ids, [-1]), rows
      )

    return tf.gather(values, ids), gradient

  return gather(tf.convert_to_tensor(table))


def mean_of_rows(table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
  """Returns the mean of the rows whose ids a padded list holds.

    out[b] = sum_j [0 < ids[b, j] <= rows] table[ids[b, j] - 1]
             / #{j: ids[b, j] > 0}

  Ids beyond the table (words out of the vocabulary) count and add nothing: it
  equals the product with the table of the mean over all words of their one-hot
  vectors, the last entry of which, that of unknown words, is left out. It has
  the same gradient; an empty list gives 0.

  Args:
    table: float32 variable `[rows, width]`.
    ids: int32 `[batch, length]`, row + 1, 0 for padding; padding is last.

  Returns:
    float32 `[batch, width]`.
  """
  rows, width = table.shape
  counts = tf.math.count_nonzero(ids, axis=1, dtype=tf.int32)
  batch = tf.shape(ids)[0]
  where = tf.where((ids > 0) & (ids <= rows))
  row_of_word = tf.gather_nd(ids, where) - 1
  example = tf.cast(where[:, 0], tf.int32)
  share = tf.math.divide_no_nan(1.0, tf.cast(counts, tf.float32))[:, tf.newaxis]

  @tf.custom_gradient
  def mean(values):
    def gradient(d_out):
      return tf.math.unsorted_segment_sum(
          tf.gather(d_out * share, example), row_of_word, rows
      )

    sums = tf.math.unsorted_segment_sum(
        tf.gather(values, row_of_word), example, batch
    )
    return sums * share, gradient

  return mean(tf.convert_to_tensor(table))
