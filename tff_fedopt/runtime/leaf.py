"""A TensorFlow computation, the leaf of any TFF computation, as a function."""

from collections.abc import Iterable, Iterator, Set

import tensorflow as tf
from tensorflow.python.ops import handle_data_util
import tensorflow_federated as tff

from tff_fedopt.runtime import calls as calls_lib

# Resources that every run of the graph makes anew, or that never change.
_SHARED_SAFELY = frozenset(['HashTable', 'HashTableV2'])
# A variable of this name is a new one each time its handle is made:
# `ResourceHandle::ANONYMOUS_NAME` of TensorFlow.
_ANONYMOUS = 'cd2c89b7-88b7-44c8-ad83-06c2a9158347'


class Unsupported(RuntimeError):
  """A computation that this engine cannot run; names what it cannot."""

  def __init__(self, what: str):
    super().__init__(
        f"the local engine cannot run {what}; use engine='worker'"
    )


class Leaf:
  """A TensorFlow computation, loaded once and called often.

  Its variables are made for each call and destroyed after it, whatever happens.
  As in a session, the graph's initialisation runs before all that depends on
  its variables and tables.
  """

  def __init__(self, proto, result_type: tff.Type):
    """Loads a graph.

    Args:
      proto: A `Computation` message of TFF that holds a graph.
      result_type: What it returns: structures of tensors and sequences.

    Raises:
      Unsupported: If the graph keeps something from call to call.
    """
    if proto.WhichOneof('computation') != 'tensorflow':
      raise Unsupported(f'a computation in {proto.WhichOneof("computation")}')
    leaf = proto.tensorflow
    graph = tf.compat.v1.GraphDef()
    leaf.graph_def.Unpack(graph)
    self._result_type = result_type
    feeds = list(_tensors(leaf.parameter))
    fetches = list(_tensors(leaf.result))
    keep = [_node(name) for name in fetches]
    if leaf.initialize_op:
      _initialize_first(graph, _node(leaf.initialize_op))
      keep.append(_node(leaf.initialize_op))
    nodes = {node.name: node for node in graph.node}
    _keep_only(graph, _with_sources(graph, keep + list(map(_node, feeds))))
    variables = _variables_to_feeds(graph)
    specs = [
        tf.TensorSpec(
            nodes[_node(name)].attr['shape'].shape,
            nodes[_node(name)].attr['dtype'].type,
        )
        for name in feeds
    ] + [tf.TensorSpec([], tf.resource) for _ in variables]
    feeds += [f'{name}:0' for name in variables]
    self._make_variables = variables and _maker(variables.values())

    def imported(*arguments):
      for handle, spec in zip(arguments[len(feeds) - len(variables) :],
                              variables.values()):
        # As VarHandleOp would; the shapes of what is read follow from it.
        handle_data_util.set_handle_data(
            handle, handle_data_util.create_handle_data(spec.shape, spec.dtype)
        )
      given = dict(zip(feeds, arguments))
      elements = tf.graph_util.import_graph_def(
          graph, input_map=given, return_elements=fetches, name=''
      )
      return [given.get(*pair) for pair in zip(fetches, elements)]

    self._function = tf.compat.v1.wrap_function(imported, specs)

  def __call__(self, calls: calls_lib.Calls, argument):
    """Calls the computation.

    Args:
      calls: The run's calls, of which this is to be one.
      argument: A tensor (of data sets, variants), a `tff.structure.Struct` of
        such, or None for a computation without parameter.

    Returns:
      The result, of the same kind as the argument.
    """
    handles = ()
    if self._make_variables:
      handles = calls.call(self._make_variables, ())
    try:
      results = calls.call(self._function, [*_flat(argument), *handles])
    finally:
      for handle in handles:
        tf.raw_ops.DestroyResourceOp(resource=handle)
    return _packed(self._result_type, iter(results))


def _node(name: str) -> str:
  """The node of a tensor, a control input or an operation."""
  return name.removeprefix('^').partition(':')[0]


def _tensors(binding) -> Iterator[str]:
  """Names of the tensors that a parameter or result consists of, in order."""
  kind = binding.WhichOneof('binding')
  if kind == 'tensor':
    yield binding.tensor.tensor_name
  elif kind == 'sequence':
    yield binding.sequence.variant_tensor_name
  elif kind == 'struct':
    for element in binding.struct.element:
      yield from _tensors(element)


def _with_sources(graph, names: Iterable[str]) -> set[str]:
  """Nodes, and all that they need."""
  nodes = {node.name: node for node in graph.node}
  found, waiting = set(), list(names)
  while waiting:
    name = waiting.pop()
    if name not in found:
      found.add(name)
      waiting += map(_node, nodes[name].input)
  return found


def _keep_only(graph, names: Set[str]) -> None:
  kept = [node for node in graph.node if node.name in names]
  del graph.node[:]
  graph.node.extend(kept)


def _is_variable(node) -> bool:
  return node.op == 'VarHandleOp'


def _initialize_first(graph, initialize_op: str) -> None:
  """Makes all that uses a variable or a table wait for the initialisation."""
  before = _with_sources(graph, [initialize_op])
  resources = {
      node.name
      for node in graph.node
      if _is_variable(node) or node.op in _SHARED_SAFELY
  }
  for node in graph.node:
    if node.name not in before | resources:
      if any(_node(name) in resources for name in node.input):
        node.input.append(f'^{initialize_op}')


def _variables_to_feeds(graph) -> dict[str, tf.TensorSpec]:
  """Turns the handles of variables into placeholders; returns their specs."""
  for function in graph.library.function:
    for node in function.node_def:
      _refuse_what_stays(node, _is_variable(node))
  variables = {}
  for node in graph.node:
    _refuse_what_stays(node, False)
    if _is_variable(node):
      variables[node.name] = tf.TensorSpec(
          node.attr['shape'].shape, node.attr['dtype'].type
      )
      node.op = 'Placeholder'
      node.ClearField('attr')
      node.attr['dtype'].type = tf.resource.as_datatype_enum
      node.attr['shape'].shape.CopyFrom(tf.TensorShape([]).as_proto())
  return variables


def _refuse_what_stays(node, is_hidden_variable: bool) -> None:
  if is_hidden_variable:
    raise Unsupported(f'a variable that a function makes ({node.name})')
  if 'shared_name' in node.attr and not (
      _is_variable(node) or node.op in _SHARED_SAFELY
  ):
    raise Unsupported(f'the operation {node.op}, which keeps state')


def _maker(specs: Iterable[tf.TensorSpec]):
  """A function that makes handles of new, empty variables."""

  def make():
    return [
        tf.raw_ops.VarHandleOp(
            shape=spec.shape, dtype=spec.dtype, shared_name=_ANONYMOUS
        )
        for spec in specs
    ]

  return tf.compat.v1.wrap_function(make, [])


def _flat(value) -> Iterator[tf.Tensor]:
  if isinstance(value, tff.structure.Struct):
    for element in value:
      yield from _flat(element)
  elif value is not None:
    yield value


def _packed(value_type: tff.Type, tensors: Iterator[tf.Tensor]):
  if not isinstance(value_type, tff.StructType):
    return next(tensors)
  return tff.structure.Struct([
      (name, _packed(element, tensors))
      for name, element in tff.structure.iter_elements(value_type)
  ])
