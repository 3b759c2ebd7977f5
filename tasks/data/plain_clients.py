"""Any TFF client data as what runs expect: batches from (client, seed)."""

from collections.abc import Sequence
import functools
import hashlib
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tasks.data import client_data

# Clients whose examples count for the digest.
_DIGESTED = 100


class PlainClients(client_data.SeededClients):
  """The clients of a `tff.simulation.datasets.ClientData`, batched.

  Each round shuffles a client's examples with a seed, repeats and batches them.
  An example may be any structure of dense tensors. Examples are kept in memory
  once they were read.

  Example:
    clients = PlainClients(
        tff.simulation.datasets.TestClientData(arrays), batch_size=20)
    dataset = clients.dataset_for_client(clients.client_ids[0], seed=7)
  """

  def __init__(
      self,
      raw: tff.simulation.datasets.ClientData,
      *,
      batch_size: int,
      local_epochs: int = 1,
      shuffle_buffer: int = 1000,
  ):
    """Wraps client data.

    Args:
      raw: One example per element, not batched.
      batch_size: Rows per batch.
      local_epochs: Passes over the client's examples per round.
      shuffle_buffer: Examples in the shuffle buffer; 0 or 1 for stored order.
    """
    super().__init__(batch_size)
    self._raw = raw
    self._order = dict(shuffle_buffer=shuffle_buffer, local_epochs=local_epochs)
    self.examples = functools.cache(self._read)

  @property
  def client_ids(self) -> Sequence[str]:
    return self._raw.client_ids

  @functools.cached_property
  def sizes(self) -> np.ndarray:
    """int64 [clients], examples of each, in the order of `client_ids`."""
    return np.array([self.num_examples(c) for c in self.client_ids])

  def num_examples(self, client_id: str) -> int:
    """Returns how many examples a client has."""
    return len(tf.nest.flatten(self.examples(client_id))[0])

  def _read(self, client_id):
    """All examples of a client, stacked: arrays [examples, ...]."""
    if client_id not in self.client_ids:
      raise ValueError(
          f'no client {client_id!r}; there are {len(self.client_ids)}, the'
          f' first is {self.client_ids[0]!r}'
      )
    found = list(
        self._raw.create_tf_dataset_for_client(client_id).as_numpy_iterator()
    )
    if found:
      return tf.nest.map_structure(lambda *rows: np.stack(rows), *found)
    return tf.nest.map_structure(
        lambda spec: np.zeros([0, *spec.shape], spec.dtype.as_numpy_dtype),
        self._raw.element_type_structure,
    )

  def arrays_for_client(self, client_id: str, seed: int) -> Any:
    """Returns a client's rows of one round, unbatched, in the raw structure."""
    order = client_data.example_order(
        self.num_examples(client_id),
        np.random.default_rng(seed),
        **self._order,
    )[: self._max_rows]
    return tf.nest.map_structure(
        lambda array: array[order], self.examples(client_id)
    )

  def element(self, arrays: Any) -> Any:
    """Returns the arrays: batches have the structure of the raw examples."""
    return arrays

  @property
  def element_type_structure(self) -> Any:
    """Tensor specs of a batch."""
    return tf.nest.map_structure(
        lambda spec: tf.TensorSpec([None, *spec.shape], spec.dtype),
        self._raw.element_type_structure,
    )

  def evaluation_batches(self, batch_size: int) -> tf.data.Dataset:
    """Returns the examples of all clients, in client order, as batches."""
    rows = tf.nest.map_structure(
        lambda *arrays: np.concatenate(arrays),
        *map(self.examples, self.client_ids),
    )
    return tf.data.Dataset.from_tensor_slices(rows).batch(batch_size)

  def digest(self) -> str:
    """A SHA-256 of all client ids and of the examples of 100 of the clients."""
    found = hashlib.sha256()
    ids = list(self.client_ids)
    found.update(repr(ids).encode('utf-8'))
    for client_id in ids[:: max(1, len(ids) // _DIGESTED)]:
      for array in tf.nest.flatten(self.examples(client_id)):
        found.update(f'{array.shape} {array.dtype}'.encode('utf-8'))
        if array.dtype == object:
          found.update(repr(array.tolist()).encode('utf-8'))
        else:
          found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
