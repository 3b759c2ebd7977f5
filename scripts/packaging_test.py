"""What `pip install .` brings: the wheel, made and used without network."""

import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ('tff_fedopt', 'tasks', 'results')
FILES = ('pyproject.toml', 'README.md', 'LICENSE')


@pytest.fixture(name='wheel', scope='module')
def _wheel(tmp_path_factory):
  """Builds from a copy, since setuptools leaves its own files behind."""
  source = tmp_path_factory.mktemp('source')
  for name in SOURCES:
    shutil.copytree(
        ROOT / name,
        source / name,
        symlinks=True,
        ignore=shutil.ignore_patterns('__pycache__'),
    )
  for name in FILES:
    shutil.copy(ROOT / name, source)
  out = tmp_path_factory.mktemp('wheel')
  result = subprocess.run(
      [sys.executable, '-m', 'pip', 'wheel', '--no-deps', '--no-index']
      + ['--no-build-isolation', '--wheel-dir', out, source],
      capture_output=True,
      text=True,
      check=False,
  )
  assert result.returncode == 0, result.stderr
  [path] = out.glob('*.whl')
  return path


@pytest.fixture(name='installed', scope='module')
def _installed(wheel, tmp_path_factory):
  folder = tmp_path_factory.mktemp('installed')
  with zipfile.ZipFile(wheel) as f:
    f.extractall(folder)
  return folder


def _run(installed, folder, *arguments):
  """Runs Python in a folder where only the wheel is to be found."""
  result = subprocess.run(
      [sys.executable, *arguments],
      cwd=folder,
      env={**os.environ, 'PYTHONPATH': str(installed)},
      capture_output=True,
      text=True,
      check=False,
  )
  assert result.returncode == 0, result.stderr
  return result.stdout


def test_every_source_and_every_number_is_in_the_wheel(wheel):
  with zipfile.ZipFile(wheel) as f:
    names = set(f.namelist())
  wanted = {
      str(path.relative_to(ROOT))
      for top in ('tff_fedopt', 'tasks')
      for path in (ROOT / top).rglob('*.py')
  }
  wanted |= {
      f'tff_fedopt/{path.relative_to(ROOT)}'
      for path in (ROOT / 'results').rglob('*.csv')
  }
  wanted |= {
      str(path.relative_to(ROOT))
      for path in (ROOT / 'tff_fedopt' / 'testing' / 'testdata').iterdir()
  }
  wanted |= {'tff_fedopt/py.typed', 'tasks/py.typed'}
  assert wanted - names == set()
  extra = {n for n in names - wanted if '.dist-info/' not in n}
  assert extra == set()


def test_the_metadata_agree_with_the_lock_and_the_version(installed):
  from packaging import requirements

  import tff_fedopt

  [info] = importlib.metadata.distributions(path=[str(installed)])
  assert info.version == tff_fedopt.__version__
  assert info.metadata['Requires-Python'] == '<3.12,>=3.10'
  lock = dict(
      re.findall(
          r'^([a-z0-9-]+)==(\S+)', (ROOT / 'requirements.txt').read_text(), re.M
      )
  )
  asked = [requirements.Requirement(r) for r in info.requires]
  assert len(asked) > 5
  for requirement in asked:
    assert requirement.specifier.contains(lock[requirement.name]), requirement
  [entry] = info.entry_points
  assert (entry.name, entry.value) == (
      'tff_fedopt',
      'tff_fedopt.__main__:command',
  )
  assert 'Version 2.0, January 2004' in (ROOT / 'LICENSE').read_text()


def test_the_numbers_are_found_from_any_folder(installed, tmp_path):
  output = _run(
      installed,
      tmp_path,
      '-c',
      'from tff_fedopt.tables import published, reference\n'
      'print(len(published.load()))\n'
      'print(reference.path("quick", "afo_main").is_file())\n'
      'print(published.PATH)',
  )
  count, is_there, path = output.splitlines()
  assert int(count) > 100
  assert is_there == 'True'
  assert path.startswith(str(installed))


def test_the_command_works_from_any_folder(installed, tmp_path):
  assert 'afo_main' in _run(
      installed, tmp_path, '-m', 'tff_fedopt', 'tables', '--list'
  )


def test_the_snippet_of_the_readme_runs_from_any_folder(installed, tmp_path):
  text = (ROOT / 'README.md').read_text(encoding='utf-8')
  [snippet] = re.findall(r'```python\n(.*?)```', text, re.S)
  assert 'import tff_fedopt' in snippet
  # The reader's own model, data and cohorts, as small as they can be.
  (tmp_path / 'snippet.py').write_text(
      f'''
from tff_fedopt.testing import toy
model_fn = toy.LinearModel
client_data = toy.Clients()
cohorts = [['c0', 'c1']] * 2
{snippet}
import pathlib
assert pathlib.Path(tff_fedopt.__file__).is_relative_to({str(installed)!r})
tff_fedopt.runtime.shutdown()
'''
  )
  lines = _run(installed, tmp_path, 'snippet.py').splitlines()
  assert len(lines) == 2
  assert 'loss' in lines[0]


def test_the_change_log_begins_with_this_version():
  import tff_fedopt

  text = (ROOT / 'CHANGELOG.md').read_text(encoding='utf-8')
  assert re.search(r'^## (\S+)', text, re.M)[1] == tff_fedopt.__version__
