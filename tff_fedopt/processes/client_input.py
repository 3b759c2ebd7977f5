"""What a client is handed in a round: who it is, and its examples."""

import collections
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

_CONTEXT_ELEMENT = tff.to_type(
    collections.OrderedDict(client_id=np.str_, seed=np.int64)
)


def client_input(
    client_id: str, dataset: tf.data.Dataset, seed: int = 0
) -> collections.OrderedDict[str, tf.data.Dataset]:
  """One client's argument of `LearningProcess.next`.

  The id travels as a one-element sequence beside the examples, since TFF takes
  only sequences from clients. Clients with memory find their state by it.

  Args:
    client_id: The client's name.
    dataset: The client's batches for this round, all local epochs included.
    seed: Seed of the client's randomness (dropout) in this round.

  Returns:
    An ordered dictionary of two datasets, `context` and `examples`.
  """
  context = tf.data.Dataset.from_tensors(
      collections.OrderedDict(
          client_id=tf.constant(client_id, tf.string),
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
