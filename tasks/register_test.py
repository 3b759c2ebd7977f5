"""Tasks from outside: a third party's file in a folder of its own."""

import sys
import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

import tasks
from tasks import task as task_lib
from tasks.data import plain_clients
from tff_fedopt.testing import own_task


@pytest.fixture(name='registry', autouse=True)
def _registry(monkeypatch):
  """Takes back what a test registers."""
  monkeypatch.setattr(tasks, '_sources', dict(tasks._sources))


@pytest.fixture(name='blobs')
def _blobs(tmp_path, monkeypatch):
  """The name of a third party's task, imported from a folder outside."""
  return own_task.install(tmp_path, monkeypatch)


def _source(name='mine', **changes):
  metric = task_lib.Metric('loss', 'loss', '', 1.0, False)
  info = task_lib.TaskInfo(name=name, title='Mine', metric=metric, **changes)
  return types.SimpleNamespace(INFO=info, load=lambda request: request)


def test_a_task_of_client_data_is_like_the_others(blobs):
  assert blobs in tasks.names() and blobs not in tasks.PUBLISHED
  assert tasks.info(blobs).metric.unit == '%'
  task = tasks.load(blobs, seed=3, batch_size=2, local_epochs=2)
  assert task.data_kind == 'own'
  assert list(task.train.client_ids) == [f'client_{i}' for i in range(6)]
  assert task.train.sizes.tolist() == [5, 6, 7, 8, 9, 10]
  batches = list(task.train.dataset_for_client('client_1', 0))
  assert [len(b['y']) for b in batches] == [2] * 6
  model = task.model_fn()
  for batch in task.validation():
    output = model.forward_pass(batch, training=False)
  assert int(output.num_examples) == 23
  assert task.num_parameters == 8
  assert task.summary() == tasks.load(
      blobs, batch_size=2, local_epochs=2
  ).summary()


def test_a_module_is_a_task(monkeypatch):
  module = types.ModuleType('my_tasks')
  vars(module).update(vars(_source(options={'k': task_lib.Option(1, 'K.')})))
  monkeypatch.setitem(sys.modules, 'my_tasks', module)
  assert tasks.register('my_tasks').name == 'mine'
  tasks.register(module)  # Imported twice, it is the same.
  request = tasks.load('mine', batch_size=3, local_epochs=1, k=2)
  assert (request.batch_size, request.options) == (3, {'k': 2})
  with pytest.raises(ValueError, match='batch_size is missing: mine has no'):
    tasks.load('mine', local_epochs=1)


@pytest.mark.parametrize(
    'source, message',
    [
        ('no_such_module', "no task in 'no_such_module': No module named"),
        (types.SimpleNamespace(load=len), 'expected INFO, a tasks.task.TaskI'),
        (types.SimpleNamespace(INFO=_source().INFO), 'and load'),
        (_source('shakespeare'), "there is a task 'shakespeare' already"),
        (_source('my task'), "'my task'; expected letters, digits"),
    ],
)
def test_what_is_no_task_is_refused_in_one_line(source, message):
  with pytest.raises(ValueError, match=message) as e:
    tasks.register(source)
  assert '\n' not in str(e.value)
  assert tasks.names() == list(tasks.PUBLISHED)


def test_a_second_task_of_a_name_is_refused():
  tasks.register(_source())
  with pytest.raises(ValueError, match="there is a task 'mine' already"):
    tasks.register(_source())


def test_own_data_refuse_a_folder(blobs, tmp_path):
  with pytest.raises(ValueError, match='its data come with it; expected no'):
    tasks.load(blobs, data_dir=str(tmp_path))


def _clients(**changes):
  arrays = {
      'b': (np.arange(7.0), np.arange(7)),
      'a': (np.arange(30.0), np.arange(30)),
      **changes,
  }
  raw = tff.simulation.datasets.TestClientData(arrays)
  return plain_clients.PlainClients(raw, batch_size=4)


class TestPlainClients:
  """The structure here is a pair, as many models have it."""

  def test_batches_are_a_function_of_client_and_seed(self):
    clients = _clients()
    rows = lambda seed: [
        y.numpy().tolist() for _, y in clients.dataset_for_client('a', seed)
    ]
    assert rows(1) == rows(1) != rows(2)
    assert [len(r) for r in rows(1)] == [4] * 7 + [2]
    assert sorted(sum(rows(1), [])) == list(range(30))
    assert clients.limited(3).dataset_for_client('a', 1).cardinality() == 3
    first = list(clients.limited(3).dataset_for_client('a', 1))
    assert [y.numpy().tolist() for _, y in first] == rows(1)[:3]
    assert clients.element_type_structure == (
        tf.TensorSpec([None], tf.float64), tf.TensorSpec([None], tf.int64)
    )
    with pytest.raises(ValueError, match="no client 'x'; there are 2"):
      clients.dataset_for_client('x', 1)

  def test_evaluation_goes_through_all_in_order(self):
    ends = [int(y[-1]) for _, y in _clients().evaluation_batches(10)]
    assert ends == [2, 12, 22, 29]

  def test_digest_is_of_the_content(self):
    changed = np.arange(7.0)
    changed[3] = 0
    assert _clients().digest() == _clients().digest()
    assert _clients().digest() != _clients(b=(changed, np.arange(7))).digest()
    assert _clients().digest() != _clients(c=(changed, np.arange(7))).digest()

  def test_a_client_without_examples_has_no_batch(self):
    clients = _clients(c=(np.zeros([0]), np.zeros([0], np.int64)))
    assert clients.sizes.tolist() == [7, 30, 0]
    assert not list(clients.dataset_for_client('c', 0))
