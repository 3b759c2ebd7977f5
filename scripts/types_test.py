"""Public functions say what they take and give."""

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = (
    'tasks',
    'tff_fedopt/algorithms',
    'tff_fedopt/optimizers',
    'tff_fedopt/processes',
)


def untyped(tree, prefix=''):
  """Public functions and methods of a tree without all their types.

  Args:
    tree: A module or a class.
    prefix: What their names begin with.

  Returns:
    A list of `name: what has no type`.
  """
  found = []
  for node in tree.body:
    if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
      found += untyped(node, f'{prefix}{node.name}.')
    if not isinstance(node, ast.FunctionDef):
      continue
    if node.name.startswith('_') and node.name != '__init__':
      continue
    spec = node.args
    given = spec.posonlyargs + spec.args
    decorators = [ast.unparse(d) for d in node.decorator_list]
    if isinstance(tree, ast.ClassDef) and 'staticmethod' not in decorators:
      given = given[1:]
    given = given + spec.kwonlyargs
    given += [a for a in (spec.vararg, spec.kwarg) if a]
    missing = [a.arg for a in given if a.annotation is None]
    if node.returns is None and node.name != '__init__':
      missing.append('its result')
    if missing:
      found.append(f'{prefix}{node.name}: {", ".join(missing)}')
  return found


def test_public_functions_are_typed():
  found, count = {}, 0
  for folder in FOLDERS:
    for path in sorted((ROOT / folder).rglob('*.py')):
      if path.stem.endswith('_test'):
        continue
      count += 1
      if bad := untyped(ast.parse(path.read_text(encoding='utf-8'))):
        found[str(path.relative_to(ROOT))] = bad
  assert count > 40
  assert found == {}


def test_a_missing_type_is_noticed():
  source = '''
def f(a, b: int, *, c=1) -> None: pass
def _g(a): pass
class C:
  def __init__(self, x): pass
  def m(self, y: int): pass
  @staticmethod
  def s(z): pass
'''
  assert untyped(ast.parse(source)) == [
      'f: a, c',
      'C.__init__: x',
      'C.m: its result',
      'C.s: z, its result',
  ]
