"""Values of Python into tensors by client, and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.core.impl.types import type_conversions
from tensorflow_federated.python.core.impl.utils import tensorflow_utils

from tff_fedopt.runtime import plan as plan_lib


class Ingestion:
  """Takes one argument in.

  Attributes:
    num_clients: How many clients it is from; None if it is from none.
  """

  def __init__(self):
    self.num_clients: int | None = None
    self._fitting = None

  def value(self, value: Any, value_type: tff.Type) -> Any:
    """Converts a value.

    Args:
      value: Arrays, tensors, data sets, lists of elements of a sequence, in any
        containers; of clients, a list or tuple.
      value_type: Its type.

    Returns:
      Structures of tensors, with `plan.PerClient` where clients differ.

    Raises:
      TypeError: If the value is not of the type.
      ValueError: If two parts are from different numbers of clients.
    """
    if isinstance(value_type, tff.FederatedType):
      if value_type.placement is tff.SERVER or value_type.all_equal:
        return self.value(value, value_type.member)
      return self._of_clients(value, value_type)
    if isinstance(value_type, tff.StructType):
      elements = tff.structure.from_container(value)
      if len(elements) != len(value_type):
        raise TypeError(
            f'{len(elements)} elements for a structure of {len(value_type)}:'
            f' {value_type}'
        )
      return tff.structure.Struct([
          (name, self.value(element, element_type))
          for element, (name, element_type) in zip(
              elements, tff.structure.iter_elements(value_type)
          )
      ])
    if isinstance(value_type, tff.SequenceType):
      return self._sequence(value, value_type)
    return _tensor(value, value_type)

  def _of_clients(self, value, value_type):
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
      raise TypeError(
          f'expected a list with one value per client for {value_type}, got'
          f' {type(value).__name__}'
      )
    if self.num_clients not in (None, len(value)):
      raise ValueError(
          f'values of {self.num_clients} and of {len(value)} clients in one'
          ' argument'
      )
    self.num_clients = len(value)
    return plan_lib.PerClient(
        self.value(member, value_type.member) for member in value
    )

  def _sequence(self, value, value_type):
    if isinstance(value, list):
      value = tensorflow_utils.make_data_set_from_elements(
          None, value, value_type.element
      )
    if not isinstance(value, tf.data.Dataset):
      raise TypeError(
          f'expected a tf.data.Dataset or a list for {value_type}, got'
          f' {type(value).__name__}'
      )
    # Clients mostly have data of the same kind: the check is worth remembering.
    if self._fitting != (value.element_spec, value_type):
      found = tff.SequenceType(tff.types.tensorflow_to_type(value.element_spec))
      if not value_type.is_assignable_from(found):
        raise TypeError(f'a data set of {found} does not fit {value_type}')
      self._fitting = value.element_spec, value_type
    return tf.data.experimental.to_variant(value)


def _tensor(value, value_type):
  dtype = tf.string if value_type.dtype.type is np.str_ else value_type.dtype
  if isinstance(value, tf.Variable):
    value = value.read_value()
  if isinstance(value, tf.Tensor):
    if value.dtype != dtype:
      raise TypeError(f'a tensor of {value.dtype.name} for {value_type}')
  else:
    found = np.asarray(value)
    same = np.can_cast(found.dtype, value_type.dtype, 'same_kind')
    if value_type.dtype.type is not np.str_ and not same:
      raise TypeError(f'a value of {found.dtype} for {value_type}')
    value = tf.convert_to_tensor(value, dtype)
  if not value.shape.is_compatible_with(value_type.shape):
    raise TypeError(f'a value of shape {value.shape} for {value_type}')
  return value


def result(value: Any, value_type: tff.Type, num_clients: int) -> Any:
  """Converts a result into arrays and data sets in the type's containers."""
  return type_conversions.type_to_py_container(
      _fetched(value, value_type, num_clients), value_type
  )


def _fetched(value, value_type, num_clients):
  if isinstance(value_type, tff.FederatedType):
    if value_type.placement is tff.SERVER or value_type.all_equal:
      return _fetched(value, value_type.member, num_clients)
    return [
        _fetched(
            plan_lib.of_client(value, i), value_type.member, num_clients
        )
        for i in range(num_clients)
    ]
  if isinstance(value_type, tff.StructType):
    return tff.structure.Struct([
        (name, _fetched(element, element_type, num_clients))
        for element, (name, element_type) in zip(
            value, tff.structure.iter_elements(value_type)
        )
    ])
  if isinstance(value_type, tff.SequenceType):
    return tf.data.experimental.from_variant(
        value, type_conversions.type_to_tf_structure(value_type.element)
    )
  return value.numpy()
