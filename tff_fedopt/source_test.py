"""Rules that hold for the whole source, read from its syntax trees."""

import ast
import functools
import graphlib
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Part of the project -> the parts that it may import. What is not listed
# (the runtime, the commands) may import everything but what imports it.
ALLOWED = {
    'tff_fedopt.optimizers': {'tff_fedopt.optimizers'},
    'tff_fedopt.processes': {'tff_fedopt.optimizers', 'tff_fedopt.processes'},
    'tff_fedopt.algorithms': {
        'tff_fedopt.spelling',
        'tff_fedopt.optimizers',
        'tff_fedopt.processes',
        'tff_fedopt.algorithms',
    },
    'tff_fedopt.runtime': {'tff_fedopt.runtime'},
    'tff_fedopt.experiment': {
        'tff_fedopt.spelling',
        'tff_fedopt.optimizers',
        'tff_fedopt.processes',
        'tff_fedopt.algorithms',
        'tff_fedopt.experiment',
        'tff_fedopt.runtime',
        'tff_fedopt.environment',
        'tff_fedopt.plugins',
        'tasks',
    },
    'tff_fedopt.tables': {
        'tff_fedopt.algorithms',
        'tff_fedopt.experiment',
        'tff_fedopt.tables',
        'tff_fedopt.runtime',
        'tasks',
    },
    'tff_fedopt.problems': {
        'tff_fedopt.algorithms',
        'tff_fedopt.experiment',
        'tff_fedopt.problems',
        'tff_fedopt.runtime',
        'tff_fedopt.tables',
        'tasks',
    },
    'tff_fedopt.papers': {
        'tff_fedopt.spelling',
        'tff_fedopt.algorithms',
        'tff_fedopt.experiment',
        'tff_fedopt.papers',
        'tff_fedopt.problems',
        'tff_fedopt.runtime',
        'tff_fedopt.tables',
        'tasks',
    },
    'tasks': {'tasks'},
}

# The generators that carry no global state.
SEEDED = {
    'numpy.random': {
        'BitGenerator', 'Generator', 'PCG64', 'Philox', 'SeedSequence',
        'default_rng',
    },
    'random': {'Random'},
    'tensorflow.random': {'Generator', 'experimental', 'create_rng_state'},
}


def _sources(tests=False):
  return [
      path
      for top in ('tff_fedopt', 'tasks')
      for path in sorted((ROOT / top).rglob('*.py'))
      if tests or not path.stem.endswith('_test')
  ]


@functools.lru_cache(maxsize=None)
def _tree(path):
  return ast.parse(path.read_text(encoding='utf-8'))


def _module_name(path):
  parts = path.relative_to(ROOT).with_suffix('').parts
  return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


def imported(tree):
  """Returns every dotted name that a tree imports, `from a import b` as a.b."""
  names = set()
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      names.update(name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom):
      assert not node.level, 'relative import'
      names.update(f'{node.module}.{name.name}' for name in node.names)
  return names


def _part(module):
  """Returns the part of the project that a module belongs to, or None."""
  parts = module.split('.')
  if parts[0] == 'tasks':
    return 'tasks'
  return '.'.join(parts[:2]) if parts[0] == 'tff_fedopt' else None


def forbidden_imports(module, tree):
  """Returns what a module imports against the direction of dependencies."""
  allowed = ALLOWED.get(_part(module))
  if allowed is None or module.endswith('.__main__'):  # A command.
    return set()
  if module.endswith(('_test', '.conftest')):
    # Tests run what they build, with what tests share.
    allowed = allowed | {'tff_fedopt.runtime', 'tff_fedopt.testing'}
  return {
      name
      for name in imported(tree)
      if _part(name) is not None and _part(name) not in allowed
  }


def global_random_calls(tree):
  """Returns the global random generators that a tree uses, with lines."""
  aliases = {}
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for name in node.names:
        aliases[name.asname or name.name.split('.')[0]] = (
            name.name if name.asname else name.name.split('.')[0]
        )
    elif isinstance(node, ast.ImportFrom):
      for name in node.names:
        aliases[name.asname or name.name] = f'{node.module}.{name.name}'
  found = set()
  for node in ast.walk(tree):
    parts, inner = [], node
    while isinstance(inner, ast.Attribute):
      parts.insert(0, inner.attr)
      inner = inner.value
    if not isinstance(inner, ast.Name) or inner.id not in aliases:
      continue
    name = '.'.join([aliases[inner.id], *parts])
    for module, seeded in SEEDED.items():
      function = name[len(module) + 1 :].split('.')[0]
      if not name.startswith(module + '.') or function in seeded:
        continue
      if module == 'tensorflow.random' and function.startswith('stateless_'):
        continue
      found.add((node.lineno, name))
  return sorted(found)


