"""Client data sets that are a function of (client, seed), cheap to make again.

The canonical loader reads a client's examples once; they are decoded to NumPy
and kept in a cache bounded by bytes. Every round then only orders, augments and
batches them, with a generator of its own: the same (client, seed) gives the
same bytes in any process, and no TensorFlow graph is made per call, so memory
stays flat however many rounds are run.
"""

import abc
import bisect
import collections
from collections.abc import Callable, Mapping, Sequence
import contextlib
import copy
import threading
from typing import Any

import cachetools
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

Arrays = Mapping[str, np.ndarray]
Decode = Callable[[Arrays], Arrays]
Relabel = Callable[[str, Arrays], Arrays]
Prepare = Callable[[Arrays, np.random.Generator], tuple[Any, Any]]
PrepareEval = Callable[[Arrays], tuple[Any, Any]]

# Examples read by one step of the underlying data set.
_CHUNK = 2048


def _shuffled(
    num_examples: int, buffer: int, count: int, rng: np.random.Generator
) -> np.ndarray:
  """The first `count` indices that a shuffle buffer lets out."""
  if buffer <= 1:
    return np.arange(count)
  if buffer >= num_examples:
    return rng.permutation(num_examples)[:count]
  held = list(range(buffer))
  swaps = min(count, num_examples - buffer)
  out = []
  for i, slot in enumerate(rng.integers(buffer, size=swaps).tolist()):
    out.append(held[slot])
    held[slot] = buffer + i
  # The input has ended: what is held comes out in random order.
  rest = rng.permutation(np.asarray(held))[: count - swaps]
  return np.concatenate([np.asarray(out, np.int64), rest])


def example_order(
    num_examples: int,
    rng: np.random.Generator,
    *,
    shuffle_buffer: int,
    local_epochs: int = 1,
    max_examples: int | None = None,
) -> np.ndarray:
  """Returns the order in which a client goes through its examples.

  The distribution is that of tf.data's
  `shuffle(shuffle_buffer).repeat(local_epochs).take(max_examples)`: a buffer
  holds the next `shuffle_buffer` examples, each step lets a uniformly drawn one
  out and the next one in; every epoch is shuffled anew.

  Args:
    num_examples: Examples of the client.
    rng: Source of the draws.
    shuffle_buffer: Size of the buffer; 0 or 1 keeps the stored order.
    local_epochs: Passes over the examples.
    max_examples: Examples in all passes together at most; None for no limit.

  Returns:
    Indices, int64 [number of examples of all passes].
  """
  left = num_examples * local_epochs
  if max_examples is not None:
    left = min(left, max_examples)
  epochs = [np.zeros(0, np.int64)]
  while left > 0:
    epoch = _shuffled(
        num_examples, shuffle_buffer, min(left, num_examples), rng
    )
    epochs.append(epoch)
    left -= len(epoch)
  return np.concatenate(epochs)


def _num_bytes(arrays: Arrays) -> int:
  """Memory held by decoded examples; strings and ragged rows count in full."""
  total = 0
  for array in arrays.values():
    total += array.nbytes
    if array.dtype == object:
      total += sum(getattr(v, 'nbytes', None) or len(v) for v in array)
  return total


def _collect(chunks, spec) -> Arrays:
  """One array per feature from the batches of a data set."""
  chunks = list(chunks)
  if not chunks:
    return {
        k: np.zeros((0,) + tuple(s.shape), s.dtype.as_numpy_dtype)
        for k, s in spec.items()
    }
  return {
      k: np.concatenate([chunk[k].numpy() for chunk in chunks]) for k in spec
  }


def _spec_of(structure):
  """Tensor specs of arrays, with a leading dimension of any size."""
  return tf.nest.map_structure(
      lambda a: tf.TensorSpec([None] + list(a.shape[1:]), a.dtype), structure
  )


