"""What a traced function does besides its result: read off its graph.

Functions that are called inside are followed, so branches and loops count.
"""

from collections.abc import Collection, Iterable
import re
from typing import Any

# Operations that change the resource they are given first, or several.
_CHANGES = re.compile(
    r'Assign(Add|Sub)?VariableOp|Resource(Scatter|Apply|SparseApply|Strided).*'
)
_SAME = ('Identity', 'Enter', 'Switch')
# Draws from a `tf.random.Generator`; its state is a resource.
_GENERATOR = re.compile(r'Stateful(?!PartitionedCall).+|Rng(ReadAnd)?Skip')


class Graph:
  """A graph and the functions that it calls."""

  def __init__(self, graph_def: Any):
    """Takes the graph.

    Args:
      graph_def: A `GraphDef`, as `tf.Graph.as_graph_def` gives it.
    """
    self._nodes = graph_def.node
    self._functions = {f.signature.name: f for f in graph_def.library.function}
    self._changed_arguments: dict[Any, Any] = {}

  def changed(self, but: Collection[str] = ()) -> set[str]:
    """Names of nodes whose resource some operation changes.

    Args:
      but: Names of operations that do not count.

    Returns:
      Names, of placeholders and of variables' handles.
    """
    return self._changed(n for n in self._nodes if n.name not in but)

  def random_operations(self) -> list[str]:
    """Names of operations whose draws depend on what ran before them."""
    found, seen, waiting = [], set(), [self._nodes]
    while waiting:
      for node in waiting.pop():
        # Stateless operations take their seeds as inputs.
        if 'seed2' in node.attr or _GENERATOR.fullmatch(node.op):
          found.append(node.name)
        for name in _called(node):
          if name in self._functions and name not in seen:
            seen.add(name)
            waiting.append(self._functions[name].node_def)
    return found

  def _changed(self, nodes: Iterable):
    same, changed = {}, set()
    for node in nodes:
      inputs = [i.split(':')[0] for i in node.input if not i.startswith('^')]
      if node.op in _SAME:
        same[node.name] = inputs[0]
      elif _CHANGES.fullmatch(node.op):
        changed.update(inputs)
      for name in _called(node):
        function = self._functions.get(name)
        if function is None:
          continue
        arguments = [a.name for a in function.signature.input_arg]
        # What comes first (a condition, a data set) is not handed on.
        handed = inputs[-len(arguments) :] if arguments else []
        wanted = self._arguments(name)
        changed.update(i for a, i in zip(arguments, handed) if a in wanted)
    for name in list(changed):
      while name in same:
        name = same[name]
        changed.add(name)
    return changed

  def _arguments(self, name):
    """Names of a function's arguments that it changes."""
    if name not in self._changed_arguments:
      self._changed_arguments[name] = set()  # Should it call itself.
      self._changed_arguments[name] = self._changed(
          self._functions[name].node_def
      )
    return self._changed_arguments[name]


def _called(node):
  """Names of the functions that a node calls."""
  for value in node.attr.values():
    if value.HasField('func'):
      yield value.func.name
    for function in value.list.func:
      yield function.name
