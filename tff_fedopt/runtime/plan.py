"""A TFF computation as passes over the clients, with server steps between.

In call-dominant form a computation is a list of steps: TensorFlow computations
and TFF's intrinsics, each applied to what earlier steps gave. A server step
that needs an aggregate has to wait until all clients have been gone through;
every other step of a client belongs to the first pass that has what it needs.
So each client is gone through once for each time that the server speaks to it,
and does nothing twice.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.core.environments.tensorflow_backend import (
  tensorflow_tree_transformations,
)

from tff_fedopt.runtime import fixed_order
from tff_fedopt.runtime import leaf as leaf_lib

# Values by name. What differs between clients is a `PerClient` for the server,
# and for a client its own.
Environment = Mapping[str, Any]
# The name under which an environment has the run's `Calls`.
CALLS = ''
Expression = Callable[[Environment], Any]

# What happens at the server, its argument being the result.
_PASSED_ON = frozenset([
    'federated_broadcast',
    'federated_value_at_clients',
    'federated_value_at_server',
    'federated_zip_at_server',
])
_AT_SERVER = frozenset(['federated_apply', 'federated_map_all_equal'])


class PerClient(list):
  """One value per client, in the clients' order."""


@dataclasses.dataclass(frozen=True)
class Step:
  """Gives one named value."""

  name: str
  value: Expression


@dataclasses.dataclass(frozen=True)
class Aggregate:
  """Sums what clients give, in their order.

  Attributes:
    name: Of the result.
    value: What a client gives.
    zero: What the sum begins with.
    accumulate: Makes the function of (sum, value).
    report: Makes the function from the last sum to the result.
  """

  name: str
  value: Expression
  zero: Expression
  accumulate: Expression
  report: Expression


@dataclasses.dataclass
class Pass:
  """Server steps, then what every client does, then the sums.

  Attributes:
    server: Steps at the server before the clients.
    clients: Steps of each client.
    aggregates: What is summed over the clients.
    kept: Names of clients' values that a later pass or the result needs.
  """

  server: list[Step] = dataclasses.field(default_factory=list)
  clients: list[Step] = dataclasses.field(default_factory=list)
  aggregates: list[Aggregate] = dataclasses.field(default_factory=list)
  kept: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True)
class Plan:
  """A computation, ready to run.

  Attributes:
    parameter: The name of the computation's argument.
    passes: What is done, in order.
    result: What it returns.
  """

  parameter: str
  passes: list[Pass]
  result: Expression


def make(
    computation: tff.framework.ConcreteComputation,
    load: Callable[[tff.framework.CompiledComputation], leaf_lib.Leaf],
) -> Plan:
  """Makes the plan of a computation.

  Args:
    computation: Any TFF computation without secure aggregation.
    load: Gives the leaf of a TensorFlow computation.

  Returns:
    The plan.

  Raises:
    leaf.Unsupported: If it holds what this engine cannot run.
  """
  block, _ = tensorflow_tree_transformations.replace_intrinsics_with_bodies(
      fixed_order.computation(computation).to_building_block()
  )
  block = tff.framework.to_call_dominant(block)
  steps, parameter = [], 'argument'
  while isinstance(block, (tff.framework.Block, tff.framework.Lambda)):
    if isinstance(block, tff.framework.Block):
      steps += block.locals
    else:
      parameter = block.parameter_name or parameter
    block = block.result
  if isinstance(block.type_signature, tff.FunctionType):
    taken = block.type_signature.parameter
    argument = None
    if taken is not None:
      argument = tff.framework.Reference(parameter, taken)
    block = tff.framework.Call(block, argument)
  return _Planner(parameter, load).plan(steps, block)