class SeededClients(tff.simulation.datasets.ClientData):
  """Clients whose batches are made in NumPy from (client, seed).

  Subclasses give `arrays_for_client`, `client_ids` and
  `element_type_structure`.
  """

  def __init__(self, batch_size: int):
    """Keeps the number of rows per batch."""
    self._batch_size = batch_size
    self._max_rows: int | None = None

  def limited(self, max_batches: int) -> 'SeededClients':
    """Returns these clients with the first batches of each round alone.

    Args:
      max_batches: How many will be used at most. Rows beyond are not made;
        those that are come in the same order, but may be augmented by other
        draws.

    Returns:
      A view that shares what is kept in memory.
    """
    view = copy.copy(self)
    view._max_rows = max_batches * self._batch_size
    return view

  @abc.abstractmethod
  def arrays_for_client(self, client_id: str, seed: int) -> Any:
    """Returns (x, y) of a client for one round, unbatched."""

  def dataset_for_client(self, client_id: str, seed: int) -> tf.data.Dataset:
    """Returns the batches of a client for one round.

    Args:
      client_id: One of `client_ids`.
      seed: Non-negative; decides which examples, their order, augmentation.

    Returns:
      A `tf.data.Dataset` of OrderedDict(x=..., y=...).

    Raises:
      ValueError: If there is no such client.
    """
    elements = self.element(self.arrays_for_client(client_id, seed))
    if self._max_rows:
      elements = tf.nest.map_structure(lambda a: a[: self._max_rows], elements)
    return tf.data.Dataset.from_tensor_slices(elements).batch(self._batch_size)

  def element(self, arrays: Any) -> Any:
    """Returns what `arrays_for_client` gives in the structure of a batch."""
    x, y = arrays
    return collections.OrderedDict(x=x, y=y)

  def create_tf_dataset_for_client(self, client_id: str) -> tf.data.Dataset:
    """Returns `dataset_for_client(client_id, seed=0)`."""
    return self.dataset_for_client(client_id, 0)

  @property
  def serializable_dataset_fn(self) -> Callable[[str], tf.data.Dataset]:
    raise NotImplementedError(
        f'{type(self).__name__} are made in NumPy and cannot be traced; use'
        ' dataset_for_client(client_id, seed)'
    )


