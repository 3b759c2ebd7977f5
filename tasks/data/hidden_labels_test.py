"""Which labels clients know."""

import collections

import numpy as np
import pytest

import tasks
from tasks.data import hidden_labels


def test_thirds_of_the_clients_know_all_a_tenth_and_none():
  shares = [hidden_labels.share(f'client_{i}') for i in range(300)]
  counts = collections.Counter(shares)
  assert set(counts) == {1.0, 0.1, 0.0}
  assert min(counts.values()) > 75


def test_what_is_hidden_is_the_clients_and_always_the_same():
  labels = np.arange(25, dtype=np.int64)
  examples = dict(label=labels, image=np.zeros(25))
  known = {}
  for i in range(30):
    name = f'client_{i}'
    hidden = hidden_labels.hide(name, examples)
    again = hidden_labels.hide(name, examples)
    np.testing.assert_array_equal(hidden['label'], again['label'])
    assert hidden['image'] is examples['image']
    is_known = hidden['label'] != hidden_labels.UNKNOWN
    np.testing.assert_array_equal(hidden['label'][is_known], labels[is_known])
    # A tenth of 25, rounded up.
    expected = {1.0: 25, 0.1: 3, 0.0: 0}[hidden_labels.share(name)]
    assert is_known.sum() == expected
    known.setdefault(expected, set()).add(tuple(np.flatnonzero(is_known)))
  assert len(known[3]) > 5  # Not the same ones at all clients.
  np.testing.assert_array_equal(labels, np.arange(25))


@pytest.mark.parametrize('name', ['emnist_character', 'cifar10'])
def test_tasks_hide_labels_of_training_only(name):
  plain = tasks.load(name, batch_size=400)
  mixed = tasks.load(name, batch_size=400, labels='mixed', unlabelled='block')
  assert not hasattr(plain.model_fn(), 'begin_round')
  assert hasattr(mixed.model_fn(), 'begin_round')
  found = set()
  for client in mixed.train.client_ids[:9]:
    batch = next(iter(mixed.train.dataset_for_client(client, 1)))
    same = next(iter(plain.train.dataset_for_client(client, 1)))
    np.testing.assert_array_equal(batch['x'], same['x'])
    known = batch['y'].numpy() >= 0
    np.testing.assert_array_equal(
        batch['y'].numpy()[known], same['y'].numpy()[known]
    )
    found.add(hidden_labels.share(client))
    assert np.isclose(known.mean(), hidden_labels.share(client), atol=0.03)
  assert len(found) > 1
  assert next(iter(mixed.validation()))['y'].numpy().min() >= 0
