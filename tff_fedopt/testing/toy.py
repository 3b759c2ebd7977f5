"""A problem of a few numbers, for the tests of this package."""

import collections
from collections.abc import Callable
import copy
import dataclasses
import os
import pkgutil
import signal
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import tasks
from tasks import task as task_lib
from tff_fedopt import runtime

INPUT_SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 2], tf.float32),
    y=tf.TensorSpec([None, 1], tf.float32),
)


class LinearModel(tff.learning.models.VariableModel):
  """y = x·w, squared error halved; metrics are sums, as in the tasks.

  Training targets get noise, so that seeds matter.
  """

  def __init__(self):
    self._noise_seed = tf.Variable([0, 0], trainable=False, dtype=tf.int64)
    self._w = tf.Variable(tf.zeros([2, 1]), name='w')
    self._sums = tf.Variable(tf.zeros([2]), trainable=False, name='sums')

  @property
  def trainable_variables(self):
    return [self._w]

  @property
  def non_trainable_variables(self):
    return []

  @property
  def local_variables(self):
    return [self._sums, self._noise_seed]

  @property
  def input_spec(self):
    return INPUT_SPEC

  def predict_on_batch(self, x, training=True):
    return tf.matmul(x, self._w)

  def seed_randomness(self, seed, step):
    self._noise_seed.assign(tf.stack([seed, step]))

  def forward_pass(self, batch_input, training=True):
    predictions = self.predict_on_batch(batch_input['x'], training)
    targets = batch_input['y']
    if training:
      targets += 0.01 * tf.random.stateless_normal(
          tf.shape(targets), self._noise_seed
      )
    losses = 0.5 * tf.square(predictions - targets)
    rows = tf.shape(predictions)[0]
    self._sums.assign_add(
        [tf.reduce_sum(losses), tf.cast(rows, tf.float32)]
    )
    return tff.learning.models.BatchOutput(
        loss=tf.reduce_mean(losses), predictions=predictions, num_examples=rows
    )

  def report_local_unfinalized_metrics(self):
    return collections.OrderedDict(loss=self._sums.read_value())

  def metric_finalizers(self):
    return collections.OrderedDict(
        loss=tf.function(lambda s: tf.math.divide_no_nan(s[0], s[1]))
    )

  def reset_metrics(self):
    self._sums.assign(tf.zeros([2]))


def arrays(index: int, examples: int = 4):
  """The examples of one client, y = x·(1, -1) + index mod 5."""
  rng = np.random.default_rng(index)
  x = rng.normal(size=[examples, 2]).astype(np.float32)
  y = x @ np.array([[1], [-1]], np.float32) + index % 5
  return collections.OrderedDict(x=x, y=y.astype(np.float32))


class Clients(tff.simulation.datasets.TestClientData):
  """Batched clients, shuffled by a seed."""

  def __init__(self, num_clients: int = 4, batch_size: int = 2):
    """Makes clients 'c0', 'c1', … of four examples each."""
    self._batch_size = batch_size
    self._max_batches = None
    super().__init__({f'c{i}': arrays(i) for i in range(num_clients)})

  def limited(self, max_batches: int) -> 'Clients':
    view = copy.copy(self)
    view._max_batches = max_batches
    return view

  def dataset_for_client(self, client_id: str, seed: int) -> tf.data.Dataset:
    examples = arrays(int(client_id[1:]))
    order = np.random.default_rng(seed).permutation(4)
    return tf.data.Dataset.from_tensor_slices(
        collections.OrderedDict((k, v[order]) for k, v in examples.items())
    ).batch(self._batch_size).take(self._max_batches or -1)

  def create_tf_dataset_for_client(self, client_id: str) -> tf.data.Dataset:
    return self.dataset_for_client(client_id, 0)


_INFO = task_lib.TaskInfo(
    name='toy',
    title='Linear regression on two numbers',
    dataset='toy',
    metric=task_lib.Metric('loss', 'Loss', '', 1, False),
    weighting='examples',
    published=task_lib.Published(
        rounds=6,
        cohort_size=2,
        batch_size=2,
        local_epochs=1,
        clients=4,
        examples=16,
        test_clients=1,
        test_examples=5,
        parameters=2,
        source='',
    ),
    options={'noise': task_lib.Option(0, 'Of no effect.')},
)


@dataclasses.dataclass(frozen=True)
class Task:
  """What the experiment package uses of a task."""

  train: tff.simulation.datasets.ClientData
  batch_size: int
  model_fn: Callable[[], tff.learning.models.VariableModel] = LinearModel
  data_kind: str = 'synthetic'
  metric: task_lib.Metric = _INFO.metric

  def validation(self):
    return tf.data.Dataset.from_tensor_slices(arrays(100, 7)).batch(3)

  def test(self):
    return tf.data.Dataset.from_tensor_slices(arrays(101, 5)).batch(3)

  def summary(self):
    return {'clients': len(self.train.client_ids), 'batch': self.batch_size}


def install(replace: Callable[[Any, str, Any], None] = setattr) -> None:
  """Makes 'toy' the only task, for specs and runs.

  Args:
    replace: Sets an attribute; a test gives `monkeypatch.setattr`.
  """

  def load(name, *, batch_size, local_epochs, seed, profile, data_dir, **_):
    del name, local_epochs, seed, profile, data_dir
    return Task(Clients(batch_size=batch_size), batch_size)

  replace(tasks, 'names', lambda: ['toy'])
  replace(tasks, 'info', lambda name: _INFO)
  replace(tasks, 'module_of', lambda name: __name__)
  replace(tasks, 'load', load)


def kill_worker_in_next_call(monkeypatch) -> None:
  """Kills the worker while the next call of a computation is under way.

  Between two calls it would be replaced and nobody would notice.

  Args:
    monkeypatch: Pytest's, which puts things back.
  """
  target = 'tff_fedopt.runtime.context._Stub._call'
  call = pkgutil.resolve_name(target)

  def kill_first(stub, method, request):
    monkeypatch.setattr(target, call)
    for pid in runtime.worker_pids():
      os.kill(pid, signal.SIGKILL)
    return call(stub, method, request)

  monkeypatch.setattr(target, kill_first)