class PreparedClients(SeededClients):
  """Batched client data sets, reproducible from (client, seed).

      decoded = decode(raw examples of the client)          # once, cached
      order   = shuffle(buffer), repeat(epochs), take(max)  # from the seed
      x, y    = prepare(decoded[order], rng)                # from the seed
      batches of (x, y), the last one may be smaller

  Example:
    opened = sources.open_clients('emnist', data_dir)
    clients = PreparedClients(
        opened['train'],
        lambda e, rng: (e['pixels'][..., None], e['label']),
        batch_size=20, shuffle_buffer=418, sizes=opened.sizes('train'))
    dataset = clients.dataset_for_client(clients.client_ids[0], seed=7)
  """

  def __init__(
      self,
      raw: tff.simulation.datasets.ClientData,
      prepare: Prepare,
      *,
      batch_size: int,
      decode: Decode | None = None,
      local_epochs: int = 1,
      max_examples: int | None = None,
      shuffle_buffer: int = 1000,
      take_before_shuffle: bool = False,
      cache_bytes: int = 1 << 30,
      sizes: np.ndarray | None = None,
      element_spec: Any | None = None,
      relabel: Relabel | None = None,
  ):
    """Wraps the client data of a canonical loader.

    Args:
      raw: One example per element, an OrderedDict of tensors.
      prepare: (examples, rng) -> (x, y). The examples are the decoded arrays in
        final order, all epochs in a row; x and y are arrays, or structures of
        them, whose first axis is rows: one or more of each example, in order.
      batch_size: Rows per batch.
      decode: Raw arrays by feature name, first axis examples (strings as object
        arrays of bytes) -> what is worth keeping, same first axis. None keeps
        them as they are.
      local_epochs: Passes over the client's examples per round.
      max_examples: Examples per round at most, all epochs together.
      shuffle_buffer: Examples in the shuffle buffer; 0 or 1 for stored order.
      take_before_shuffle: Whether `max_examples` cuts the stored examples, per
        epoch, before they are shuffled.
      cache_bytes: Memory for decoded clients.
      sizes: int [clients], examples of each client in the order of `client_ids`
        (`Opened.sizes`); None counts by reading.
      element_spec: Structure (x, y) of batched tensor specs; None takes it from
        the first client, with any number of rows.
      relabel: (client id, decoded arrays) -> decoded arrays, in which a client
        may differ from what is stored.

    Raises:
      ValueError: If a number is out of range.
    """
    for name, value in (
        ('batch_size', batch_size),
        ('local_epochs', local_epochs),
        ('max_examples', 1 if max_examples is None else max_examples),
    ):
      if value < 1:
        raise ValueError(f'{name} must be at least 1, got {value}')
    super().__init__(batch_size)
    self._raw = raw
    self._prepare = prepare
    self._decode = decode or (lambda arrays: arrays)
    self._relabel = relabel or (lambda client_id, arrays: arrays)
    self._cut = max_examples if take_before_shuffle else None
    self._order: dict[str, Any] = dict(
        shuffle_buffer=shuffle_buffer,
        local_epochs=local_epochs,
        max_examples=None if take_before_shuffle else max_examples,
    )
    self._cache = cachetools.LRUCache(cache_bytes, getsizeof=_num_bytes)
    self._cache_lock = threading.Lock()
    self._sizes = sizes
    self._element_spec = element_spec
    # Later examples can not come out of the buffer before `max_examples` have.
    if max_examples is None:
      limit = -1
    else:
      limit = max_examples + (0 if take_before_shuffle else shuffle_buffer)

    # Traced once: a data set made anew per call would leave its graph behind.
    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def read(client_id):
      return raw.serializable_dataset_fn(client_id).take(limit).batch(_CHUNK)

    self._read = read

  @property
  def client_ids(self) -> Sequence[str]:
    """The list of the loader itself, not a copy."""
    return self._raw.client_ids

  @property
  def sizes(self) -> np.ndarray | None:
    """Examples of each client, in the order of `client_ids`; None if unread."""
    return self._sizes

  def examples(self, client_id: str) -> Arrays:
    """Returns the decoded examples of a client in stored order."""
    with self._cache_lock:
      held = self._cache.get(client_id)
    if held is None:
      raw = _collect(self._read(client_id), self._raw.element_type_structure)
      if not len(next(iter(raw.values()))):
        self._position(client_id)
      held = {k: np.asarray(v) for k, v in self._decode(raw).items()}
      held = self._relabel(client_id, held)
      # One that is larger than the whole cache is made anew each time.
      with self._cache_lock, contextlib.suppress(ValueError):
        self._cache[client_id] = held
    return held

  def arrays_for_client(self, client_id: str, seed: int) -> tuple[Any, Any]:
    """Returns (x, y) of a client for one round, unbatched."""
    examples = self.examples(client_id)
    rng = np.random.default_rng(seed)
    num_examples = len(next(iter(examples.values())))
    order = example_order(num_examples, rng, **self._order)[: self._max_rows]
    return self._prepare({k: v[order] for k, v in examples.items()}, rng)

  def num_examples(self, client_id: str) -> int:
    """Returns how many examples a client has, before any limit."""
    if self._sizes is not None:
      return int(self._sizes[self._position(client_id)])
    self._position(client_id)
    dataset = self._raw.create_tf_dataset_for_client(client_id)
    return sum(1 for _ in dataset)

  def _position(self, client_id: str) -> int:
    """Index in `client_ids`, which SQLite loaders sort."""
    ids = self.client_ids
    i = bisect.bisect_left(ids, client_id)
    if i < len(ids) and ids[i] == client_id:
      return i
    if client_id in ids:
      return ids.index(client_id)
    raise ValueError(
        f'no client {client_id!r}; there are {len(ids)}, the first is'
        f' {ids[0]!r}'
    )

  @property
  def element_type_structure(self) -> Any:
    """Tensor specs of a batch."""
    if self._element_spec is None:
      self._element_spec = _spec_of(
          self.arrays_for_client(self.client_ids[0], 0)
      )
    x, y = self._element_spec
    return collections.OrderedDict(x=x, y=y)


