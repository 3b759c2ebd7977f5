"""What a client is handed in a round: who it is, and its examples."""

import collections
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

_CONTEXT_ELEMENT = tff.to_type(
    collections.OrderedDict(client_id=np.str_, seed=np.int64)
)


def client_name(client_id: Any) -> str:
  """The name of a client whose id is text or a whole number.

  Args:
    client_id: The id; NumPy's scalars count as what they hold.

  Returns:
    The text, or the number in decimal digits.

  Raises:
    ValueError: If it is something else.
  """
  if isinstance(client_id, np.generic):
    client_id = client_id.item()
  if isinstance(client_id, bytes):
    return client_id.decode()
  if isinstance(client_id, bool) or not isinstance(client_id, (str, int)):
    raise ValueError(
        f'client id {client_id!r:.60} is of type {type(client_id).__name__};'
        ' expected text or a whole number'
    )
  return str(client_id)


def client_input(
    client_id: Any, dataset: tf.data.Dataset, seed: int = 0
) -> collections.OrderedDict[str, tf.data.Dataset]:
  """One client's argument of `LearningProcess.next`.

  The id travels as a one-element sequence beside the examples, since TFF takes
  only sequences from clients. Clients with memory find their state by it.

  Args:
    client_id: The client's name or number.
    dataset: The client's batches for this round, all local epochs included.
    seed: Seed of the client's randomness (dropout) in this round.

  Returns:
    An ordered dictionary of two datasets, `context` and `examples`.
  """
  context = tf.data.Dataset.from_tensors(
      collections.OrderedDict(
          client_id=tf.constant(client_name(client_id), tf.string),
          seed=tf.constant(seed, tf.int64),
      )
  )
  return collections.OrderedDict(context=context, examples=dataset)


def client_input_type(input_spec: Any) -> tff.StructType:
  """The TFF type of `client_input` for batches of `input_spec`."""
  return tff.to_type(
      collections.OrderedDict(
          context=tff.SequenceType(_CONTEXT_ELEMENT),
          examples=tff.SequenceType(tff.types.tensorflow_to_type(input_spec)),
      )
  )