def test_no_modules_import_each_other():
  trees = {_module_name(path): _tree(path) for path in _sources()}
  graph = {
      module: {_known(name, trees) for name in imported(tree)} - {module, None}
      for module, tree in trees.items()
  }
  graphlib.TopologicalSorter(graph).prepare()  # Raises CycleError.


def _known(name, modules):
  """Returns the module that a dotted name belongs to; None if not ours."""
  while name and name not in modules:
    name = name.rpartition('.')[0]
  return name or None


def test_imports_point_one_way():
  names = {_module_name(path): path for path in _sources(tests=True)}
  found = {
      name: forbidden_imports(name, _tree(path)) for name, path in names.items()
  }
  assert {name: those for name, those in found.items() if those} == {}


@pytest.mark.parametrize(
    'module, source, expected',
    [
        ('tasks.a', 'import tff_fedopt.runtime', 'tff_fedopt.runtime'),
        ('tasks.a', 'def f():\n  from tff_fedopt import x', 'tff_fedopt.x'),
        ('tff_fedopt.processes.a', 'import tasks', 'tasks'),
        (
            'tff_fedopt.optimizers.a',
            'from tff_fedopt.processes import trees',
            'tff_fedopt.processes.trees',
        ),
        ('tff_fedopt.algorithms.a', 'from tff_fedopt.processes import b', None),
        (
            'tff_fedopt.algorithms.a',
            'from tff_fedopt import runtime',
            'tff_fedopt.runtime',
        ),
        ('tff_fedopt.algorithms.a_test', 'import tff_fedopt.runtime', None),
        ('tff_fedopt.train', 'from tff_fedopt.experiment import b', None),
    ],
)
def test_a_wrong_direction_is_noticed(module, source, expected):
  found = forbidden_imports(module, ast.parse(source))
  assert found == ({expected} if expected else set())


def test_no_global_random_generator():
  found = {
      _module_name(path): global_random_calls(_tree(path))
      for path in _sources()
  }
  assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    'source, name',
    [
        ('import numpy as np\nnp.random.normal()', 'numpy.random.normal'),
        ('import random\nrandom.shuffle(x)', 'random.shuffle'),
        ('from random import choice\nchoice(x)', 'random.choice'),
        ('import tensorflow as tf\ntf.random.normal([])',
         'tensorflow.random.normal'),
        ('import numpy as np\nnp.random.default_rng(1).normal()', None),
        ('import tensorflow as tf\ntf.random.stateless_normal(s, t)', None),
    ],
)
def test_a_global_random_generator_is_noticed(source, name):
  found = [found for _, found in global_random_calls(ast.parse(source))]
  assert found == ([name] if name else [])


def _is_command(path):
  """A module that reads flags and can be run."""
  has_flags = imported(_tree(path)) & {'argparse', 'absl.app', 'absl.flags'}
  is_main = path.stem == '__main__' or "== '__main__'" in path.read_text()
  return bool(has_flags) and is_main


def _imports_tensorflow(processes, arguments):
  """Runs Python; tells its output and whether it loaded TensorFlow."""
  result = processes.run(
      [sys.executable, '-X', 'importtime', *arguments], seconds=60, cwd=ROOT
  )
  modules = {
      line.rpartition('|')[2].strip().split('.')[0]
      for line in result.stderr.splitlines()
      if line.startswith('import time:')
  }
  assert 'sys' in modules or 'site' in modules, result.stderr
  return result.stdout, 'tensorflow' in modules


@pytest.mark.parametrize(
    'module',
    [
        _module_name(p).removesuffix('.__main__')
        for p in _sources()
        if _is_command(p)
    ],
)
def test_help_of_commands_comes_without_tensorflow(module, processes):
  output, has_tensorflow = _imports_tensorflow(
      processes, ['-m', module, '--help']
  )
  assert '--' in output
  assert not has_tensorflow


@pytest.mark.parametrize(
    'package',
    [
        package
        for package in (
            'tff_fedopt',
            'tff_fedopt.algorithms',
            'tff_fedopt.experiment',
            'tff_fedopt.tables',
            'tasks',
        )
        if ROOT.joinpath(*package.split('.'), '__init__.py').exists()
    ],
)
def test_packages_import_without_tensorflow(package, processes):
  assert not _imports_tensorflow(processes, ['-c', f'import {package}'])[1]


def test_an_import_of_tensorflow_is_noticed(tmp_path, processes):
  (tmp_path / 'tensorflow.py').write_text('')
  code = f'import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport tensorflow'
  assert _imports_tensorflow(processes, ['-c', code])[1]