def evaluation_batches(
    raw: tff.simulation.datasets.ClientData,
    decode: Decode | None,
    prepare_eval: PrepareEval,
    batch_size: int,
    limit: int | None = None,
    *,
    order_seed: int | None = None,
    cache_bytes: int = 1 << 28,
    element_spec: Any | None = None,
) -> tf.data.Dataset:
  """Returns the examples of all clients, client after client, as batches.

  Streams: a few thousand examples are held at a time. Prepared rows are kept
  for the next pass as long as all of them fit in `cache_bytes`. Iterate the
  returned data set again for the next evaluation instead of making a new one.

  Args:
    raw: One example per element, from a canonical loader.
    decode: As for `PreparedClients`.
    prepare_eval: Decoded examples -> (x, y), first axis rows.
    batch_size: Rows per batch. Batches do not run across the parts in which the
      examples are read (a multiple of `batch_size` examples), so where examples
      and rows differ in number a few batches are smaller.
    limit: Examples at most, the head of the first clients; None for all.
    order_seed: Puts the clients in a random order first; None for the stored
      one.
    cache_bytes: Memory for prepared rows; 0 never keeps any.
    element_spec: Structure (x, y) of batched tensor specs; None takes it from
      the first example, with any number of rows.

  Returns:
    A `tf.data.Dataset` of OrderedDict(x=..., y=...), iterable many times.

  Raises:
    ValueError: If `batch_size` or `limit` is not positive.
  """
  if batch_size < 1 or (limit is not None and limit < 1):
    raise ValueError(
        f'batch_size and limit must be positive, got {batch_size} and {limit}'
    )
  decode = decode or (lambda arrays: arrays)
  chunk = batch_size * max(1, _CHUNK // batch_size)
  client_ids = raw.client_ids
  if order_seed is not None:
    order = np.random.default_rng(order_seed).permutation(len(client_ids))
    client_ids = [client_ids[k] for k in order]

  # Traced once, see `PreparedClients`. Ids are an argument so that the graph
  # does not hold them.
  @tf.function(input_signature=[
      tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int64)
  ])
  def read(client_ids, count):
    ids = tf.data.Dataset.from_tensor_slices(client_ids)
    return ids.flat_map(raw.serializable_dataset_fn).take(count).batch(chunk)

  def prepared(count):
    # Every client has an example: the head needs no more clients than examples.
    ids = client_ids if count is None else client_ids[:count]
    for batch in read(tf.constant(ids), -1 if count is None else count):
      examples = decode({k: v.numpy() for k, v in batch.items()})
      yield tf.nest.map_structure(np.asarray, prepare_eval(examples))

  kept: list[tuple[Any, Any]] = []
  complete = False

  def batches():
    nonlocal complete
    keep: list[tuple[Any, Any]] = []
    num_bytes = 0
    for x, y in kept if complete else prepared(limit):
      if num_bytes <= cache_bytes and not complete:
        keep.append((x, y))
        num_bytes += sum(a.nbytes for a in tf.nest.flatten((x, y)))
        if num_bytes > cache_bytes:
          keep.clear()
      for start in range(0, len(tf.nest.flatten(y)[0]), batch_size):
        part = slice(start, start + batch_size)
        cut = lambda a: a[part]  # pylint: disable=cell-var-from-loop
        yield collections.OrderedDict(
            x=tf.nest.map_structure(cut, x), y=tf.nest.map_structure(cut, y)
        )
    if keep and not complete:
      kept.extend(keep)
      complete = True

  if element_spec is None:
    element_spec = _spec_of(next(iter(prepared(1))))
  x_spec, y_spec = element_spec
  return tf.data.Dataset.from_generator(
      batches, output_signature=collections.OrderedDict(x=x_spec, y=y_spec)
  )
