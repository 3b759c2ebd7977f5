"""The reproduced tables: one declarative spec per table id, one engine.

Importing this package needs no TensorFlow; neither do the specs.
"""

import difflib

from tff_fedopt.papers import afo
from tff_fedopt.papers import fedinit
from tff_fedopt.papers import fedvra
from tff_fedopt.papers import local_adaptivity
from tff_fedopt.tables import spec

_ALL = (
    *afo.TABLES,
    *local_adaptivity.TABLES,
    *fedvra.TABLES,
    *fedinit.TABLES,
)
_SPECS = {table.id: table for table in _ALL}
# What a command without table names makes.
DEFAULT = ('afo_main',)


def names(paper: str | None = None) -> tuple[str, ...]:
  """Returns the ids of the available tables, all or those of one paper."""
  return tuple(
      table.id for table in _SPECS.values() if paper in (None, table.paper)
  )


def get(name: str) -> spec.TableSpec:
  """Returns the spec of a table.

  Args:
    name: A table id.

  Returns:
    Its spec.

  Raises:
    ValueError: If there is no such table; the message names the nearest ones.
  """
  if name not in _SPECS:
    near = difflib.get_close_matches(name, _SPECS, n=3, cutoff=0.4)
    hint = (
        f'did you mean {" or ".join(near)}?'
        if near
        else f'there are: {", ".join(_SPECS)}'
    )
    raise ValueError(f'unknown table {name!r}; {hint}')
  return _SPECS[name]
