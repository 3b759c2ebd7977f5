"""An algorithm and a table in files of their own, used from another folder."""

import json
import os
import pathlib
import shutil

import pandas as pd
import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(name='folder')
def _folder(tmp_path):
  for name in ('fedexp.py', 'fedexp_table.py'):
    shutil.copy(_ROOT / 'examples' / name, tmp_path)
  return tmp_path


@pytest.fixture(name='run')
def _run(processes, folder):
  """Runs a command as somebody in the folder would; returns its output."""
  paths = [str(_ROOT), os.environ.get('PYTHONPATH', '')]

  def run(*arguments, code=0):
    result = processes.run(
        ['-m', 'tff_fedopt', *arguments],
        seconds=280,
        warm=True,
        cwd=folder,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, paths))},
    )
    assert result.returncode == code, result.stderr
    return result.stdout + result.stderr

  return run


def test_the_example_is_short():
  lines = (_ROOT / 'examples' / 'fedexp.py').read_text().splitlines()
  assert len(lines) <= 60


def test_train(run, folder):
  run(
      'train', '--algorithm=fedexp.py:fedexp', '--epsilon=0.5',
      '--task=stackoverflow_tag', '--rounds=1', '--run_dir=run',
      '--validation_examples=20',
  )
  spec = json.loads((folder / 'run' / 'config.json').read_text())['spec']
  assert spec['algorithm'] == 'fedexp'
  assert spec['hyperparameters']['epsilon'] == 0.5
  assert len((folder / 'run' / 'metrics.csv').read_text().splitlines()) == 2
  error = run(
      'train', '--import=fedexp', '--algorithm=fedexp',
      '--task=stackoverflow_tag', '--epsilon=-1', code=2,
  )
  assert 'epsilon: -1.0; expected 0 or above' in error


def test_a_table_in_two_processes_and_its_flagfiles(run, folder):
  chosen = ['tables', 'fedexp_tags', '--import=fedexp_table.py', '--rounds=1']
  run(*chosen, '--jobs=2', '--out_dir=out')
  rows = pd.read_csv(folder / 'out' / 'fedexp_tags.csv')
  assert set(rows['column']) == {'FedAvg', 'FedExP'}
  assert (rows['status'] == 'done').all()
  paths = run(*chosen, '--dry_run', '--out_dir=flags').splitlines()
  (path,) = [path for path in paths if 'FedExP' in path]
  assert run('train', f'--flagfile={path}', '--run_dir=again')
  (there,) = folder.glob('out/runs/*fedexp*/config.json')
  again = json.loads((folder / 'again' / 'config.json').read_text())
  assert again['spec'] == json.loads(there.read_text())['spec']


def test_the_bench_takes_it(run, folder):
  run(
      'bench', '--algorithm=fedexp.py:fedexp', '--turns=1',
      '--starts=1', '--out=bench.csv',
  )
  rows = pd.read_csv(folder / 'bench.csv')
  assert list(rows['variant']) == ['fedavg', 'fedexp']
  assert (rows['median'] > 0).all()
