"""Pooled clients: every example once, a function of the seed."""

import types

import numpy as np
import pytest

from tasks.data import pooled


class _Clients:
  """Client i has i examples, numbered on."""

  client_ids = ['a', 'b', 'c', 'd']
  element_type_structure = types.SimpleNamespace()

  def num_examples(self, client_id):
    return self.client_ids.index(client_id) + 1

  def arrays_for_client(self, client_id, seed):
    del seed
    first = [0, 1, 3, 6][self.client_ids.index(client_id)]
    x = np.arange(first, first + self.num_examples(client_id))
    return x, 10 * x


def _rows(clients, seed):
  batches = list(clients.dataset_for_client(pooled.CLIENT_ID, seed))
  for batch in batches:
    np.testing.assert_array_equal(10 * batch['x'], batch['y'])
  return [batch['x'].numpy().tolist() for batch in batches]


def test_a_round_has_every_example_once_in_batches():
  clients = pooled.PooledClients(_Clients(), batch_size=4)
  batches = _rows(clients, 5)
  assert [len(b) for b in batches] == [4, 4, 2]
  assert sorted(sum(batches, [])) == list(range(10))
  assert clients.num_examples(pooled.CLIENT_ID) == 10


def test_examples_of_clients_are_mixed():
  clients = pooled.PooledClients(_Clients(), batch_size=10)
  orders = [_rows(clients, seed)[0] for seed in range(20)]
  # Without a shuffle over clients, those of client d would stay together.
  places = [sorted(order.index(k) for k in (6, 7, 8, 9)) for order in orders]
  assert any(p[-1] - p[0] > 3 for p in places)


def test_a_function_of_the_seed():
  clients = pooled.PooledClients(_Clients(), batch_size=3)
  assert _rows(clients, 1) == _rows(clients, 1) != _rows(clients, 2)


def test_a_limit_takes_whole_clients_at_random_and_cuts():
  clients = pooled.PooledClients(
      _Clients(), batch_size=9, examples_per_round=4
  )
  seen = set()
  for seed in range(60):
    [batch] = _rows(clients, seed)
    assert len(batch) == len(set(batch)) == 4
    seen |= set(batch)
  assert seen == set(range(10))


def test_bad_values_are_refused():
  with pytest.raises(ValueError, match='batch_size must be at least 1'):
    pooled.PooledClients(_Clients(), batch_size=0)
  with pytest.raises(ValueError, match="no client 'a'; the only one is"):
    pooled.PooledClients(_Clients(), batch_size=1).dataset_for_client('a', 0)
