"""Tests of prepared client data: reproducible, ordered, flat in memory."""

import collections
import gc

import numpy as np
import psutil
import pytest
import tensorflow as tf

from tasks.data import client_data
from tasks.data import sources
from tasks.data import sqlite_writer
from tff_fedopt.testing import real_data

SIZES = {'a': 1, 'b': 7, 'c': 40}


@pytest.fixture(name='opened', scope='module')
def _opened(tmp_path_factory):
  """Clients whose snippets are their numbers."""
  folder = tmp_path_factory.mktemp('data')
  rows = [
      (
          split,
          client,
          [sqlite_writer.serialized_example(snippets=f'{i}') for i in range(n)],
      )
      for split in ('train', 'test')
      for client, n in SIZES.items()
  ]
  path = str(folder / 'shakespeare.sqlite')
  sqlite_writer.write_database(path, rows)
  return sources.open_clients('shakespeare', str(folder))


def _numbers(raw):
  return {'n': np.array([int(s) for s in raw['snippets']], np.int64)}


def _prepared(opened, **options):
  options = dict(dict(batch_size=4, shuffle_buffer=100), **options)
  return client_data.PreparedClients(
      opened['train'],
      lambda e, rng: (e['n'] + rng.random(len(e['n'])), e['n']),
      decode=_numbers,
      **options,
  )


def _bytes(dataset):
  return [(b['x'].numpy().tobytes(), b['y'].numpy().tolist()) for b in dataset]


def test_function_of_client_and_seed(opened):
  one, other = _prepared(opened), _prepared(opened, cache_bytes=0)
  for client in ('b', 'c', 'a'):
    wanted = _bytes(one.dataset_for_client(client, 5))
    assert wanted == _bytes(other.dataset_for_client(client, 5))
    assert wanted == _bytes(one.dataset_for_client(client, 5))
    assert wanted != _bytes(one.dataset_for_client(client, 6))
  assert _bytes(one.create_tf_dataset_for_client('c')) == _bytes(
      one.dataset_for_client('c', 0)
  )


def test_batches(opened):
  clients = _prepared(opened, local_epochs=2)
  batches = list(clients.dataset_for_client('b', 1))
  assert [len(b['y']) for b in batches] == [4, 4, 4, 2]
  seen = np.concatenate([b['y'] for b in batches])
  assert sorted(seen[:7]) == sorted(seen[7:]) == list(range(7))
  assert seen[:7].tolist() != seen[7:].tolist()  # every epoch anew
  assert isinstance(batches[0], collections.OrderedDict)
  assert clients.element_type_structure == collections.OrderedDict(
      x=tf.TensorSpec([None], tf.float64), y=tf.TensorSpec([None], tf.int64)
  )
  assert clients.dataset_for_client('b', 1).element_spec == (
      clients.element_type_structure
  )


def test_limits_examples(opened):
  count = lambda c, client: sum(
      len(b['y']) for b in c.dataset_for_client(client, 1)
  )
  clients = _prepared(opened, max_examples=10, local_epochs=3)
  assert [count(clients, c) for c in 'abc'] == [3, 10, 10]
  first = _prepared(
      opened, max_examples=10, local_epochs=3, take_before_shuffle=True
  )
  assert [count(first, c) for c in 'abc'] == [3, 21, 30]
  seen = {int(y) for b in first.dataset_for_client('c', 1) for y in b['y']}
  assert seen == set(range(10))


@pytest.mark.parametrize('client', SIZES)
def test_limited_to_the_first_batches(opened, client):
  made = []

  def two_rows_each(examples, rng):
    del rng
    made.append(len(examples['n']))
    return np.repeat(examples['n'], 2), np.repeat(examples['n'], 2)

  clients = client_data.PreparedClients(
      opened['train'],
      two_rows_each,
      batch_size=4,
      shuffle_buffer=5,
      local_epochs=2,
      decode=_numbers,
  )
  whole = _bytes(clients.dataset_for_client(client, 3))
  limited = clients.limited(3)
  assert _bytes(limited.dataset_for_client(client, 3)) == whole[:3]
  assert made == [2 * SIZES[client], min(2 * SIZES[client], 12)]
  assert limited.examples(client)['n'] is clients.examples(client)['n']
  assert _bytes(clients.dataset_for_client(client, 3)) == whole


