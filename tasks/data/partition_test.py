"""Properties of the published partitions."""

import numpy as np
import pytest

from tasks.data import partition

LABELS = np.repeat(np.arange(10), 200)
FINE = np.repeat(np.arange(100), 40)


def _kinds(dealt, labels):
  """Different labels per client, on average."""
  return np.mean([len(np.unique(labels[indices])) for indices in dealt])


def _pachinko(seed=0, **options):
  options = dict(dict(num_clients=80, size=50), **options)
  return partition.pachinko(FINE, FINE // 5, seed=seed, **options)


@pytest.mark.parametrize(
    'deal',
    [
        lambda seed: partition.hsu(LABELS, num_clients=40, seed=seed),
        lambda seed: partition.iid(LABELS, num_clients=40, seed=seed),
        _pachinko,
    ],
)
def test_every_example_once(deal):
  dealt = deal(3)
  assert sorted(dealt.reshape(-1)) == list(range(dealt.size))
  assert dealt.dtype == np.int64
  same, other = deal(3), deal(4)
  assert partition.partition_hash(dealt) == partition.partition_hash(same)
  assert partition.partition_hash(dealt) != partition.partition_hash(other)


@pytest.mark.parametrize('alpha', [0.1, 1.0, 3.0])
def test_dirichlet_has_its_moments(alpha):
  rng = np.random.default_rng(0)
  draw = partition._dirichlet  # pylint: disable=protected-access
  weights = np.array([draw(alpha, 4, rng) for _ in range(20_000)])
  np.testing.assert_allclose(weights.mean(0), 1 / 4, atol=0.01)
  # E w² = α (α + 1) / (k α (k α + 1)) of each of the k.
  assert np.square(weights).sum(1).mean() == pytest.approx(
      (alpha + 1) / (4 * alpha + 1), rel=0.01
  )


def test_hash_sees_order_and_shape():
  dealt = np.arange(6).reshape(2, 3)
  hashes = {
      partition.partition_hash(d)
      for d in (dealt, dealt[::-1], dealt.reshape(3, 2), dealt.astype('i4'))
  }
  assert len(hashes) == 3  # the width of the integers does not matter


def test_published_sizes():
  labels = np.repeat(np.arange(10), 5000)
  assert partition.hsu(labels).shape == (500, 100)
  fine = np.repeat(np.arange(100), 500)
  dealt = partition.pachinko(fine, fine // 5)
  assert dealt.shape == (500, 100)
  # TFF documents its partition by these parameters; its mean is not published.
  # A Dirichlet(0.1) over 20 labels shows 6.5 +- 0.2 of them in 100 draws.
  assert 5.8 < _kinds(dealt, fine // 5) < 7.2


def test_hsu_limits():
  kinds = lambda alpha: _kinds(
      partition.hsu(LABELS, num_clients=40, alpha=alpha), LABELS
  )
  # Vanishing alpha: one label, until the first finds it used up.
  dealt = partition.hsu(LABELS, num_clients=40, alpha=1e-300)
  assert _kinds(dealt[:8], LABELS) == 1
  assert kinds(0.1) < kinds(1.0) < kinds(1e9)
  counts = [
      np.bincount(LABELS[d], minlength=10)
      for d in partition.hsu(LABELS, num_clients=4, alpha=1e9)
  ]
  # 500 draws from ten equal labels: 50 each, standard deviation 6.7.
  assert np.abs(np.array(counts[:3]) - 50).max() < 30


def test_hsu_first_client_follows_its_draw():
  """Shares of the first client's labels have Dirichlet's second moment."""
  alpha, squares = 0.5, []
  for seed in range(60):
    first = partition.hsu(LABELS, num_clients=20, alpha=alpha, seed=seed)[0]
    squares.append((np.bincount(LABELS[first], minlength=10) / 100) ** 2)
  # E[sum q^2] = (alpha + 1) / (10 alpha + 1), and sampling 100 adds
  # (1 - E[sum q^2]) / 100.
  wanted = 1.5 / 6
  wanted += (1 - wanted) / 100
  assert abs(np.mean(np.sum(squares, axis=1)) - wanted) < 0.05


def test_hsu_exhaustion():
  """Rows that lose all their mass take what is left, and no NaN appears."""
  dealt = partition.hsu(LABELS, num_clients=100, alpha=1e-12)
  assert sorted(dealt.reshape(-1)) == list(range(2000))


def test_pachinko_limits():
  coarse = FINE // 5
  one = _pachinko(alpha=1e-300, beta=1e-300)
  assert _kinds(one[:5], coarse) == 1
  # The fine label has 40 examples; the other 10 are of its siblings.
  assert np.bincount(FINE[one[0]]).max() == 40
  # Concentrated on a coarse label, even within it.
  within = _pachinko(alpha=1e-300, beta=1e9)
  assert _kinds(within[:5], coarse) == 1 and _kinds(within[:5], FINE) == 5
  all_of_them = _pachinko(alpha=1e9, beta=1e9)
  assert _kinds(all_of_them[:40], coarse) > 17
  assert _kinds(all_of_them[:40], FINE) > 35


def test_flsim_recycles():
  dealt = partition.flsim(LABELS, num_clients=40, alpha=0.1, seed=2)
  assert dealt.shape == (40, 50)
  times = np.bincount(dealt.reshape(-1), minlength=2000)
  assert times.max() > 1 and times.min() == 0
  for label in range(10):
    # Lists are gone through in order: numbers of uses differ by at most one.
    assert np.ptp(times[LABELS == label]) <= 1
  same = partition.flsim(LABELS, num_clients=40, alpha=0.1, seed=2)
  np.testing.assert_array_equal(dealt, same)
  few = partition.flsim(LABELS, num_clients=40, alpha=1e-300)
  assert _kinds(few, LABELS) == 1
  many = partition.flsim(LABELS, num_clients=4, alpha=1e9)
  assert _kinds(many, LABELS) == 10
  # Each client has its own shares of the labels.
  assert len({LABELS[indices[0]] for indices in few}) > 5


def test_flsim_fills_clients_side_by_side():
  """Who takes the last examples of a label, and who the first again."""
  labels, overlaps = np.repeat([0, 1], 100), []
  for seed in range(20):
    dealt = partition.flsim(labels, num_clients=4, alpha=1e-300, seed=seed)
    zeros = [set(d) for d in dealt if not labels[d].any()]
    if len(zeros) == 3:  # They take 150 of 100 examples.
      overlaps += [len(a & b) for a in zeros for b in zeros if a is not b]
  # One client after the other would give 0 and 50.
  assert overlaps and 0 < min(overlaps) and max(overlaps) < 50


def test_flsim_shuffles_the_lists_of_labels():
  dealt = partition.flsim(LABELS, num_clients=2, alpha=1e-300)
  # A thousand examples from a list of two hundred.
  assert not np.array_equal(np.sort(dealt[0][:200]), dealt[0][:200])


@pytest.mark.parametrize(
    'call, what',
    [
        (lambda: _pachinko(num_clients=81), 'need 4050, there are 4000'),
        (lambda: _pachinko(alpha=0), 'alpha must be positive, got 0'),
        (lambda: _pachinko(beta=-1.0), 'beta must be positive, got -1.0'),
        (lambda: partition.hsu(LABELS, num_clients=0), 'num_clients must be'),
        (lambda: partition.hsu(LABELS, num_clients=4000), 'size must be'),
        (lambda: partition.flsim(LABELS, alpha=float('nan')), 'alpha must be'),
    ],
)
def test_refuses(call, what):
  with pytest.raises(ValueError, match=what):
    call()
