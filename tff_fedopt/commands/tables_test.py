"""The command line of the tables: what it refuses, and how."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tff_fedopt import papers
from tff_fedopt.commands import tables as command
from tff_fedopt.experiment import jobs
from tff_fedopt.experiment import run_dir as run_dir_lib
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import session


@pytest.mark.parametrize(
    'arguments,message',
    [
        (['afo_man'], "unknown table 'afo_man'; did you mean afo_main"),
        (['zzz'], 'there are: afo_main'),
        (['--profile=big'], "'big'; expected one of quick, small, paper"),
        (['--rows=MNIST'], "unknown row 'MNIST'; one of CIFAR-10"),
        (['--columns=Sgd'], "unknown column 'Sgd'; one of FedAdagrad"),
        (['--paper=XYZ'], "no table of 'XYZ'; it has tables of afo"),
        (['--data_dir=/does/not/exist'], 'there is no folder /does/not/exist'),
        (['--jobs=0'], "--jobs: '0'; expected a whole number, 1 or"),
        (['--rounds=x'], "--rounds: 'x'; expected a whole number"),
        (['--full'], '--full belongs to --check'),
        (['--check', '--rounds=2'], '--check goes without'),
        (['--check', '--restamp'], 'expected one of them'),
        (['--restamp', '--seeds=2'], '--restamp goes without'),
        (['--store_reference', '--rounds=2'], 'goes without --rounds'),
        (['la_toy', '--rounds=2'], '--rounds: nothing that was chosen is trai'),
        (
            ['vra_table1', '--rounds=2', '--rows=kept'],
            '--rounds: nothing that was chosen is trained',
        ),
        (['--prof=quick'], 'unknown flag --prof'),
        (['--rows='], "--rows: ''; expected labels, separated"),
        (['--seeds=0,x'], "--seeds: '0,x'; expected whole numbers"),
        (['--out_dir=/dev/null'], '/dev/null is not a folder'),
        (['--out_dir=/dev/null/x'], '/dev/null is not a folder'),
        (
            ['la_table3', '--rows=Communication', '--columns=FedAvg'],
            'la_table3 has no cell in row Communication and column FedAvg',
        ),
        (['afo_tau', '--check', '--profile=paper'], 'no stored reference'),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(arguments, message, capsys):
  assert command.main(arguments) == 2
  error = capsys.readouterr().err
  assert message in error
  assert error.count('\n') == 1


def test_missing_data_is_one_line_and_exit_2(tmp_path, capsys):
  arguments = ['--profile=small', f'--data_dir={tmp_path}', '--rows=SO LR']
  assert command.main([*arguments, f'--out_dir={tmp_path / "out"}']) == 2
  error = capsys.readouterr().err
  assert str(tmp_path) in error and 'no such file' in error
  assert error.count('\n') == 1
  assert not (tmp_path / 'out').exists()


def test_a_folder_that_is_in_use_is_refused_at_once(tmp_path, capsys):
  arguments = ['la_toy', f'--out_dir={tmp_path}']
  with run_dir_lib.RunDir(tmp_path / 'runs').locked():
    assert command.main(arguments) == 2
  error = capsys.readouterr().err
  assert 'is in use by another process; wait for it or choose another' in error
  assert error.count('\n') == 1
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    'interruption, code', [(KeyboardInterrupt(), 130), (SystemExit(143), 143)]
)
def test_an_interrupted_command_says_how_to_go_on(
    tmp_path, capsys, monkeypatch, interruption, code
):
  def interrupt(*_, **__):
    raise interruption

  monkeypatch.setattr(session, 'make', interrupt)
  assert command.main(['la_toy', f'--out_dir={tmp_path}']) == code
  assert capsys.readouterr().err == 'tables: interrupted; --resume goes on\n'


# A process of the table in which every run ends at once.
_JOB = """
import re
import pandas as pd
from tff_fedopt.experiment import cells
from tff_fedopt.experiment import jobs
from tff_fedopt.experiment import run_dir as run_dir_lib
from tff_fedopt.experiment import run_dir