def test_reads_no_more_than_can_come_out(opened):
  clients = _prepared(opened, max_examples=5, shuffle_buffer=10)
  assert len(clients.examples('c')['n']) == 15
  seen = set()
  for seed in range(200):
    seen.update(clients.arrays_for_client('c', seed)[1].tolist())
  # The fifth example out has seen four come in behind the first ten.
  assert seen == set(range(14))


def test_sizes_and_ids(opened):
  read = _prepared(opened)
  told = _prepared(opened, sizes=opened.sizes('train'))
  for client, size in SIZES.items():
    assert read.num_examples(client) == told.num_examples(client) == size
  assert read.sizes is None
  assert dict(zip(told.client_ids, told.sizes)) == SIZES
  assert read.client_ids is opened['train'].client_ids
  for call in (read.num_examples, read.create_tf_dataset_for_client):
    with pytest.raises(ValueError, match="no client 'x'; there are 3"):
      call('x')
  with pytest.raises(NotImplementedError, match='dataset_for_client'):
    read.serializable_dataset_fn  # pylint: disable=pointless-statement


@pytest.mark.parametrize('name', ['batch_size', 'local_epochs', 'max_examples'])
def test_refuses(opened, name):
  with pytest.raises(ValueError, match=f'{name} must be at least 1, got 0'):
    _prepared(opened, **{name: 0})


def test_examples_are_kept_within_the_bytes(opened, monkeypatch):
  read = []
  collect = client_data._collect  # pylint: disable=protected-access
  monkeypatch.setattr(
      client_data, '_collect', lambda *a: read.append(1) or collect(*a)
  )

  def reads(clients, *names):
    del read[:]
    for name in names:
      clients.examples(name)
    return len(read)

  a, b, c = _prepared(opened).client_ids[:3]
  size = sum(
      array.nbytes
      for name in (a, b, c)
      for array in _prepared(opened).examples(name).values()
  )
  clients = _prepared(opened, cache_bytes=size - 1)
  assert reads(clients, a, b, a, b, a) == 2
  # c takes the place of what was not used for longest.
  assert reads(clients, c, a) == 1
  assert reads(clients, b) == 1
  # One that does not fit at all is read each time.
  assert reads(_prepared(opened, cache_bytes=1), a, a) == 2


def _order(n, seed, **options):
  rng = np.random.default_rng(seed)
  return client_data.example_order(n, rng, **options)


def test_order_is_a_shuffle_buffer():
  """Position of each example: uniform over what tf.data's buffer allows."""
  n, buffer, trials = 6, 3, 6000
  ours = np.zeros((n, n))
  for seed in range(trials):
    ours[np.arange(n), _order(n, seed, shuffle_buffer=buffer)] += 1
  theirs = np.zeros((n, n))
  shuffled = tf.data.Dataset.range(n).shuffle(buffer, seed=3)
  shuffled = shuffled.repeat(trials).batch(n)
  for row in shuffled.as_numpy_iterator():
    theirs[np.arange(n), row] += 1
  # First out: one of the first three, a third each; the k-th cannot be later
  # than example k + 2.
  np.testing.assert_allclose(ours[0, :3] / trials, 1 / 3, atol=0.03)
  assert ours[0, 3:].sum() == ours[1, 4:].sum() == ours[2, 5:].sum() == 0
  np.testing.assert_allclose(ours / trials, theirs / trials, atol=0.03)