class _Planner:
  """Distributes steps over passes."""

  def __init__(self, parameter, load):
    self._parameter = parameter
    self._load = load
    self._passes = [Pass()]
    # The pass in which a value is there first, and the last one that needs it.
    self._ready = {parameter: 0}
    self._needed = {}

  def plan(self, steps, result) -> Plan:
    """Returns the plan of steps, pairs of name and building block."""
    for name, block in steps:
      self._add(name, block)
    self._need(result, len(self._passes))
    for index, one_pass in enumerate(self._passes):
      one_pass.kept = {
          step.name
          for step in one_pass.clients
          if self._needed.get(step.name, 0) > index
      }
    return Plan(self._parameter, self._passes, self._expression(result))

  def _need(self, block, index=None) -> int:
    """Notes that a pass, by default the first that can, needs a block."""
    names = _names(block)
    first = max((self._ready.get(name, 0) for name in names), default=0)
    index = max(first, index or 0)
    for name in names:
      self._needed[name] = max(index, self._needed.get(name, 0))
    while len(self._passes) <= first:
      self._passes.append(Pass())
    return index

  def _add(self, name, block):
    """Adds a step to its pass."""
    index = self._need(block)
    self._ready[name] = index
    current = self._passes[index]
    intrinsic = getattr(block, 'function', None)
    if not isinstance(intrinsic, tff.framework.Intrinsic):
      current.server.append(Step(name, self._expression(block)))
      return
    uri, argument = intrinsic.uri, block.argument
    if uri == 'federated_aggregate':
      value, zero, accumulate, _, report = map(self._expression, argument)
      current.aggregates.append(
          Aggregate(name, value, zero, accumulate, report)
      )
      self._ready[name] = index + 1
    elif uri in _PASSED_ON or (
        uri == 'federated_zip_at_clients' and block.type_signature.all_equal
    ):
      current.server.append(Step(name, self._expression(argument)))
    elif uri in _AT_SERVER:
      current.server.append(Step(name, self._applied(argument)))
    elif uri == 'federated_map':
      current.clients.append(Step(name, self._applied(argument)))
    elif uri == 'federated_zip_at_clients':
      current.clients.append(Step(name, self._expression(argument)))
    elif uri == 'federated_eval_at_server':
      current.server.append(Step(name, self._evaluated(argument)))
    elif uri == 'federated_eval_at_clients':
      current.clients.append(Step(name, self._evaluated(argument)))
    else:
      raise leaf_lib.Unsupported(f'the intrinsic {uri}')

  def _applied(self, argument) -> Expression:
    function, value = map(self._expression, argument)
    return lambda environment: function(environment)(value(environment))

  def _evaluated(self, argument) -> Expression:
    function = self._expression(argument)
    return lambda environment: function(environment)(None)

  def _expression(self, block) -> Expression:
    """Makes of a building block what gives its value in an environment."""
    if isinstance(block, tff.framework.Reference):
      return lambda environment: environment[block.name]
    if isinstance(block, tff.framework.Selection):
      source, index = self._expression(block.source), block.as_index()
      return lambda environment: source(environment)[index]
    if isinstance(block, tff.framework.Struct):
      elements = [
          (name, self._expression(element))
          for name, element in tff.structure.iter_elements(block)
      ]
      return lambda environment: tff.structure.Struct(
          [(name, element(environment)) for name, element in elements]
      )
    if isinstance(block, tff.framework.Block):
      return self._in_turn(block)
    if isinstance(block, tff.framework.Lambda):
      name, body = block.parameter_name, self._expression(block.result)
      return lambda environment: lambda argument: body(
          {**environment, name: argument}
      )
    if isinstance(block, tff.framework.CompiledComputation):
      loaded = self._load(block)
      return lambda environment: functools.partial(loaded, environment[CALLS])
    if isinstance(block, tff.framework.Literal):
      constant = tf.constant(block.value)
      return lambda environment: constant
    if isinstance(block, tff.framework.Call) and not isinstance(
        block.function, tff.framework.Intrinsic
    ):
      if block.argument is not None:
        return self._applied([block.function, block.argument])
      return self._evaluated(block.function)
    intrinsic = getattr(block, 'function', block)
    kind = getattr(intrinsic, 'uri', type(block).__name__)
    raise leaf_lib.Unsupported(f'the intrinsic {kind} here')

  def _in_turn(self, block) -> Expression:
    steps = [(name, self._expression(value)) for name, value in block.locals]
    result = self._expression(block.result)

    def evaluate(environment):
      environment = dict(environment)
      for name, value in steps:
        environment[name] = value(environment)
      return result(environment)

    return evaluate


def _names(block) -> set[str]:
  """The names that occur in a building block."""
  found = set()

  def visit(part):
    if isinstance(part, tff.framework.Reference):
      found.add(part.name)
    return part, False

  tff.framework.transform_postorder(block, visit)
  return found


def of_client(value: Any, index: int) -> Any:
  """What a client has of a value: its own where clients differ."""
  if isinstance(value, PerClient):
    return value[index]
  if isinstance(value, tff.structure.Struct):
    return tff.structure.Struct([
        (name, of_client(element, index))
        for name, element in tff.structure.iter_elements(value)
    ])
  return value
