"""A task as a user writes it, in one file outside the package."""

import pathlib
import sys

import tasks

# What a user writes, whole.
_TEXT = '''
import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import tasks
from tasks import task as task_lib


def client(number):
  rng = np.random.default_rng(number)
  y = np.arange(5 + number) % 2
  x = rng.normal(size=[len(y), 3]) + 2 * y[:, np.newaxis]
  return collections.OrderedDict(x=x.astype('float32'), y=y[:, np.newaxis])


def clients(numbers):
  return tff.simulation.datasets.TestClientData(
      {f'client_{i}': client(i) for i in numbers}
  )


def model_fn():
  return tff.learning.models.from_keras_model(
      tf.keras.Sequential([
          tf.keras.layers.InputLayer([3]),
          tf.keras.layers.Dense(2, kernel_initializer='zeros'),
      ]),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      metrics=[tf.keras.metrics.SparseCategoricalAccuracy('accuracy')],
      input_spec=collections.OrderedDict(
          x=tf.TensorSpec([None, 3]), y=tf.TensorSpec([None, 1], tf.int64)
      ),
  )


tasks.from_client_data(
    'NAME',
    clients(range(6)),
    clients(range(6, 8)),
    model_fn,
    metric=task_lib.Metric('accuracy', 'accuracy', '%', 100.0, True),
    published=task_lib.Published(batch_size=4, local_epochs=1),
)
'''


def install(folder: pathlib.Path, monkeypatch) -> str:
  """Writes the file into a folder outside and imports it.

  Args:
    folder: The folder; decides the task's name.
    monkeypatch: Pytest's, which puts things back.

  Returns:
    The name of the task, and of its module.
  """
  monkeypatch.setattr(tasks, '_sources', dict(tasks._sources))
  name = f'blobs_{folder.name}'
  (folder / f'{name}.py').write_text(_TEXT.replace('NAME', name))
  monkeypatch.syspath_prepend(folder)
  monkeypatch.setitem(sys.modules, name, None)  # Taken back in the end.
  del sys.modules[name]
  __import__(name)
  return name
