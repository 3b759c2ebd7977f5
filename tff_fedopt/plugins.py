"""Modules from outside the package that register algorithms, tasks or tables.

`--import=my_module` on every command, or `load` in Python; processes that are
started from here load the same.
"""

import importlib
import importlib.util
import os
import pathlib
import sys
import types

from tff_fedopt import runtime

_loaded: dict[str, types.ModuleType] = {}


def load(name: str) -> None:
  """Imports a plug-in, once.

  Args:
    name: A module's name, or the path of a Python file.

  Raises:
    ValueError: If there is no such module or file. What the module itself
      raises comes as it is.
  """
  if name.endswith('.py'):
    name = str(pathlib.Path(name).resolve())
  if name not in _loaded:
    find = _from_file if name.endswith('.py') else _from_name
    _loaded[name] = find(name)
    if 'tensorflow_federated' in sys.modules:
      # Its own default context complains at exit.
      runtime.use()


def loaded() -> list[str]:
  """Returns what was loaded, as another process can load it again."""
  return list(_loaded)


def own_name(text: str) -> str:
  """Returns NAME of MODULE:NAME, or of NAME alone."""
  return text.rpartition(':')[2]


def raised(error: BaseException) -> bool:
  """Tells whether an error comes from a plug-in, not from the project.

  Args:
    error: A caught error.
  """
  plugins = {module.__file__ for module in _loaded.values()}
  ours = str(pathlib.Path(__file__).parent)
  found = False
  trace = error.__traceback__
  while trace:
    path = trace.tb_frame.f_code.co_filename
    if path in plugins or path.startswith(ours):
      found = path in plugins
    trace = trace.tb_next
  return found


def _from_file(path):
  if not os.path.isfile(path):
    raise ValueError(f'there is no file {path} to import')
  name = pathlib.Path(path).stem
  if name in sys.modules:
    raise ValueError(
        f'{path} cannot be imported: there is another module {name!r}; give the'
        ' file another name'
    )
  spec = importlib.util.spec_from_file_location(name, path)
  module = importlib.util.module_from_spec(spec)
  sys.modules[name] = module
  try:
    spec.loader.exec_module(module)
  except BaseException:
    del sys.modules[name]
    raise
  return module


def _from_name(name):
  here = os.getcwd()
  if here not in sys.path and '' not in sys.path:
    sys.path.append(here)
  try:
    return importlib.import_module(name)
  except ModuleNotFoundError as e:
    if e.name and (name + '.').startswith(e.name + '.'):
      raise ValueError(
          f'there is no module {name!r} to import; expected the name of one'
          f' that Python finds from {here}, or the path of a .py file'
      ) from e
    raise
