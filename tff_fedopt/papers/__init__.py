"""The registry of tables: those of the four papers, and those of users.

Importing this package needs no TensorFlow; neither do the specs.
"""

from tff_fedopt import spelling
from tff_fedopt.papers import afo
from tff_fedopt.papers import fedinit
from tff_fedopt.papers import fedvra
from tff_fedopt.papers import local_adaptivity
from tff_fedopt.tables import spec

# What a command without table names makes.
DEFAULT = ('afo_main',)
_SPECS: dict[str, spec.TableSpec] = {}


def register(table: spec.TableSpec) -> spec.TableSpec:
  """Makes a table known to `names` and `get`.

  Args:
    table: Its spec; it may be registered again.

  Returns:
    The spec.

  Raises:
    ValueError: If it is no spec, or there is another table of that id.
  """
  if not isinstance(table, spec.TableSpec):
    raise ValueError(
        f'not a table: {table!r:.60}; expected a'
        ' tff_fedopt.tables.spec.TableSpec'
    )
  if _SPECS.get(table.id, table) is not table:
    raise ValueError(f'there is a table {table.id!r} already; id it otherwise')
  _SPECS[table.id] = table
  return table


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
    hint = spelling.near(name, _SPECS)
    known = f'there are: {", ".join(_SPECS)}'
    raise ValueError(f'unknown table {name!r}; {hint or known}')
  return _SPECS[name]


for _paper in (afo, local_adaptivity, fedvra, fedinit):
  for _table in _paper.TABLES:
    register(_table)
