"""A remote executor that sends large values without copying them repeatedly."""

import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import executor_pb2
from tensorflow_federated.python.common_libs import structure
from tensorflow_federated.python.core.impl.executors import remote_executor


def _set_value(message, value, type_spec) -> None:
  """Writes `value` into `message`, an `executor_pb2.Value`, in place.

  TFF's serialisation builds every level of a structure as a message of its own
  and copies it into the next, about three times per level.
  """
  if isinstance(type_spec, tff.FederatedType):
    members = [value] if type_spec.all_equal else value
    for member in members:
      _set_value(message.federated.value.add(), member, type_spec.member)
    # TFF's own serialisation of no members gives the type's message.
    nobody = tff.FederatedType(type_spec.member, type_spec.placement, False)
    empty, _ = tff.framework.serialize_value([], nobody)
    message.federated.type.CopyFrom(empty.federated.type)
    message.federated.type.all_equal = type_spec.all_equal
  elif isinstance(type_spec, tff.StructType) and len(type_spec):
    elements = structure.from_container(value)
    if len(elements) != len(type_spec):
      raise TypeError(
          f'cannot send {len(elements)} elements as a structure of'
          f' {len(type_spec)}: {type_spec}'
      )
    for (name, member_type), member in zip(
        structure.iter_elements(type_spec), elements
    ):
      element = message.struct.element.add()
      if name:
        element.name = name
      _set_value(element.value, member, member_type)
  else:
    message.CopyFrom(tff.framework.serialize_value(value, type_spec)[0])


class RemoteExecutor(remote_executor.RemoteExecutor):
  """TFF's executor, with values written straight into the request."""

  async def create_value(self, value, type_spec=None):
    self._check_has_executor_id()
    if not isinstance(type_spec, (tff.FederatedType, tff.StructType)):
      return await super().create_value(value, type_spec)
    request = executor_pb2.CreateValueRequest(executor=self._executor_id)
    _set_value(request.value, value, type_spec)
    response = self._stub.create_value(request)
    return remote_executor.RemoteValue(response.value_ref, type_spec, self)