def run(self, spec, label):
  known = r'\\[\\d/4\\] SO LR, Fed\\w+, client rate .*'
  assert re.fullmatch(known, label), label
  log = {'round': [1], 'validation/recall_at_5': [0.5]}
  folder = run_dir.RunDir(cells.cell_dir(spec, self._out_dir))
  folder.path.mkdir(parents=True)
  pd.DataFrame(log).to_csv(folder.metrics, index=False)
  folder.write_provenance({'status': 'done'})
  return {'status': 'done', 'reused': False}

cells.Cells.__init__ = lambda self, out_dir, *_: setattr(
    self, '_out_dir', out_dir
)
cells.Cells.run = run
jobs.main()
"""


def test_finished_runs_are_said_in_the_words_of_the_table(
    tmp_path, capsys, monkeypatch
):
  monkeypatch.setattr(jobs, '_COMMAND', (sys.executable, '-c', _JOB))
  command.main([
      'afo_main', '--rows=SO LR', '--columns=FedAdam,FedAvg', '--jobs=1',
      '--seeds=0,1', f'--out_dir={tmp_path}',
  ])
  lines = [
      line for line in capsys.readouterr().err.splitlines()
      if line.startswith('[')
  ]
  assert len(lines) == 4
  assert all(re.fullmatch(
      r'\[\d/4\] SO LR, Fed(Adam|Avg), client rate [\d.]+, server rate [\d.]+,'
      r' seed [01]: Recall@5 50 %(, [\d:]+ left)?', line
  ) for line in lines), lines
  assert [line.endswith(' left') for line in lines] == [True] * 3 + [False]


def test_labels_may_hold_commas():
  table = papers.get('la_cifar100')
  wanted = 'server Adam + client AdaGrad, local correction'
  columns = (*wanted.split(', '), 'server-only Adam')
  planned = plan_lib.plan(table, plan_lib.Options('quick', columns=columns))
  assert {p.cell.column for p in planned} == {wanted, 'server-only Adam'}


@pytest.mark.parametrize('ignored', [(), (signal.SIGPIPE,)])
def test_nobody_reads_on(processes, ignored):
  process = processes.start(
      [sys.executable, '-m', 'tff_fedopt.tables', '--list'],
      seconds=60,
      ignored=ignored,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      env={**os.environ, 'PYTHONUNBUFFERED': '1'},
  )
  process.stdout.close()
  assert process.stderr.read() == ''
  assert process.wait() == 141


@pytest.mark.parametrize('closed', ['<&-', '>&-', '2>&-', '<&- >&- 2>&-'])
def test_standard_files_may_be_closed(processes, closed):
  program = f'"{sys.executable}" -m tff_fedopt.tables --list {closed}; echo $?'
  result = processes.run(['bash', '-c', program], seconds=60)
  assert result.stdout.splitlines()[-1] == '0'
  assert ('afo_main' in result.stdout) == ('>&-' not in closed.split())
  assert result.stderr == ''


def test_list_names_every_table(capsys):
  assert command.main(['--list']) == 0
  text = capsys.readouterr().out
  for name in papers.names():
    assert name in text and papers.get(name).shows in text


def test_settings_are_printed_without_data_or_runs(capsys, tmp_path):
  arguments = ['--settings', 'afo_main', '--rows=SO LR', '--profile=paper']
  assert command.main([*arguments, f'--data_dir={tmp_path}']) == 0
  text = capsys.readouterr().out
  assert text.startswith('afo_main: Seven tasks')
  assert text.count('  client_learning_rate = ') == 6
  assert '  server_learning_rate = 10  [code: google-research/fed' in text
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    'argument',
    ['--list', '--help', 'no_such_table', '--settings la_table1 init_table9'],
)
def test_no_tensorflow_for_what_needs_none(argument, processes):
  program = (
      'import runpy, sys\n'
      f'sys.argv = ["tables", *{argument.split()!r}]\n'
      'try:\n'
      '  runpy.run_module("tff_fedopt.tables", run_name="__main__")\n'
      'except SystemExit:\n'
      '  pass\n'
      'assert "tensorflow" not in sys.modules\n'
      'assert "matplotlib" not in sys.modules\n'
  )
  result = processes.run([sys.executable, '-c', program], seconds=60)
  assert result.returncode == 0, result.stderr
