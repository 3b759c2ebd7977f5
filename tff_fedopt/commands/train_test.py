"""Tests of the training command."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from tff_fedopt import algorithms
from tff_fedopt.commands import train
from tff_fedopt.testing import toy

_ROOT = pathlib.Path(train.__file__).resolve().parents[2]
_FLAGS = ['--task=toy', '--noprogress', '--notensorboard', '--rounds=2']


@pytest.fixture(autouse=True)
def _toy_task(monkeypatch):
  toy.install(monkeypatch.setattr)


def _train(*arguments):
  return train.main([*_FLAGS, *map(str, arguments)])


def test_flags_become_the_run(tmp_path, capsys):
  flagfile = tmp_path / 'flags'
  flagfile.write_text('--algorithm=fedadam\n--tau=0.01\n')
  run_dir = tmp_path / 'run'
  code = _train(
      f'--flagfile={flagfile}',
      '--server_learning_rate=0.1',
      '--bias_correction',
      '--task_option=noise=2',
      '--seed=3',
      f'--run_dir={run_dir}',
  )
  assert code == 0
  spec = json.loads((run_dir / 'config.json').read_text())['spec']
  assert spec['algorithm'] == 'fedadam' and spec['seed'] == 3
  given = {'tau': 0.01, 'server_learning_rate': 0.1, 'bias_correction': True}
  assert spec['hyperparameters'].items() >= given.items()
  assert spec['task_options'] == {'noise': 2}
  assert not (run_dir / 'tensorboard').exists()
  out, err = capsys.readouterr()
  assert out.startswith('done: 2 of 2 rounds, Loss ')
  assert out.endswith(f', {run_dir}\n') and out.count('\n') == 1
  assert err == ''  # Quiet: it is not a terminal.

  # The same once more is not run again; other flags are refused.
  same = [
      f'--flagfile={flagfile}', '--server_learning_rate=0.1',
      '--bias_correction', '--task_option=noise=2', f'--run_dir={run_dir}',
  ]
  assert _train('--seed=3', *same) == 0
  assert 'done (finished before; not run again)' in capsys.readouterr().out
  assert _train('--seed=4', *same) == 2
  assert 'holds another run: stored with seed 3, now 4;' in (
      capsys.readouterr().err
  )

  # Unless it is overwritten; then another run may be here.
  assert _train('--seed=4', '--overwrite', *same) == 0
  spec = json.loads((run_dir / 'config.json').read_text())['spec']
  assert spec['seed'] == 4


def test_diverged_run_is_exit_code_1(tmp_path, capsys):
  code = _train('--client_learning_rate=1e38', f'--run_dir={tmp_path}')
  assert code == 1
  assert capsys.readouterr().out.startswith('diverged: ')


@pytest.mark.parametrize(
    'arguments, message',
    [
        (['--tasks=toy'], 'unknown flag --tasks; did you mean --task'),
        (['--client_lr=1'], 'did you mean --client_learning_rate\\?'),
        (['--task=cifar'], "unknown task 'cifar'; one of toy"),
        (['--algorithm=adam'], "algorithm 'adam'; did you mean fedadam"),
        (['--algorithm=xyz'], "unknown algorithm 'xyz'; one of fedadagrad"),
        (
            ['--tau=0.1'],
            'fedavg has no hyperparameter tau; it belongs to fedadagrad, fedad',
        ),
        (
            ['--algorithm=fedprox', '--server_momentum=0.5'],
            'no hyperparameter server_momentum; it belongs to fedavgm$',
        ),
        (['--client_learning_rate=nan'], 'nan; expected a finite number'),
        (['--algorithm=fedadam', '--tau=x'], "--tau: 'x'; expected a number"),
        (['--algorithm=fedadam', '--tau=0'], 'tau: 0.* expected above 0'),
        (['--client_momentum=0.9'], 'client_momentum is not used by .*=sgd'),
        (['--rounds=0'], "--rounds: '0'; expected a whole number, 1 or"),
        (['--checkpoint_every=0'], "--checkpoint_every: '0'; expected a"),
        (['--task_option=noise'], '--task_option=noise; expected NAME=VALUE'),
        (['--task_option=nose=1'], "unknown option 'nose' of toy; one of no"),
        (['toy'], "unexpected argument 'toy'"),
        (['--flagfile=/nowhere'], "'/nowhere'; expected a file with one"),
        (['--cohorts=some'], "'some'; expected one of fixed, bernoulli"),
        (['--resume', '--overwrite'], 'expected one of them'),
        (['--participation=some'], "'some'; expected equal, examples, or JSON"),
        (['--participation={"c0": -1}'], "weight of 'c0' is -1; expected a"),
        (['--participation={"c9": 2}'], "no client 'c9'; there are 4, the fir"),
        (['--participation=examples'], 'do not say how many examples clients'),
        (['--cohort_size=5'], 'cohort_size: 5; toy has 4 clients'),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    tmp_path, capsys, arguments, message
):
  assert _train(*arguments, f'--run_dir={tmp_path}') == 2
  out, err = capsys.readouterr()
  assert out == '' and err.startswith('train: ') and err.count('\n') == 1
  assert not list(tmp_path.iterdir())
  pytest.raises(ValueError, _raise, err).match(message)


def test_a_cache_that_is_a_file_is_wrong_usage(tmp_path, capsys, monkeypatch):
  path = tmp_path / 'afile'
  path.write_text('')
  monkeypatch.setenv('TFF_FEDOPT_CACHE', str(path))
  assert _train(f'--run_dir={tmp_path / "run"}') == 2
  error = capsys.readouterr().err
  assert f'{path} cannot keep the files' in error and error.count('\n') == 1
  assert not (tmp_path / 'run').exists()


def _raise(text):
  raise ValueError(text)


def test_help_names_every_hyperparameter_and_its_users(capsys):
  assert train.main(['--help']) == 0
  lines = capsys.readouterr().out.splitlines()
  for name in algorithms.names():
    taken = dataclasses.fields(algorithms.hyperparameters(name))
    # state_dir is part of the run directory.
    for field in {f.name for f in taken} - {'state_dir'}:
      assert any(
          line.startswith((f'  --{field}: ', f'  --[no]{field}: '))
          for line in lines
      ), field
  (mu,) = [line for line in lines if line.startswith('  --mu: ')]
  assert mu.endswith('(default: 0.01); fedprox only')


_MAIN = """
import sys
from tff_fedopt.commands import command_line
from tff_fedopt.commands import train
from tff_fedopt.testing import toy
toy.install()
command_line.end_with(train.main, sys.argv[1:])
"""


def test_ctrl_c_ends_with_one_line_and_code_130(
    tmp_path, capsys, monkeypatch
):
  def interrupt(_):
    raise KeyboardInterrupt

  monkeypatch.setattr(toy.Task, 'validation', interrupt)
  assert _train('--evaluate_every=2', f'--run_dir={tmp_path}') == 130
  assert capsys.readouterr().err == 'train: interrupted; --resume goes on\n'
  assert (tmp_path / 'checkpoints' / 'round_00000001.ckpt').exists()


def test_sigterm_saves_and_ends(tmp_path, processes):
  with processes.start(
      ['-c', _MAIN, '--task=toy', '--rounds=100000']
      + ['--evaluate_every=100000', f'--run_dir={tmp_path}'],
      cwd=_ROOT,
      env={**os.environ, 'PYTHONPATH': str(_ROOT)},
      stderr=subprocess.PIPE,
      text=True,
      seconds=240,
      warm=True,
      # Whatever it inherits.
      ignored=[signal.SIGINT, signal.SIGTERM],
      blocked=[signal.SIGTERM, signal.SIGHUP],
  ) as process:
    end = time.monotonic() + 120
    while not list(tmp_path.glob('checkpoints/*.ckpt')):
      assert time.monotonic() < end and process.poll() is None
      time.sleep(0.1)
    process.terminate()
    # It has 100000 rounds to go.
    assert process.wait(120) == 143
    lines = process.stderr.read().splitlines()
  assert lines[-1] == 'train: interrupted; --resume goes on'
  assert 'Traceback (most recent call last):' not in lines
  last = (tmp_path / 'metrics.csv').read_text().splitlines()[-1]
  newest = max(p.name for p in (tmp_path / 'checkpoints').iterdir())
  assert int(newest[6:14]) == int(last.split(',')[0])
