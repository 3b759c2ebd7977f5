"""The guard's one line, and the TFF symbols that this suite relies on."""

import ast
import importlib
import os
import pathlib
import sys

import pytest

import tff_fedopt
from tff_fedopt import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOOD = {'tensorflow-federated': '0.87.0', 'tensorflow': '2.14.1'}


def used_symbols(source):
  """Lists what a Python source takes from TFF, as dotted names.

  Follows `import tensorflow_federated as NAME` (each longest attribute chain
  that starts at NAME) and `from tensorflow_federated… import NAME`.

  Args:
    source: Text of a Python file.

  Returns:
    Sorted list of names such as 'tensorflow_federated.learning.templates'.
  """
  tree = ast.parse(source)
  aliases, found, inner = {}, set(), set()
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for name in node.names:
        if name.name.split('.')[0] == 'tensorflow_federated':
          aliases[name.asname or 'tensorflow_federated'] = (
              name.name if name.asname else 'tensorflow_federated'
          )
    elif isinstance(node, ast.ImportFrom) and node.module:
      if node.module.split('.')[0] == 'tensorflow_federated':
        found.update(node.module + '.' + name.name for name in node.names)
  # ast.walk meets the outermost attribute of a chain first.
  for node in ast.walk(tree):
    if not isinstance(node, ast.Attribute) or node in inner:
      continue
    parts = []
    while isinstance(node, ast.Attribute):
      parts.append(node.attr)
      node = node.value
      inner.add(node)
    if isinstance(node, ast.Name) and node.id in aliases:
      found.add('.'.join([aliases[node.id]] + parts[::-1]))
  return sorted(found)


def users_of_symbols(root):
  """Maps every TFF symbol used in the sources below a folder to its users."""
  users = {}
  for package in ('tff_fedopt', 'tasks'):
    for path in sorted(pathlib.Path(root, package).rglob('*.py')):
      for symbol in used_symbols(path.read_text(encoding='utf-8')):
        users.setdefault(symbol, []).append(str(path.relative_to(root)))
  return users


def resolves(symbol):
  """Tells whether the installed TFF has a symbol, given as a dotted name."""
  parts = symbol.split('.')
  for length in range(len(parts), 0, -1):
    try:
      value = importlib.import_module('.'.join(parts[:length]))
    except ModuleNotFoundError:
      continue
    try:
      for part in parts[length:]:
        value = getattr(value, part)
    except AttributeError:
      return False
    return True
  return False


def _problem(python=(3, 11, 7), system='Linux', machine='x86_64', **versions):
  versions = {k.replace('_', '-'): v for k, v in versions.items()}
  return environment.problem(
      python, system, machine, version_of={**GOOD, **versions}.get
  )


@pytest.mark.parametrize('python', [(3, 10, 0), (3, 11, 9)])
def test_supported_pythons_have_no_problem(python):
  assert _problem(python) is None


@pytest.mark.parametrize(
    'changed, words',
    [
        (dict(python=(3, 12, 1)), 'needs Python 3.10 or 3.11; this is 3.12'),
        (dict(python=(3, 9, 18)), 'this is 3.9'),
        (dict(system='Darwin', machine='arm64'), 'this is Darwin arm64'),
        (dict(machine='aarch64'), 'needs Linux x86_64'),
        (dict(tensorflow_federated=None), '0.87.0, which is not installed'),
        (dict(tensorflow_federated='0.88.0'), 'installed is 0.88.0'),
        (dict(tensorflow_federated='0.87.01'), 'installed is 0.87.01'),
        (dict(tensorflow='2.15.0'), 'needs tensorflow 2.14; installed is 2.15'),
    ],
)
def test_problem_is_one_line_that_names_it(changed, words):
  line = _problem(**changed)
  assert words in line
  assert '\n' not in line


@pytest.mark.parametrize('name', ['environment.py', '__init__.py'])
def test_guard_parses_on_old_pythons(name):
  source = (ROOT / 'tff_fedopt' / name).read_text()
  ast.parse(source, feature_version=(3, 6))


