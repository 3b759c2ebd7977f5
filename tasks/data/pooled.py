"""All clients' examples as the data of one client: centralized training.

The local loop of a federated process over this one client is centralized
training through the very same code.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tasks.data import client_data

CLIENT_ID = 'pooled'


class PooledClients(client_data.SeededClients):
  """One client that draws from the pooled examples of many.

  A round reads clients in random order until it has `examples_per_round`, and
  shuffles those: what a shuffle buffer of that size lets out of the stream of
  all clients, in bounded memory however large the pool is.
  """

  def __init__(
      self,
      clients: client_data.PreparedClients,
      *,
      batch_size: int,
      examples_per_round: int = 10_000,
  ):
    """Wraps prepared clients.

    Args:
      clients: The clients; each gives its rows of one round.
      batch_size: Rows per batch.
      examples_per_round: Rows per round at most.

    Raises:
      ValueError: If a number is below 1.
    """
    for name, value in (
        ('batch_size', batch_size),
        ('examples_per_round', examples_per_round),
    ):
      if value < 1:
        raise ValueError(f'{name} must be at least 1, got {value}')
    super().__init__(batch_size)
    self._clients = clients
    self._examples_per_round = examples_per_round

  @property
  def client_ids(self) -> Sequence[str]:
    return [CLIENT_ID]

  def arrays_for_client(self, client_id: str, seed: int) -> tuple[Any, Any]:
    """Returns (x, y) of a round, unbatched; see `dataset_for_client`."""
    _check(client_id)
    rng = np.random.default_rng(seed)
    parts, count = [], 0
    for i in rng.permutation(len(self._clients.client_ids)):
      if count >= self._examples_per_round:
        break
      part = self._clients.arrays_for_client(
          self._clients.client_ids[i], int(rng.integers(2**63))
      )
      parts.append(part)
      count += len(tf.nest.flatten(part)[0])
    order = rng.permutation(count)[: self._examples_per_round]
    return tf.nest.map_structure(
        lambda *arrays: np.concatenate(arrays)[order], *parts
    )

  def num_examples(self, client_id: str) -> int:
    """Returns how many examples the pool has, before any limit."""
    _check(client_id)
    return sum(map(self._clients.num_examples, self._clients.client_ids))

  @property
  def element_type_structure(self) -> Any:
    """Tensor specs of a batch."""
    return self._clients.element_type_structure


def _check(client_id):
  if client_id != CLIENT_ID:
    raise ValueError(f'no client {client_id!r}; the only one is {CLIENT_ID!r}')
