"""Hashes of code."""

import sys
import types

import pytest

from tasks import code_hash

_CODE = """
\"\"\"A module.\"\"\"
import os
from typing import Any

SIZE: int = 3


def f(x: Any, *, y=2) -> int:
  \"\"\"Adds.\"\"\"
  if x < 0:
    raise ValueError('below zero')
  return x + y  # Both.
"""

_SAME = [
    _CODE.replace('A module.', 'Another.'),
    _CODE.replace('import os\n', 'import re\n'),
    _CODE.replace(': int = 3', ' = 3')
    .replace(': Any', '')
    .replace('-> int', ''),
    _CODE.replace('  # Both.', ''),
    _CODE.replace('below zero', 'x: expected 0 or above'),
    _CODE.replace('x + y', '(x +\n      y)'),
]
_OTHER = [
    _CODE.replace('= 3', '= 4'),
    _CODE.replace('y=2', 'y=3'),
    _CODE.replace('x + y', 'x - y'),
    _CODE.replace('x < 0', 'x <= 0'),
    _CODE.replace('SIZE', 'NUMBER'),
    _CODE + 'f = abs\n',
]


@pytest.mark.parametrize('text', _SAME)
def test_what_computes_nothing_changes_nothing(text):
  assert text != _CODE
  assert code_hash.of_text(text) == code_hash.of_text(_CODE)


@pytest.mark.parametrize('text', _OTHER)
def test_what_computes_changes_the_hash(text):
  assert text != _CODE
  assert code_hash.of_text(text) != code_hash.of_text(_CODE)


def test_a_dataclass_field_without_default_counts():
  one, other = (
      code_hash.of_text(f'class C:\n  x: int\n  {field}\n')
      for field in ('y: int', 'z: int')
  )
  assert one != other


def test_code_of_a_task_is_what_it_imports():
  files = code_hash.of_module('tasks.emnist_character')
  assert {
      'tasks/models/cnn.py',
      'tasks/models/variables.py',
      'tasks/data/client_data.py',
      'tasks/synthetic/images.py',
  } <= set(files)
  assert not {'tasks/models/vgg.py', 'tasks/__init__.py'} & set(files)
  less = code_hash.of_module(
      'tasks.emnist_character', without=('tasks.synthetic',)
  )
  assert not [name for name in less if 'synthetic' in name]


def test_code_of_an_algorithm_is_without_tasks_and_commands():
  files = set(code_hash.of_module('tff_fedopt.algorithms.scaffold'))
  assert 'tff_fedopt/processes/client_work.py' in files
  assert 'tff_fedopt/algorithms/fedvra.py' not in files
  assert {name.split('/')[1] for name in files} == {
      'algorithms', 'processes', 'optimizers'
  }


def test_code_of_a_module_from_elsewhere(tmp_path, monkeypatch):
  """Its own files, and what it uses of this repository; nothing is imported."""
  (tmp_path / 'theirs.py').write_text(
      'import numpy\nimport beside\nfrom tasks.models import cnn\nraise OSError'
  )
  (tmp_path / 'beside.py').write_text('X = 1\n')
  (tmp_path / 'other.py').write_text('Y = 1\n')
  package = tmp_path / 'their_package'
  package.mkdir()
  (package / '__init__.py').write_text('')
  (package / 'one.py').write_text('from their_package import two\nimport other')
  (package / 'two.py').write_text('Z = 1\n')
  monkeypatch.syspath_prepend(str(tmp_path))
  files = code_hash.of_module('theirs')
  assert {'theirs.py', 'beside.py', 'tasks/models/cnn.py'} <= set(files)
  assert 'other.py' not in files and not [f for f in files if 'numpy' in f]
  assert set(code_hash.of_module('their_package.one')) == {
      'their_package/one.py', 'their_package/two.py'
  }
  assert list(code_hash.of_module('theirs', alone=True)) == ['theirs.py']


def test_a_module_in_no_file_is_of_this_process_alone(monkeypatch):
  monkeypatch.setitem(sys.modules, 'nowhere', types.ModuleType('nowhere'))
  here = code_hash.of_module('nowhere')
  assert list(here) == ['nowhere, which is in no file']
  code_hash.of_module.cache_clear()
  monkeypatch.setattr(code_hash, '_THIS_PROCESS', 'another')
  assert code_hash.of_module('nowhere') != here
  code_hash.of_module.cache_clear()


def test_files_that_moved_have_not_changed():
  before = {'a.py': '1', 'b.py': '2'}
  assert code_hash.differences(before, {'c.py': '1', 'b.py': '2'}) == []
  assert code_hash.together(before) == code_hash.together({'x': '2', 'y': '1'})
  assert code_hash.differences(before, {'a.py': '3', 'b.py': '2'}) == ['a.py']
  assert code_hash.differences(before, {'a.py': '1'}) == ['b.py']
  assert code_hash.differences(before, {**before, 'n.py': '4'}) == ['n.py']
