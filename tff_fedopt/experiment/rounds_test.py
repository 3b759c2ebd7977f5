"""Tests of the federated loop."""

import collections
import threading

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.experiment import rounds
from tff_fedopt.experiment import sampling
from tff_fedopt.testing import toy


class _QuietModel(toy.LinearModel):
  """Without the noise."""

  def forward_pass(self, batch_input, training=True):
    return super().forward_pass(batch_input, training=False)


@pytest.fixture(scope='module', name='process')
def _process():
  runtime.use()
  return algorithms.build('fedavg', _QuietModel, client_learning_rate=0.5)


@pytest.fixture(scope='module', name='noisy')
def _noisy():
  runtime.use()
  return algorithms.build('fedavg', toy.LinearModel, client_learning_rate=0.1)


def _plain(examples):
  """Client data of given x and y, one batch a client, not shuffled."""
  return tff.simulation.datasets.TestClientData({
      name: collections.OrderedDict(
          x=np.array(x, np.float32), y=np.array(y, np.float32)
      )
      for name, (x, y) in examples.items()
  }).preprocess(lambda ds: ds.batch(10))


def test_two_rounds_worked_by_hand(process):
  """a: x=(1,0), y=2 once; b: x=(0,1), y=4 three times; η_l = 0.5, η = 1.

  a's step from w: w₁ + 0.5 (2 − w₁); b's: w₂ + 0.5 (4 − w₂). Weights 1/4, 3/4.
  Round 1 from 0: (1/4 · 1, 3/4 · 2) = (0.25, 1.5).
  Round 2, a alone: (0.25 + 0.5 · 1.75, 1.5) = (1.125, 1.5).
  Losses before the steps: (4/2 + 3 · 16/2) / 4 = 6.5, then 1.75²/2.
  """
  data = _plain({
      'a': ([[1, 0]], [[2]]),
      'b': ([[0, 1]] * 3, [[4]] * 3),
  })
  first, second = rounds.run(process, data, [['a', 'b'], ['a']])
  assert (first.round, second.round) == (1, 2)
  np.testing.assert_allclose(first.weights[0], [[0.25], [1.5]])
  np.testing.assert_allclose(second.weights[0], [[1.125], [1.5]])
  losses = [
      r.metrics['client_work']['train']['loss'] for r in (first, second)
  ]
  np.testing.assert_allclose(losses, [6.5, 1.75**2 / 2])
  assert not first.diverged and not second.diverged
  np.testing.assert_array_equal(
      rounds.initial_weights(process)[0], [[0], [0]]
  )
  # Going on from a state is the same as not having stopped.
  (again,) = rounds.run(
      process, data, [['a']], state=first.state, start_round=1
  )
  assert again.round == 2
  np.testing.assert_array_equal(again.weights[0], second.weights[0])


def test_stock_process_and_plain_sequences():
  runtime.use()
  stock = tff.learning.algorithms.build_weighted_fed_avg(
      _QuietModel, tff.learning.optimizers.build_sgdm(0.5)
  )
  data = _plain({'a': ([[1, 0]], [[2]])})
  (result,) = rounds.run(stock, data, [['a']])
  np.testing.assert_allclose(result.weights[0], [[1], [0]])
  assert not result.diverged


def test_data_and_dropout_seeds_follow_seed_round_and_client(
    noisy, monkeypatch
):
  seen = []
  make = rounds.client_input_lib.client_input

  def spy(client_id, dataset, seed):
    seen.append((client_id, seed))
    return make(client_id, dataset, seed)

  monkeypatch.setattr(rounds.client_input_lib, 'client_input', spy)
  cohorts = [['c0', 'c1'], ['c1', 'c2']]
  one = [r.weights[0] for r in rounds.run(noisy, toy.Clients(), cohorts)]
  assert seen == [
      (client, sampling.derive_seed(0, 'dropout', t, client))
      for t, cohort in enumerate(cohorts, 1)
      for client in cohort
  ]
  # An iterator instead of a list, and another number of concurrent clients.
  two = [r.weights[0] for r in rounds.run(noisy, toy.Clients(), iter(cohorts))]
  np.testing.assert_array_equal(one, two)
  other = next(rounds.run(noisy, toy.Clients(), cohorts, seed=1)).weights[0]
  assert not np.array_equal(one[0], other)


def test_iterator_is_asked_late_and_sequence_early(process):
  data = _plain({'a': ([[1, 0]], [[2]])})
  asked = []

  def cohorts():
    for t in range(3):
      asked.append(t)
      yield ['a']

  results = rounds.run(process, data, cohorts())
  next(results)
  assert asked == [0]
  results.close()

  class Ahead(list):

    def __iter__(self):
      for t, cohort in enumerate(super().__iter__()):
        asked.append(t)
        yield cohort

  asked.clear()
  results = rounds.run(process, data, Ahead([['a']] * 3))
  next(results)
  assert asked == [0, 1]
  results.close()
  assert not [t for t in threading.enumerate() if t.name.startswith('cohort_')
              and not t.join(5) and t.is_alive()]


@pytest.mark.parametrize(
    'cohort, message',
    [
        ([], 'round 5: the cohort is empty'),
        (['a', 'zoe'], "round 5: unknown client 'zoe'; the data has 1 clients"),
        (['a', 'a'], "round 5: client 'a' is in the cohort twice"),
    ],
)
def test_impossible_cohort(process, cohort, message):
  data = _plain({'a': ([[1, 0]], [[2]])})
  with pytest.raises(ValueError, match=message):
    next(rounds.run(process, data, [cohort], start_round=4))


def test_batches_that_do_not_fit_are_described_in_one_line(process):
  data = _plain({'a': ([[1, 0, 3]], [[2]])})
  with pytest.raises(ValueError) as error:
    next(rounds.run(process, data, [['a']]))
  assert str(error.value) == (
      "the batches of client 'a' do not fit the process: expected"
      ' <x=float32[?,2],y=float32[?,1]>, found <x=float32[?,3],y=float32[?,1]>'
  )


def test_divergence_is_flagged_and_yielded(process):
  nan = _plain({
      'bad': ([[np.nan, 0]], [[2]]),
      'good': ([[1, 0]], [[2]]),
      'none': (np.zeros([0, 2]), np.zeros([0, 1])),
  })
  cohorts = [['good'], ['bad', 'good'], ['none'], ['bad']]
  with pytest.warns(UserWarning, match="no batch of client 'none'"):
    flags = [r.diverged for r in rounds.run(process, nan, cohorts)]
  # One client of two is left out; all of them are the end. No example is none.
  assert flags == [False, False, False, True]


def test_dead_worker_names_the_round(process, worker, monkeypatch):
  data = _plain({'a': ([[1, 0]], [[2]])})

  def cohorts():
    yield ['a']
    toy.kill_worker_in_next_call(monkeypatch)
    yield ['a']

  with pytest.raises(runtime.WorkerDied, match='^round 2: '):
    list(rounds.run(process, data, cohorts()))
