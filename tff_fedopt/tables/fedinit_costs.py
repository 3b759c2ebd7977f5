"""What a method sends and keeps, measured: types of what is sent, files."""

import functools
import pathlib
import tempfile

from tff_fedopt.tables import fedinit_settings
from tff_fedopt.tables import spec


def communication(seed: int, method: str, direction: str) -> spec.Measured:
  """Models that cross the network between server and client in a round.

  Args:
    seed: Of no effect.
    method: One of `fedinit_settings.METHODS`.
    direction: `down`, `up`, or `larger` of the two.

  Returns:
    Bytes by the bytes of the model.
  """
  del seed
  down, up = _bytes(method)
  bytes_of = {'down': down, 'up': up, 'larger': max(down, up)}
  return spec.Measured(bytes_of[direction] / _model_bytes())


@functools.cache
def _bytes(method):
  with tempfile.TemporaryDirectory() as folder:
    process = _process(method, folder)
  return process.bytes_down, process.bytes_up


def storage(seed: int, method: str) -> spec.Measured:
  """Models that a client keeps between rounds, in its files.

  Args:
    seed: Of no effect.
    method: One of `fedinit_settings.METHODS`.

  Returns:
    Bytes by the bytes of the model.
  """
  del seed
  import numpy as np
  import tensorflow as tf

  from tff_fedopt.processes import client_input

  with tempfile.TemporaryDirectory() as folder:
    process = _process(method, folder)
    batch = tf.data.Dataset.from_tensors(
        {
            'x': np.ones([1, 3], np.int32),
            'y': np.ones([1, 1], np.int32),
        }
    )
    data = [client_input.client_input('one', batch)]
    process.next(process.initialize(), data)
    files = pathlib.Path(folder).glob('*/*/*.data-*')
    return spec.Measured(sum(f.stat().st_size for f in files) / _model_bytes())


def _model_fn():
  """A model of a few weights: what counts are multiples of it."""
  import collections

  import tensorflow as tf

  from tasks.models import bag_of_words
  from tasks.models import objectives
  from tasks.models import wrapper

  ids = tf.TensorSpec([None, None], tf.int32)
  return wrapper.TaskModel(
      bag_of_words.BagOfWordsRegression(40, 5, 0),
      objectives.tags(5),
      collections.OrderedDict(x=ids, y=ids),
  )


def _model_bytes():
  return sum(
      4 * v.shape.num_elements() for v in _model_fn().trainable_variables
  )


def _process(method, folder):
  from tff_fedopt import algorithms
  from tff_fedopt import runtime

  runtime.use()
  algorithm, values = fedinit_settings.hyperparameters(method, 'code')
  return algorithms.build(
      algorithm,
      _model_fn,
      num_clients=10,
      state_dir=str(pathlib.Path(folder, 'state')),
      **values,
  )