def test_order_without_shuffling_and_in_part():
  np.testing.assert_array_equal(
      _order(3, 0, shuffle_buffer=1, local_epochs=2, max_examples=5),
      [0, 1, 2, 0, 1],
  )
  assert sorted(_order(50, 0, shuffle_buffer=7)) == list(range(50))
  assert len(_order(0, 0, shuffle_buffer=7)) == 0
  # A limit takes the head of the same distribution, not another shuffle.
  firsts = [
      _order(4, seed, shuffle_buffer=9, max_examples=1)[0]
      for seed in range(900)
  ]
  np.testing.assert_allclose(np.bincount(firsts) / 900, 0.25, atol=0.06)


def test_evaluation_streams_in_client_order(opened):
  prepare = lambda e: (e['n'] * 2, e['n'])
  data = client_data.evaluation_batches(opened['test'], _numbers, prepare, 10)
  for _ in range(2):  # the second pass comes from memory
    batches = list(data)
    assert [len(b['y']) for b in batches] == [10, 10, 10, 10, 8]
    y = np.concatenate([b['y'] for b in batches])
    assert y.tolist() == [0] + list(range(7)) + list(range(40))
    x = np.concatenate([b['x'] for b in batches])
    assert x.tolist() == (y * 2).tolist()
  head = client_data.evaluation_batches(
      opened['test'], _numbers, prepare, 10, limit=12, cache_bytes=0
  )
  assert [len(b['y']) for b in head] == [10, 2]
  # Clients have 1, 7 and 40 examples; this seed puts the second one first.
  seed, (first, second, _) = next(
      (seed, order)
      for seed in range(99)
      if (order := np.random.default_rng(seed).permutation(3))[0] == 1
  )
  examples = [[0], list(range(7)), list(range(40))]
  mixed = client_data.evaluation_batches(
      opened['test'], _numbers, prepare, 10, limit=8, order_seed=seed
  )
  y = np.concatenate([b['y'] for b in mixed])
  assert y.tolist() == (examples[first] + examples[second])[:8]
  with pytest.raises(ValueError, match='must be positive, got 0 and None'):
    client_data.evaluation_batches(opened['test'], None, prepare, 0)


def test_evaluation_memory_is_bounded(opened):
  """An interrupted pass keeps nothing half-complete."""
  prepare = lambda e: (e['n'], e['n'])
  data = client_data.evaluation_batches(opened['test'], _numbers, prepare, 10)
  assert len(list(data.take(1))) == 1
  assert sum(len(b['y']) for b in data) == 48


def test_many_cohorts_in_flat_memory(opened):
  """300 cohorts; the cache is too small for one client, so it is read anew."""
  clients = _prepared(opened, cache_bytes=200)
  test = client_data.evaluation_batches(
      opened['test'], _numbers, lambda e: (e['n'], e['n']), 10, cache_bytes=0
  )

  def rounds(first, last):
    for seed in range(first, last):
      cohort = [clients.dataset_for_client(c, seed) for c in SIZES]
      assert sum(1 for _ in cohort[1]) == 2
      if seed % 25 == 0:
        assert sum(1 for _ in test) == 5
    gc.collect()
    return psutil.Process().memory_info().rss

  warm = rounds(0, 75)
  grown = rounds(75, 300) - warm
  # 675 client data sets: a graph left behind by each would be above 30 MB;
  # what allocators keep has been seen to be 6 MB.
  assert grown < 15e6, grown


def test_a_warm_cohort_of_handwriting_is_not_read_again(monkeypatch):
  data_dir = real_data.directory('emnist')
  opened = sources.open_clients('emnist', data_dir)
  clients = client_data.PreparedClients(
      opened['train'],
      lambda e, rng: (e['pixels'][..., None], e['label']),
      batch_size=20,
      shuffle_buffer=418,
  )
  cohort = clients.client_ids[:10]
  for client in cohort:
    clients.dataset_for_client(client, 0)
  monkeypatch.delattr(client_data, '_collect')
  for seed in range(1, 10):
    for client in cohort:
      clients.dataset_for_client(client, seed)
