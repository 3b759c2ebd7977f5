"""Randomness as a function of (seed, purpose, round, client).

Nothing here keeps state, so a resumed run, a run with other concurrency and a
run in another process draw exactly the same numbers.
"""

from collections.abc import Sequence
import hashlib

import numpy as np

PURPOSES = (
    'partition',
    'initialisation',
    'sampling',
    'shuffling',
    'dropout',
    'steps',
)


# How many clients take part in a round: always as many, or each by chance.
COHORTS = ('fixed', 'bernoulli')


def derive_seed(
    seed: int, purpose: str, round_num: int = 0, client_id: str = ''
) -> int:
  """Returns the seed of one use of randomness.

  Rule: the first 63 bits of SHA-256('seed|purpose|round|client').

  Args:
    seed: The seed of the whole run.
    purpose: One of `PURPOSES`; different purposes never share numbers.
    round_num: The round, from 1; 0 for what happens before the first round.
    client_id: The client, or '' for what belongs to no client.

  Returns:
    An integer in [0, 2**63).

  Raises:
    ValueError: If the purpose is unknown.
  """
  if purpose not in PURPOSES:
    raise ValueError(
        f'unknown purpose of randomness {purpose!r}; one of'
        f' {", ".join(PURPOSES)}'
    )
  # The client id comes last: it is the only part that may contain a '|'.
  text = f'{int(seed)}|{purpose}|{int(round_num)}|{client_id}'
  digest = hashlib.sha256(text.encode('utf-8')).digest()
  return int.from_bytes(digest[:8], 'big') >> 1


def cohort(
    num_clients: int,
    size: int,
    seed: int,
    round_num: int,
    kind: str = 'fixed',
) -> np.ndarray:
  """Draws the clients of a round uniformly, without replacement.

  Rule: Floyd's algorithm, which needs O(cohort) memory and time however many
  clients are registered, then a shuffle so that positions are exchangeable.
  With `bernoulli` the number of clients is drawn first, which is the same as
  drawing for each client whether it takes part.

  Args:
    num_clients: How many clients are registered.
    size: How many take part, at most `num_clients`; with `bernoulli` on
      average.
    seed: The seed of the run.
    round_num: The round, from 1.
    kind: One of `COHORTS`: `fixed`, or `bernoulli`, where each client takes
      part with probability size / num_clients, and at least one does.

  Returns:
    An int64 array of different indices in [0, num_clients).

  Raises:
    ValueError: If size is not in [1, num_clients].
  """
  if not 1 <= size <= num_clients:
    raise ValueError(
        f'a cohort of {size} cannot be drawn from {num_clients} clients; the'
        f' size must be in [1, {num_clients}]'
    )
  rng = np.random.default_rng(derive_seed(seed, 'sampling', round_num))
  if kind == 'bernoulli':
    size = max(1, int(rng.binomial(num_clients, size / num_clients)))
  chosen = {}
  for last in range(num_clients - size, num_clients):
    index = int(rng.integers(last + 1))
    chosen[last if index in chosen else index] = None
  indices = np.fromiter(chosen, dtype=np.int64, count=size)
  rng.shuffle(indices)
  return indices


def unequal_cohort(
    probabilities: Sequence[float],
    seed: int,
    round_num: int,
    kind: str = 'fixed',
) -> np.ndarray:
  """Draws the clients of a round, client i with probability p_i.

  Rule: with `fixed`, clients lie in random order side by side on a line, client
  i over a length of p_i; those take part that lie at u, u + 1, u + 2, … with u
  uniform in [0, 1). With `bernoulli`, each takes part by itself; where nobody
  would, one client does, drawn in proportion to p.

  Args:
    probabilities: p, [clients], each in [0, 1]; with `fixed` their sum is
      whole, the size of the cohort.
    seed: The seed of the run.
    round_num: The round.
    kind: One of `COHORTS`.

  Returns:
    An int64 array of different indices.

  Raises:
    ValueError: If with `fixed` the sum is not whole.
  """
  p = np.asarray(probabilities, np.float64)
  rng = np.random.default_rng(derive_seed(seed, 'sampling', round_num))
  if kind == 'bernoulli':
    drawn = np.flatnonzero(rng.random(len(p)) < p)
    return drawn if len(drawn) else rng.choice(len(p), 1, p=p / p.sum())
  certain, open_ = np.flatnonzero(p >= 1), np.flatnonzero((0 < p) & (p < 1))
  size = round(p[open_].sum())
  if abs(p[open_].sum() - size) > 1e-6:
    raise ValueError(
        f'probabilities with sum {p.sum():.6g} make no cohort of a fixed size;'
        ' their sum must be whole'
    )
  order = rng.permutation(open_)
  ends = np.cumsum(p[order])
  points = rng.random() + np.arange(size)
  # Rounding must not put the last point behind the last client.
  chosen = np.minimum(np.searchsorted(ends, points, 'right'), len(order) - 1)
  indices = np.concatenate([certain, order[chosen]])
  rng.shuffle(indices)
  return indices


class Cohorts(Sequence):
  """The cohorts of a run's rounds, drawn when asked for."""

  def __init__(
      self,
      client_ids: Sequence[str],
      size: int,
      seed: int,
      first: int,
      last: int,
      kind: str = 'fixed',
      probabilities: np.ndarray | None = None,
  ):
    """Draws for the rounds `first` to `last`, both included.

    Args:
      client_ids: All registered clients.
      size: Clients per round.
      seed: The seed of the run.
      first: The first round, from 1.
      last: The last round.
      kind: One of `COHORTS`.
      probabilities: How likely each client is to take part, with sum `size`;
        None for all alike.
    """
    self._client_ids = client_ids
    self._size = size
    self._seed = seed
    self._kind = kind
    self._probabilities = probabilities
    self._rounds = range(first, last + 1)

  def __len__(self):
    return len(self._rounds)

  def __getitem__(self, index):
    round_num = self._rounds[index]
    if self._probabilities is None:
      chosen = cohort(
          len(self._client_ids),
          self._size,
          self._seed,
          round_num,
          self._kind,
      )
    else:
      chosen = unequal_cohort(
          self._probabilities, self._seed, round_num, self._kind
      )
    return [self._client_ids[i] for i in chosen]
