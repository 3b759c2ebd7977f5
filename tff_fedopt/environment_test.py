"""The guard's one line, and the TFF symbols that this suite relies on."""

import ast
import pathlib
import subprocess
import sys
import time

import pytest

import tff_fedopt
from tff_fedopt import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOOD = {'tensorflow-federated': '0.87.0', 'tensorflow': '2.14.1'}


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
def test_wrong_environment_is_refused_at_once(arguments, status, last_line):
  started = time.monotonic()
  result = subprocess.run(
      [sys.executable, '-S', *arguments],
      cwd=ROOT,
      env={},
      capture_output=True,
      text=True,
      check=False,
  )
  assert time.monotonic() - started < 1.0
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
  assert environment.used_symbols(source) == [
      'tensorflow_federated.a.b',
      'tensorflow_federated.learning.templates.LearningProcess',
      'tensorflow_federated.python.core.something',
      'tensorflow_federated.python.learning.models.Thing',
      'tensorflow_federated.types.StructType',
  ]


def test_installed_tff_has_every_symbol_used():
  users = environment.probe_list(ROOT)
  assert len(users) > 20, 'the probe list is suspiciously short'
  assert {s: u for s, u in users.items() if not environment.resolves(s)} == {}


def test_a_missing_symbol_is_noticed():
  prefix = 'tensorflow_federated.learning.templates.'
  assert environment.resolves(prefix + 'LearningProcess')
  assert not environment.resolves(prefix + 'LearningProcesses')
  assert not environment.resolves(prefix + 'LearningProcess.no_such_method')
  assert not environment.resolves('tensorflow_federated.no_such_module.x')


@pytest.mark.parametrize('name', tff_fedopt.__all__)
def test_public_names_exist(name):
  assert getattr(tff_fedopt, name) is not None
  assert name in dir(tff_fedopt)


def test_an_unknown_name_is_refused_with_the_known_ones():
  with pytest.raises(AttributeError, match="'runs'; it has RunSpec, algorithm"):
    tff_fedopt.runs  # pylint: disable=pointless-statement
