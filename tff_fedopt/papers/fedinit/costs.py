"""What a method sends and keeps, measured: types of what is sent, files."""

import collections
import functools
import os
import pathlib
import tempfile

from tff_fedopt.papers.fedinit import settings
from tff_fedopt.tables import spec


def communication(seed: int, method: str, direction: str) -> spec.Measured:
  """Models that cross the network between server and client in a round.

  Args:
    seed: Of no effect.
    method: One of `settings.METHODS`.
    direction: `down`, `up`, or `larger` of the two.

  Returns:
    Bytes by the bytes of the model.
  """
  del seed
  down, up, _ = _costs(method)
  models = {'down': down, 'up': up, 'larger': max(down, up)}
  return spec.Measured(models[direction])


def storage(seed: int, method: str) -> spec.Measured:
  """Models that a client keeps between rounds, in its files.

  Args:
    seed: Of no effect.
    method: One of `settings.METHODS`.

  Returns:
    Bytes by the bytes of the model.
  """
  del seed
  return spec.Measured(_costs(method)[2])


@functools.cache
def _costs(method):
  """Bytes down, up and kept of one client in one round, in models."""
  import numpy as np
  import tensorflow_federated as tff

  from tff_fedopt import algorithms
  from tff_fedopt import runtime
  from tff_fedopt.experiment import rounds

  runtime.use()
  model = sum(
      4 * v.shape.num_elements() for v in _model_fn().trainable_variables
  )
  examples = collections.OrderedDict(
      x=np.ones([1, 3], np.int32), y=np.ones([1, 1], np.int32)
  )
  clients = tff.simulation.datasets.TestClientData({'one': examples})
  algorithm, values = settings.hyperparameters(method, 'code')
  with tempfile.TemporaryDirectory() as folder:
    hp = algorithms.validate(algorithm, values)
    process = algorithms.build_parsed(
        algorithm, _model_fn, hp.placed(1, os.path.join(folder, 'state'))
    )
    batched = clients.preprocess(lambda dataset: dataset.batch(1))
    list(rounds.run(process, batched, [['one']]))
    files = pathlib.Path(folder).glob('state/*/*.data-*')
    kept = sum(f.stat().st_size for f in files)
  return process.bytes_down / model, process.bytes_up / model, kept / model


def _model_fn():
  """A model of a few weights: what counts are multiples of it."""
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
