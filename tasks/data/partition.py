"""Deals labelled examples to clients: the published partitions, by name.

Every rule returns an int64 array [clients, examples per client] of example
indices and is a function of its arguments and `seed` alone.
"""

import hashlib

import numpy as np


def _dirichlet(alpha: float, size: int, rng: np.random.Generator) -> np.ndarray:
  """A draw of Dirichlet(alpha, ..., alpha), for any positive alpha.

  Gamma(alpha) = Gamma(alpha + 1) U^(1/alpha) in logarithms; NumPy's own sampler
  does not return for alphas near zero.
  """
  # 1 - U is in (0, 1], so its logarithm is finite.
  uniform = np.log1p(-rng.random(size))
  logs = np.log(rng.standard_gamma(alpha + 1, size)) + uniform / alpha
  weights = np.exp(logs - logs.max())
  return weights / weights.sum()


def _choose(
    weights: np.ndarray, left: np.ndarray, rng: np.random.Generator
) -> int:
  """One index with something left, by the weights renormalised.

  A row that has lost all its mass would divide by zero; it falls back to what
  is left.
  """
  live = np.cumsum(np.where(left > 0, weights, 0.0))
  if not live[-1] > 0:
    live = np.cumsum(left.astype(float))
  return int(np.searchsorted(live, rng.random() * live[-1], side='right'))


def _check(num_examples: int, num_clients: int, size: int, **positive: float):
  """Refuses impossible sizes and parameters."""
  for name, value in dict(
      num_clients=num_clients, size=size, **positive
  ).items():
    if not value > 0:
      raise ValueError(f'{name} must be positive, got {value}')
  if num_clients * size > num_examples:
    raise ValueError(
        f'{num_clients} clients of {size} examples need {num_clients * size},'
        f' there are {num_examples}'
    )


class _Stock:
  """The examples of every label, in random order, dealt once each."""

  def __init__(self, labels: np.ndarray, rng: np.random.Generator):
    self.names, inverse = np.unique(labels, return_inverse=True)
    self._queues = [
        rng.permutation(np.flatnonzero(inverse == i))
        for i in range(len(self.names))
    ]
    self.left = np.array([len(queue) for queue in self._queues])

  def take(self, label: int) -> int:
    self.left[label] -= 1
    return self._queues[label][self.left[label]]


def pachinko(
    fine: np.ndarray,
    coarse: np.ndarray,
    *,
    num_clients: int = 500,
    size: int = 100,
    alpha: float = 0.1,
    beta: float = 10.0,
    seed: int = 0,
) -> np.ndarray:
  """Pachinko allocation over a hierarchy of labels.

      for every client:
        θ_root ~ Dir(alpha) over coarse labels, θ_c ~ Dir(beta) over fine ones
        size times: c ~ θ_root, y ~ θ_c, a new example of label y
      a label without examples drops out, for all later draws of all clients,
      and what is left is renormalised

  Source: Reddi et al. 2021, appendix on the federated CIFAR-100.

  Args:
    fine: int [examples], fine labels.
    coarse: int [examples], the coarse label of each.
    num_clients: Clients to make.
    size: Examples per client.
    alpha: Concentration over the coarse labels.
    beta: Concentration over the fine labels of a coarse one.
    seed: Seed of all draws.

  Returns:
    int64 [num_clients, size], no example twice.

  Raises:
    ValueError: If there are not enough examples or a parameter is not positive.
  """
  _check(len(fine), num_clients, size, alpha=alpha, beta=beta)
  rng = np.random.default_rng(seed)
  stock = _Stock(fine, rng)
  parent = {f: c for f, c in zip(np.asarray(fine), np.asarray(coarse))}
  roots, root_of = np.unique(
      [parent[f] for f in stock.names], return_inverse=True
  )
  leaves = [np.flatnonzero(root_of == r) for r in range(len(roots))]
  left = np.array([stock.left[of].sum() for of in leaves])
  dealt = np.empty((num_clients, size), np.int64)
  for client in range(num_clients):
    over_roots = _dirichlet(alpha, len(roots), rng)
    over_leaves = [_dirichlet(beta, len(of), rng) for of in leaves]
    for i in range(size):
      r = _choose(over_roots, left, rng)
      leaf = leaves[r][_choose(over_leaves[r], stock.left[leaves[r]], rng)]
      left[r] -= 1
      dealt[client, i] = stock.take(leaf)
  return dealt


