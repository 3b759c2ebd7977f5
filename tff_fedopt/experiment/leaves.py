"""The numbers inside nested results, by name.

TFF may hand a structure back in other containers than it came in (a named tuple
as an ordered dictionary); the names here are the same for both.
"""

from collections.abc import Callable, Mapping
from typing import Any


def map_leaves(
    function: Callable[[str, Any], Any], value: Any, prefix: str = ''
) -> Any:
  """Returns the structure with `function(name, leaf)` as leaves.

  Args:
    function: What to do with a leaf.
    value: Mappings, named tuples, lists and tuples, nested.
    prefix: The name of `value` itself.
  """

  def item(key, inner):
    name = f'{prefix}/{key}' if prefix else str(key)
    return map_leaves(function, inner, name)

  if isinstance(value, Mapping):
    return type(value)((k, item(k, v)) for k, v in value.items())
  if hasattr(value, '_fields'):
    return type(value)(*map(item, value._fields, value))
  if isinstance(value, (list, tuple)):
    return type(value)(item(i, v) for i, v in enumerate(value))
  return function(prefix, value)


def by_name(value: Any) -> dict[str, Any]:
  """Returns all leaves by name (`finalizer/optimizer/m`), in their order."""
  leaves = {}
  map_leaves(leaves.__setitem__, value)
  return leaves
