"""Tests of seeds and cohorts."""

import collections
import tracemalloc

import numpy as np
import pytest

from tff_fedopt.experiment import sampling

_EXPECTED = 0xb0b2669377b612ba >> 1


def test_seed_is_the_documented_function():
  # printf '7|dropout|3|ann' | sha256sum  ->  first 16 hex digits, >> 1.
  assert sampling.derive_seed(7, 'dropout', 3, 'ann') == _EXPECTED
  assert sampling.derive_seed(np.int64(7), 'dropout', np.int64(3), 'ann') == (
      _EXPECTED
  )


def test_seeds_differ_in_every_argument_and_fit_int64():
  seeds = {
      sampling.derive_seed(seed, purpose, round_num, client)
      for seed in range(4)
      for purpose in sampling.PURPOSES
      for round_num in range(5)
      for client in ('', 'a', 'b', '1')
  }
  assert len(seeds) == 4 * len(sampling.PURPOSES) * 5 * 4
  assert 0 <= min(seeds) and max(seeds) < 2**63


def test_unknown_purpose_is_named():
  with pytest.raises(ValueError, match="'shufling'.*shuffling"):
    sampling.derive_seed(0, 'shufling', 1)


def test_cohort_repeats_and_has_no_duplicate():
  first = sampling.cohort(50, 10, 3, 4)
  np.testing.assert_array_equal(first, sampling.cohort(50, 10, 3, 4))
  assert first.dtype == np.int64
  assert len(set(first)) == 10 and min(first) >= 0 and max(first) < 50
  assert list(first) != list(sampling.cohort(50, 10, 3, 5))
  assert list(first) != list(sampling.cohort(50, 10, 4, 4))
  assert sorted(sampling.cohort(8, 8, 0, 1)) == list(range(8))


def test_every_client_and_position_is_equally_likely():
  # 3000 draws of 2 out of 6: the 30 ordered pairs are each expected 100
  # times; 5 standard deviations of Binomial(3000, 1/30) are 49.
  pairs = collections.Counter(
      tuple(sampling.cohort(6, 2, 1, r)) for r in range(3000)
  )
  assert len(pairs) == 30
  assert max(abs(count - 100) for count in pairs.values()) < 49


def test_memory_does_not_grow_with_the_population():
  tracemalloc.start()
  indices = sampling.cohort(10**9, 10, 0, 1)
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert len(set(indices)) == 10
  assert peak < 200_000


@pytest.mark.parametrize('size', [0, -1, 11])
def test_impossible_cohort_is_refused(size):
  with pytest.raises(ValueError, match='10 clients'):
    sampling.cohort(10, size, 0, 1)


def test_bernoulli_cohorts():
  """The number of clients is Binomial but never 0; each is as likely."""
  draws = [sampling.cohort(20, 2, 0, r, 'bernoulli') for r in range(4000)]
  sizes = np.array([len(d) for d in draws])
  assert all(len(set(d)) == len(d) for d in draws[:50])
  expected = np.random.default_rng(0).binomial(20, 0.1, 10**6)
  for k in (1, 2, 3, 5):
    share = np.mean(np.maximum(expected, 1) == k)
    # Five standard deviations of a share in 4000.
    limit = 5 * np.sqrt(share * (1 - share) / 4000)
    assert abs(np.mean(sizes == k) - share) < limit
  assert sizes.min() == 1
  counts = np.bincount(np.concatenate(draws), minlength=20)
  assert np.ptp(counts) < 0.35 * counts.mean()
  # Where all are to take part, all do.
  everybody = [sampling.cohort(5, 5, 0, r, 'bernoulli') for r in range(20)]
  assert {len(d) for d in everybody} == {5}
  same = sampling.Cohorts('abcdefghij' * 2, 2, 0, 1, 3, 'bernoulli')
  assert [len(c) for c in same] == [len(d) for d in draws[1:4]]


_UNEQUAL = np.array([1.0, 0.05, 0.3, 0.65, 0.9, 0.0, 0.1])


@pytest.mark.parametrize('kind', sampling.COHORTS)
def test_unequal_cohorts_have_the_given_probabilities(kind):
  """4000 cohorts; a share's limits are five standard deviations."""
  draws = [sampling.unequal_cohort(_UNEQUAL, 3, r, kind) for r in range(4000)]
  assert all(len(set(d)) == len(d) for d in draws)
  present = np.zeros([4000, 7])
  for row, drawn in zip(present, draws):
    row[drawn] = 1
  limit = 5 * np.sqrt(_UNEQUAL * (1 - _UNEQUAL) / 4000)
  assert (np.abs(present.mean(axis=0) - _UNEQUAL) <= limit).all()
  sizes = collections.Counter(len(d) for d in draws)
  if kind == 'fixed':
    assert sizes == {3: 4000}
    # Any two meet, but for the client that never comes.
    together = present.T @ present
    assert (np.delete(np.delete(together, 5, 0), 5, 1) > 0).all()
    # Positions are exchangeable.
    assert len({int(d[0]) for d in draws}) == 6
  else:
    # Each by itself: the variance of the number is Σ p (1 − p).
    expected = np.sum(_UNEQUAL * (1 - _UNEQUAL))
    assert abs(np.var(present.sum(axis=1)) / expected - 1) < 0.12
    both = (present[:, 2] * present[:, 3]).mean()
    assert abs(both - 0.3 * 0.65) < 5 * np.sqrt(0.195 * 0.805 / 4000)
  again = sampling.unequal_cohort(_UNEQUAL, 3, 7, kind)
  np.testing.assert_array_equal(again, draws[7])
  other = [sampling.unequal_cohort(_UNEQUAL, 4, r, kind) for r in range(20)]
  assert any(list(a) != list(b) for a, b in zip(other, draws))


def test_unequal_bernoulli_cohorts_are_never_empty():
  likely = np.array([0.02, 0.01, 0.0])
  first = [
      int(sampling.unequal_cohort(likely, 0, r, 'bernoulli')[0])
      for r in range(900)
  ]
  share = np.mean(np.array(first) == 0)
  assert abs(share - 2 / 3) < 5 * np.sqrt(2 / 9 / 900)
  assert 2 not in first


def test_fixed_cohorts_need_a_whole_size():
  with pytest.raises(ValueError, match='with sum 1.5 make no cohort'):
    sampling.unequal_cohort([0.7, 0.8], 0, 1)


def test_cohorts_of_rounds_with_unequal_clients():
  likely = np.array([0.5, 0.25, 0.25, 1.0])
  cohorts = sampling.Cohorts('abcd', 2, 5, 3, 8, 'fixed', likely)
  assert len(cohorts) == 6
  for i, cohort in enumerate(cohorts):
    drawn = sampling.unequal_cohort(likely, 5, 3 + i)
    assert cohort == ['abcd'[j] for j in drawn] and 'd' in cohort