# -S hides the installed packages: as if TFF were missing.
@pytest.mark.parametrize(
    'arguments, status, last_line',
    [
        (
            ['-c', 'import tff_fedopt'],
            1,
            'ImportError: tff_fedopt needs tensorflow-federated 0.87.0, which '
            'is not installed; ' + environment.REMEDY,
        ),
        (
            ['-m', 'tff_fedopt.commands.doctor'],
            2,
            'tff_fedopt needs tensorflow-federated 0.87.0, which is not '
            'installed; ' + environment.REMEDY,
        ),
    ],
    ids=['import', 'command'],
)
def test_wrong_environment_is_refused_at_once(
    arguments, status, last_line, processes
):
  # Without site-packages: nothing that takes long is there to be imported.
  result = processes.run(
      [sys.executable, '-S', *arguments], seconds=60, cwd=ROOT, env={}
  )
  assert result.returncode == status
  lines = result.stderr.splitlines()
  assert lines[-1] == last_line
  if arguments[0] == '-m':
    assert len(lines) == 1 and not result.stdout


def test_used_symbols_follows_every_way_to_name_one():
  source = """
import tensorflow_federated as tff
from tensorflow_federated.python.core import something
import tensorflow_federated.python.learning as inner
other.tff.not_this
def f(x: tff.types.StructType) -> None:
  tff.learning.templates.LearningProcess(tff.a.b).next.c
  inner.models.Thing
"""
  assert used_symbols(source) == [
      'tensorflow_federated.a.b',
      'tensorflow_federated.learning.templates.LearningProcess',
      'tensorflow_federated.python.core.something',
      'tensorflow_federated.python.learning.models.Thing',
      'tensorflow_federated.types.StructType',
  ]


def test_installed_tff_has_every_symbol_used():
  users = users_of_symbols(ROOT)
  assert len(users) > 20, 'the list of symbols is suspiciously short'
  assert {s: u for s, u in users.items() if not resolves(s)} == {}


def test_a_missing_symbol_is_noticed():
  prefix = 'tensorflow_federated.learning.templates.'
  assert resolves(prefix + 'LearningProcess')
  assert not resolves(prefix + 'LearningProcesses')
  assert not resolves(prefix + 'LearningProcess.no_such_method')
  assert not resolves('tensorflow_federated.no_such_module.x')


@pytest.mark.parametrize('name', tff_fedopt.__all__)
def test_public_names_exist(name):
  assert getattr(tff_fedopt, name) is not None


def test_what_is_shown_is_what_is_public():
  assert set(dir(tff_fedopt)) == {
      '__version__',
      'ClientStateError',
      'ClientWorkError',
      'RunSpec',
      'WorkerDied',
      'algorithms',
      'client_input',
      'collect_client_state',
      'initial_weights',
      'run',
      'run_experiment',
      'runtime',
      'sweep',
  }
  assert set(dir(tff_fedopt)) == set(tff_fedopt.__all__)


def test_public_names_are_what_they_are_called():
  assert tff_fedopt.sweep.__module__ == 'tff_fedopt.experiment.sweep'
  assert issubclass(tff_fedopt.WorkerDied, RuntimeError)
  assert issubclass(tff_fedopt.ClientStateError, RuntimeError)
  assert issubclass(tff_fedopt.ClientWorkError, RuntimeError)


@pytest.mark.parametrize('given, level', [(None, '3'), ('0', '0')])
def test_tensorflow_is_quiet_unless_asked(given, level, processes):
  env = {k: v for k, v in os.environ.items() if k != 'TF_CPP_MIN_LOG_LEVEL'}
  if given:
    env['TF_CPP_MIN_LOG_LEVEL'] = given
  code = 'import os, tff_fedopt; print(os.environ["TF_CPP_MIN_LOG_LEVEL"])'
  result = processes.run(
      [sys.executable, '-c', code], seconds=60, cwd=ROOT, env=env
  )
  assert result.stdout.split() == [level]


def test_a_wrong_environment_stops_the_installed_command_too(
    tmp_path, processes
):
  script = tmp_path / 'tff_fedopt'
  script.write_text('from tff_fedopt.__main__ import command\ncommand()\n')
  result = processes.run(
      [sys.executable, '-S', str(script)],
      seconds=60,
      env={'PYTHONPATH': str(ROOT)},
  )
  assert result.returncode == 2
  assert len(result.stderr.splitlines()) == 1
  assert 'which is not installed' in result.stderr


def test_an_unknown_name_is_refused_with_the_known_ones():
  known = "'runs'; it has ClientStateError, ClientWorkError"
  with pytest.raises(AttributeError, match=known):
    tff_fedopt.runs  # pylint: disable=pointless-statement
