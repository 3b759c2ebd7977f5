"""Sums whose order does not depend on what happens to be computed first.

TensorFlow's AddN adds into the buffer of the first input that nobody else uses
*at that moment*, and starts the sum with that input; AccumulateNV2 adds in the
order of arrival. With three terms or more, one computation gives other last
bits on a busy machine. Its graph optimizer (Grappler) makes AddN of every
a + b + c that it finds.
"""

import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.tensorflow_libs import serialization_utils

# The optimizer's own mark of a sum that it has to leave as it is.
_LEFT_ALONE = '_grappler_ArithmeticOptimizer_AddOpsRewriteStage'
_YES = tf.compat.v1.AttrValue(b=True)
_SUMS = ('AddN', 'AccumulateNV2')


def computation(comp: tff.Computation) -> tff.Computation:
  """Returns a computation with every sum from left to right.

  Args:
    comp: Any computation, not yet compiled for a runtime.

  Returns:
    The same computation; in its TensorFlow graphs, sums of many terms are sums
    of two, which stay so.
  """

  def in_order(block):
    if (
        not isinstance(block, tff.framework.CompiledComputation)
        or block.proto.WhichOneof('computation') != 'tensorflow'
    ):
      return block, False
    proto = type(block.proto)()
    proto.CopyFrom(block.proto)
    graph = serialization_utils.unpack_graph_def(proto.tensorflow.graph_def)
    graph_def(graph)
    proto.tensorflow.graph_def.CopyFrom(
        serialization_utils.pack_graph_def(graph)
    )
    return (
        tff.framework.CompiledComputation(
            proto, type_signature=block.type_signature
        ),
        True,
    )

  block, _ = tff.framework.transform_postorder(
      comp.to_building_block(), in_order
  )
  return tff.framework.ConcreteComputation.from_building_block(block)


def graph_def(graph: tf.compat.v1.GraphDef) -> None:
  """Does in place what `computation` does, for one graph and its functions.

  Functions are called otherwise afterwards: TensorFlow knows those traced in
  this process by their names.
  """
  _rewrite(graph.node, '{}:0')
  for function in graph.library.function:
    renamed = _rewrite(function.node_def, '{}:z:0')
    # In functions, outputs are known by the operation's own name for them.
    for node in function.node_def:
      node.input[:] = [renamed.get(name, name) for name in node.input]
    for name, result in function.ret.items():
      function.ret[name] = renamed.get(result, result)
  _rename_functions(graph)


def _rename_functions(graph) -> None:
  names = {
      f.signature.name: f'{f.signature.name}_in_order'
      for f in graph.library.function
  }

  def rename(attributes):
    for value in attributes.values():
      functions = [value.func] if value.HasField('func') else value.list.func
      for function in functions:
        function.name = names.get(function.name, function.name)
        rename(function.attr)

  for nodes in (graph.node, *(f.node_def for f in graph.library.function)):
    for node in nodes:
      node.op = names.get(node.op, node.op)
      rename(node.attr)
  for function in graph.library.function:
    function.signature.name = names[function.signature.name]
  for gradient in graph.library.gradient:
    gradient.function_name = names[gradient.function_name]
    gradient.gradient_func = names[gradient.gradient_func]


def _rewrite(nodes, output: str) -> dict[str, str]:
  """Rewrites a list of nodes.

  Args:
    nodes: The nodes, a repeated field.
    output: How the result of an addition is called, by its node's name.

  Returns:
    New name of each result that was called `NODE:sum:0`.
  """
  added, renamed = [], {}
  for node in nodes:
    if node.op in _SUMS and _rounds(node):
      added += _split(node, output)
      renamed[f'{node.name}:sum:0'] = output.format(node.name)
    if node.op in ('Add', 'AddV2'):
      node.attr[_LEFT_ALONE].CopyFrom(_YES)
  nodes.extend(added)
  return renamed


def _rounds(node) -> bool:
  """Whether the order of a sum matters; two terms have none."""
  dtype = tf.dtypes.as_dtype(node.attr['T'].type)
  return node.attr['N'].i > 2 and (dtype.is_floating or dtype.is_complex)


def _split(node, output: str) -> list[tf.compat.v1.NodeDef]:
  """Makes `node` the last of a chain of additions; returns the others."""
  count = node.attr['N'].i
  terms, control = list(node.input[:count]), list(node.input[count:])
  chain = []
  total = terms[0]
  for i, term in enumerate(terms[1:-1]):
    chain.append(
        tf.compat.v1.NodeDef(
            name=f'{node.name}/to_{i + 1}',
            op='AddV2',
            device=node.device,
            input=[total, term],
            attr={'T': node.attr['T'], _LEFT_ALONE: _YES},
        )
    )
    total = output.format(chain[-1].name)
  node.op = 'AddV2'
  node.input[:] = [total, terms[-1], *control]
  for name in ('N', 'shape'):
    if name in node.attr:
      del node.attr[name]
  return chain
