"""Which code a number came from: hashes of syntax trees.

A module's hash is that of what it computes: comments, docstrings, annotations,
imports and what an error says are left out, and so is where the file is.
Nothing is imported to find the modules.
"""

import ast
from collections.abc import Mapping
import functools
import hashlib
import importlib.util
import pathlib
import secrets
import sys

# Packages of this repository whose code may decide numbers, and in or above
# them what does not: the registries, and what gives things their keys.
_OURS = (
    'tasks',
    'tff_fedopt.algorithms',
    'tff_fedopt.optimizers',
    'tff_fedopt.processes',
)
_OF_NO_INFLUENCE = (
    'tasks',
    'tasks.code_hash',
    'tasks.data.content',
    'tasks.source',
    'tff_fedopt',
    'tff_fedopt.algorithms',
)
_INSTALLED = {'site-packages', 'dist-packages'}
# Parts of the tree that differ between versions of Python, or say nothing.
_SKIPPED = {'ctx', 'kind', 'type_comment', 'type_ignores', 'type_params'}
_THIS_PROCESS = secrets.token_hex(8)


class _Normalised(ast.NodeTransformer):
  """Leaves out what computes nothing."""

  def visit_Import(self, node):
    return None

  visit_ImportFrom = visit_Import

  def visit_AnnAssign(self, node):
    self.generic_visit(node)
    if node.value is None:
      return ast.Expr(node.target)
    return ast.Assign([node.target], node.value)

  def visit_Raise(self, node):
    return ast.Raise(None, None)

  def visit_arg(self, node):
    return ast.arg(node.arg, None)

  def _with_body(self, node):
    if ast.get_docstring(node, clean=False) is not None:
      node.body = node.body[1:]
    self.generic_visit(node)
    if hasattr(node, 'returns'):
      node.returns = None
    return node

  visit_Module = visit_ClassDef = _with_body
  visit_FunctionDef = visit_AsyncFunctionDef = _with_body


def _shape(node):
  if isinstance(node, list):
    return [_shape(item) for item in node]
  if not isinstance(node, ast.AST):
    return repr(node)
  return [type(node).__name__] + [
      [name, _shape(value)]
      for name, value in ast.iter_fields(node)
      if name not in _SKIPPED and value not in (None, [])
  ]


def of_text(text: str) -> str:
  """Returns the hash of a module's text, 16 hexadecimal digits."""
  shape = repr(_shape(_Normalised().visit(ast.parse(text))))
  return hashlib.sha256(shape.encode('utf-8')).hexdigest()[:16]


@functools.cache
def _parsed(path: pathlib.Path) -> tuple[str, tuple[str, ...]]:
  """A file's hash, and what it imports: `from a import b` as a.b."""
  text = path.read_text(encoding='utf-8')
  names = []
  for node in ast.walk(ast.parse(text)):
    if isinstance(node, ast.Import):
      names += [name.name for name in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
      names += [f'{node.module}.{name.name}' for name in node.names]
  return of_text(text), tuple(names)


def _file_of(module: str) -> pathlib.Path | None:
  """The file of a module that is loaded, or can be; None if it has none."""
  loaded = sys.modules.get(module)
  file = getattr(loaded, '__file__', None)
  if file is None and loaded is None:
    spec = importlib.util.find_spec(module)
    file = spec and spec.origin
  return file and pathlib.Path(file).resolve()


def _find(root: pathlib.Path, name: str) -> pathlib.Path | None:
  """The file of a module below a folder; of `a.b` that of a, if b is in it."""
  while name:
    base = root.joinpath(*name.split('.'))
    for path in (base.with_suffix('.py'), base / '__init__.py'):
      if path.is_file():
        return path
    name = name.rpartition('.')[0]
  return None


def _name_of(root, path):
  parts = path.relative_to(root).with_suffix('').parts
  return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


def _is_within(name, packages):
  return any(name == p or name.startswith(p + '.') for p in packages)


@functools.cache
def of_module(
    module: str, without: tuple[str, ...] = (), alone: bool = False
) -> Mapping[str, str]:
  """The code of a module and of what it imports.

  That is: what is imported of this repository's tasks and algorithms, and, for
  a module from elsewhere, what is imported of its own package, or, if it is in
  none, of the files beside it.

  Args:
    module: Its name; it need not be loaded.
    without: Names of packages that do not count.
    alone: Whether what it imports is left out.

  Returns:
    The files' names to their hashes. The hash of a module that is in no file,
    as in a notebook, is that of no other process: nobody can tell whether its
    code is the same.
  """
  ours = pathlib.Path(__file__).resolve().parents[1]
  path = _file_of(module)
  if path is None:
    return {f'{module}, which is in no file': _THIS_PROCESS}
  package = module.split('.')[0]
  root = path.parent
  own: tuple[str, ...] = ()
  if '.' in module or path.name == '__init__.py':
    depth = module.count('.') + (path.name == '__init__.py')
    root = path.parents[depth]
    own = (package,) if root != ours else ()
  elif not _INSTALLED & set(path.parts) and root != ours:
    own = tuple(sorted(p.stem for p in root.glob('*.py')))
  found = {}
  waiting = [(root, path)]
  while waiting:
    place, path = waiting.pop()
    name = path.relative_to(place).as_posix()
    if name in found:
      continue
    found[name], imported = _parsed(path)
    for wanted in () if alone else imported:
      for base, packages in ((ours, _OURS), (root, own)):
        if not _is_within(wanted, packages):
          continue
        there = _find(base, wanted)
        if there is None:
          continue
        dotted = _name_of(base, there)
        if dotted and dotted not in _OF_NO_INFLUENCE:
          if not _is_within(dotted, without):
            waiting.append((base, there))
  return dict(sorted(found.items()))


def together(hashes: Mapping[str, str]) -> str:
  """One hash of several files, wherever they are."""
  text = ' '.join(sorted(hashes.values()))
  return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
  """The files whose code is new, changed or gone; not those that only moved."""
  gone = set(before.values()) - set(now.values())
  new = set(now.values()) - set(before.values())
  return sorted(
      {name for name, value in now.items() if value in new}
      | {name for name, value in before.items() if value in gone}
  )
