"""Clients as users have them: any container, any ids, any data sets.

Ids may be text or whole numbers, NumPy's included: client 7 is '7' from here
on.
"""

from collections.abc import Mapping, Sequence
import typing
from typing import Any, Protocol

import tensorflow as tf

from tff_fedopt.experiment import sampling
from tff_fedopt.processes import client_input

_SHUFFLES = ('ShuffleDatasetV3', 'ShuffleAndRepeatDatasetV2')


@typing.runtime_checkable
class SeededClientData(Protocol):
  """Client data whose batches are a function of the client and a seed."""

  def dataset_for_client(self, client_id: str, seed: int) -> tf.data.Dataset:
    """The client's batches for one round, all local epochs included."""


class UserClients:
  """Batches of each client in each round, by the client's name.

  Attributes:
    client_ids: Names of all clients.
  """

  def __init__(self, given: Any, seed: int):
    """Takes the clients.

    Args:
      given: A `tff.simulation.datasets.ClientData`, a mapping from ids to data
        sets, or a sequence of data sets, whose ids are 0, 1, ….
      seed: The run's seed.

    Raises:
      ValueError: If it is something else, or two clients have one name.
    """
    if isinstance(given, Mapping):
      ids, self._dataset = list(given), given.__getitem__
    elif hasattr(given, 'client_ids'):
      ids = given.client_ids
      self._dataset = getattr(given, 'create_tf_dataset_for_client', None)
    elif isinstance(given, Sequence) and not isinstance(given, str):
      ids, self._dataset = range(len(given)), given.__getitem__
    else:
      raise ValueError(
          f'client_data is of type {type(given).__name__}; expected a'
          ' ClientData, a dictionary from client ids to data sets, or a list of'
          ' data sets'
      )
    self._ids = {client_input.client_name(i): i for i in ids}
    if len(self._ids) < len(ids):
      raise ValueError(
          'client_data: two clients have one name; ids are compared as text, so'
          " 7 and '7' are the same"
      )
    self.client_ids = list(self._ids)
    is_seeded = isinstance(given, SeededClientData)
    self._seeded = given.dataset_for_client if is_seeded else None
    self._seed = seed

  def __contains__(self, name: str) -> bool:
    return name in self._ids

  def dataset(self, name: str, round_num: int) -> tf.data.Dataset:
    """Returns a client's batches in a round.

    Args:
      name: The client.
      round_num: The round, from 1.

    Returns:
      A data set whose randomness is a function of (seed, round, client), unless
      the user seeded it.

    Raises:
      ValueError: If the client has something else.
    """
    seed = sampling.derive_seed(self._seed, 'shuffling', round_num, name)
    if self._seeded is not None:
      return self._seeded(self._ids[name], seed)
    dataset = self._dataset(self._ids[name])
    if not isinstance(dataset, tf.data.Dataset):
      raise ValueError(
          f'client {name!r} has something of type {type(dataset).__name__};'
          ' expected a tf.data.Dataset of batches, such as'
          ' tf.data.Dataset.from_tensor_slices(arrays).batch(20)'
      )
    return seeded(dataset, seed)


def seeded(dataset: tf.data.Dataset, seed: int) -> tf.data.Dataset:
  """Seeds what a data set draws at random and nobody seeded.

  Args:
    dataset: Any data set; what has a seed keeps it.
    seed: A whole number, 0 or above.

  Returns:
    A data set with the same elements; the same one if nothing had to be seeded.
  """
  graph = tf.raw_ops.DatasetToGraphV2(
      input_dataset=tf.data.experimental.to_variant(dataset)
  )
  graph_def = tf.compat.v1.GraphDef.FromString(graph.numpy())
  seeds = _Seeds(seed)
  constants = {n.name: n for n in graph_def.node if n.op == 'Const'}
  for node in graph_def.node:
    if node.op in _SHUFFLES:
      seeds.give([constants.get(name) for name in node.input[2:5]])
  for function in graph_def.library.function:
    for node in function.node_def:
      if 'seed2' in node.attr and not (
          node.attr['seed'].i or node.attr['seed2'].i
      ):
        node.attr['seed'].i, node.attr['seed2'].i = seeds.next(), seeds.next()
  if not seeds.given:
    return dataset
  variant = tf.raw_ops.DatasetFromGraph(
      graph_def=graph_def.SerializeToString(deterministic=True)
  )
  return tf.data.experimental.from_variant(variant, dataset.element_spec)


class _Seeds:
  """Numbers that follow from one, different for every place that takes one."""

  def __init__(self, seed):
    self._seed = seed
    self.given = 0

  def next(self) -> int:
    self.given += 1
    return sampling.derive_seed(self._seed, 'shuffling', self.given)

  def give(self, constants):
    """Seeds a shuffle: two numbers that are 0, the word for none; a state."""
    if len(constants) < 3 or None in constants:
      return
    *pair, state = constants
    if any(tf.make_ndarray(c.attr['value'].tensor).any() for c in pair):
      return
    for constant in pair:
      constant.attr['value'].tensor.CopyFrom(
          tf.make_tensor_proto(self.next(), tf.int64, [])
      )
    # In this process it would be the state of the data set without seeds.
    state.op = 'DummySeedGenerator'
    state.ClearField('attr')