def hsu(
    labels: np.ndarray,
    *,
    num_clients: int = 500,
    alpha: float = 0.1,
    seed: int = 0,
) -> np.ndarray:
  """Dirichlet split without replacement (the federated CIFAR-10 of FedOpt).

      for every client in turn: q ~ Dir(alpha) over the labels
        size times: y ~ q, a new example of label y
      a label that is used up leaves q of all later draws, renormalised; a q
      without mass falls back to what is left

  Clients get equal shares, num_examples // num_clients each. Late clients take
  what the others left and deviate from their q.
  Source: Hsu et al. 2019, as in the published CIFAR-10 loader of FedOpt.

  Args:
    labels: int [examples].
    num_clients: Clients to make.
    alpha: Concentration; small means few labels per client.
    seed: Seed of all draws.

  Returns:
    int64 [num_clients, size], no example twice.

  Raises:
    ValueError: If there are not enough examples or a parameter is not positive.
  """
  size = len(labels) // max(num_clients, 1)
  _check(len(labels), num_clients, size, alpha=alpha)
  rng = np.random.default_rng(seed)
  stock = _Stock(labels, rng)
  dealt = np.empty((num_clients, size), np.int64)
  for client in range(num_clients):
    weights = _dirichlet(alpha, len(stock.names), rng)
    for i in range(size):
      dealt[client, i] = stock.take(_choose(weights, stock.left, rng))
  return dealt


def flsim(
    labels: np.ndarray,
    *,
    num_clients: int = 100,
    alpha: float = 0.1,
    seed: int = 0,
) -> np.ndarray:
  """Dirichlet split with recycled label lists (FL-Simulator's "replacement").

      q_i ~ Dir(alpha) for every client
      until all are full: a client i with room, uniformly; y ~ q_i; the next
      example in the list of label y, which starts again when it ends

  Totals per label follow the q_i; some examples occur several times, others
  never. Clients get num_examples // num_clients each.
  Source: the data code of FedInit's authors.

  Args:
    labels: int [examples].
    num_clients: Clients to make.
    alpha: Concentration; small means few labels per client.
    seed: Seed of all draws.

  Returns:
    int64 [num_clients, size].

  Raises:
    ValueError: If there are not enough examples or a parameter is not positive.
  """
  size = len(labels) // max(num_clients, 1)
  _check(len(labels), num_clients, size, alpha=alpha)
  rng = np.random.default_rng(seed)
  names, inverse = np.unique(labels, return_inverse=True)
  queues = [
      rng.permutation(np.flatnonzero(inverse == i)) for i in range(len(names))
  ]
  weights = [_dirichlet(alpha, len(names), rng) for _ in range(num_clients)]
  room = list(range(num_clients))
  filled = np.zeros(num_clients, np.int64)
  used = np.zeros(len(names), np.int64)
  dealt = np.empty((num_clients, size), np.int64)
  draws = [
      rng.choice(len(names), size=size, p=weights[i]).tolist()
      for i in range(num_clients)
  ]
  while room:
    at = int(rng.integers(len(room)))
    client = room[at]
    label = draws[client][filled[client]]
    dealt[client, filled[client]] = queues[label][
        used[label] % len(queues[label])
    ]
    used[label] += 1
    filled[client] += 1
    if filled[client] == size:
      room[at] = room[-1]
      room.pop()
  return dealt


def iid(
    labels: np.ndarray, *, num_clients: int = 100, seed: int = 0
) -> np.ndarray:
  """Deals all examples at random, num_examples // num_clients to each client.

  Args:
    labels: int [examples]; only their number matters.
    num_clients: Clients to make.
    seed: Seed of the shuffle.

  Returns:
    int64 [num_clients, size], no example twice.

  Raises:
    ValueError: If there are not enough examples.
  """
  size = len(labels) // max(num_clients, 1)
  _check(len(labels), num_clients, size)
  order = np.random.default_rng(seed).permutation(len(labels))
  return order[: num_clients * size].reshape(num_clients, size)


def partition_hash(dealt: np.ndarray) -> str:
  """Returns the SHA-256 of a partition: its shape and its indices."""
  digest = hashlib.sha256(str(dealt.shape).encode())
  digest.update(np.ascontiguousarray(dealt, '<i8').tobytes())
  return digest.hexdigest()
