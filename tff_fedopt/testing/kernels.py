"""Which operations of a computation a GPU cannot run."""

import re

import tensorflow as tf
from tensorflow.python.framework import kernels
import tensorflow_federated as tff

# Text, files, data sets and tables live on the host, whatever trains. The
# tensors that they give are copied to where they are used.
ON_THE_HOST = re.compile(
    r'\w*(Dataset|Iterator|String|HashTable|LookupTable)\w*'
    r'|AsString|(En|De)codeBase64|MatchingFiles|SaveV2|RestoreV2|ReadFile'
    r'|ShardedFilename|RegexReplace|Substr|PrintV2|Assert|Timestamp'
)


def without_gpu(computation: tff.framework.ConcreteComputation) -> set[str]:
  """Returns the operations that have no kernel for a GPU, by name.

  Args:
    computation: Any computation; its TensorFlow graphs, and the functions in
      them, are looked at.
  """
  names = {node.op for graph in graphs(computation) for node in _nodes(graph)}
  return {name for name in names if not _runs_on_gpu(name)}


def pinned(computation: tff.framework.ConcreteComputation) -> set[str]:
  """Returns the operations that a graph places on a device, by name.

  A data set that is handed in, which TFF places on the CPU, is not among them.
  """
  return {
      node.op
      for graph in graphs(computation)
      for node in _nodes(graph)
      if node.device
      and not (
          node.op == 'Placeholder' and node.attr['dtype'].type == tf.variant
      )
  }


def graphs(computation) -> list[tf.compat.v1.GraphDef]:
  """Returns the TensorFlow graphs of a computation."""
  found = []

  def visit(block):
    if isinstance(block, tff.framework.CompiledComputation):
      graph = tf.compat.v1.GraphDef()
      block.proto.tensorflow.graph_def.Unpack(graph)
      found.append(graph)
    return block, False

  tff.framework.transform_postorder(computation.to_building_block(), visit)
  return found


def _nodes(graph):
  functions = {f.signature.name for f in graph.library.function}
  for nodes in (graph.node, *(f.node_def for f in graph.library.function)):
    yield from (node for node in nodes if node.op not in functions)


def _runs_on_gpu(name):
  registered = kernels.get_registered_kernels_for_op(name).kernel
  return any(kernel.device_type in ('GPU', 'DEFAULT') for kernel in registered)
