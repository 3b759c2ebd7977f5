"""Tests of sweeps."""

import os
import pathlib
import subprocess
import sys

import pytest

from tff_fedopt.experiment import jobs
from tff_fedopt.experiment import program
from tff_fedopt.experiment import spec as spec_lib
from tff_fedopt.experiment import sweep
from tff_fedopt.testing import pids
from tff_fedopt.testing import toy

_ROOT = pathlib.Path(sweep.__file__).resolve().parents[2]
_OPTIONS = spec_lib.RunOptions(
    keep_last=False, test=False, tensorboard=False, checkpoint_every=1
)
_TOY_JOB = (
    sys.executable,
    '-c',
    'from tff_fedopt.experiment import jobs\n'
    'from tff_fedopt.testing import toy\n'
    'toy.install()\n'
    'jobs.main()',
)


@pytest.fixture(autouse=True)
def _toy_task(monkeypatch):
  toy.install(monkeypatch.setattr)
  monkeypatch.setattr(jobs, '_COMMAND', _TOY_JOB)


def _spec(rate=0.1, **changes):
  changes = {'rounds': 2, **changes}
  return spec_lib.RunSpec(
      'toy', 'fedavg', {'client_learning_rate': rate}, **changes
  )


def test_grid_is_traced_once_and_one_bad_cell_stops_no_other(
    tmp_path, monkeypatch
):
  made = []

  class Programs(program.Programs):

    def __init__(self):
      super().__init__()
      made.append(self)

  monkeypatch.setattr(program, 'Programs', Programs)
  bad = _spec(cohort_size=5)  # There are four clients.
  specs = [_spec(0.1), _spec(1e38), bad, _spec(0.2, seed=1), _spec(0.3)]
  seen = []
  results = sweep.run_all(
      specs,
      tmp_path,
      options=_OPTIONS,
      on_result=lambda r: seen.append(r.spec),
  )
  assert [r.spec for r in results] == specs
  assert [r.status for r in results] == [
      'done', 'diverged', 'failed', 'done', 'done'
  ]
  assert sorted(map(hash, seen)) == sorted(map(hash, specs))
  # The seed is part of the task, so it costs the second trace.
  assert made[0].traces == 2
  assert results[2].error == 'cohort_size: 5; toy has 4 clients'
  assert list(results[2].frame.columns) == ['round']
  log = pathlib.Path(f'{results[2].run_dir}.error.log')
  assert 'Traceback' in log.read_text()
  frames = [r.frame for r in results if len(r.frame)]
  losses = [frame['validation/loss'].iloc[-1] for frame in frames]
  assert len(set(losses)) == 4
  assert not list(tmp_path.glob('*/checkpoints/*'))

  # Again: what is finished is reused, what failed is tried again.
  again = sweep.run_all(specs, tmp_path, resume=True, options=_OPTIONS)
  assert [r.reused for r in again] == [True, True, False, True, True]
  assert [r.status for r in again] == [r.status for r in results]
  # Without resume, a run is run anew.
  before = os.stat(results[0].run_dir / 'metrics.csv').st_mtime_ns
  (anew,) = sweep.run_all([specs[0]], tmp_path, options=_OPTIONS)
  assert not anew.reused
  assert os.stat(anew.run_dir / 'metrics.csv').st_mtime_ns > before


def test_processes_give_the_same_numbers(tmp_path):
  rates = (0.1, 0.2, 1e38, 0.3)
  specs = [*map(_spec, rates), _spec(cohort_size=5)]
  alone = sweep.run_all(specs, tmp_path / '1', options=_OPTIONS)
  two = sweep.run_all(specs, tmp_path / '2', jobs=2, options=_OPTIONS)
  for a, b in zip(alone, two, strict=True):
    assert (a.spec, a.status, a.error) == (b.spec, b.status, b.error)
    if a.status != 'failed':
      name = 'metrics.csv'
      assert (a.run_dir / name).read_bytes() == (b.run_dir / name).read_bytes()
  assert {p.name for p in (tmp_path / '2').glob('*.log')} == {
      'job_0.log', 'job_1.log', f'{two[4].run_dir.name}.error.log'
  }


_JOB_THAT_DIES = """
import json, os, sys
for line in sys.stdin:
  for spec, _ in json.loads(line)['runs']:
    if spec['hyperparameters']['client_learning_rate'] == 1:
      os.kill(os.getpid(), 9)
    print('{"status": "failed", "error": "as planned"}', flush=True)
"""


def test_a_process_that_dies_costs_one_run(tmp_path, monkeypatch):
  monkeypatch.setattr(jobs, '_COMMAND', (sys.executable, '-c', _JOB_THAT_DIES))
  specs = [_spec(rate) for rate in range(1, 19)]
  assert len(sweep._pieces(specs, jobs=2)[0]) == 3  # Others are in its piece.
  results = sweep.run_all(specs, tmp_path, jobs=2)
  assert results[0].error.startswith('its process ended with signal 9; see ')
  assert {r.error for r in results[1:]} == {'as planned'}


def test_a_process_that_cannot_start_fails_its_runs(tmp_path, monkeypatch):
  monkeypatch.setattr(jobs, '_COMMAND', ('/nowhere/python',))
  results = sweep.run_all([_spec(seed=s) for s in range(2)], tmp_path, jobs=2)
  assert all('could not be started' in r.error for r in results)


def test_a_large_group_is_shared_and_the_longest_comes_first():
  grid = [_spec(r / 10) for r in range(1, 7)]
  long = _spec(seed=1, rounds=9)
  pieces = sweep._pieces([*grid, long], jobs=2)
  assert pieces[0] == [long]
  assert sorted(len(p) for p in pieces) == [1, 1, 1, 1, 1, 1, 1]
  yogi = spec_lib.RunSpec('toy', 'fedyogi', rounds=2)
  pieces = sweep._pieces([*grid, long, yogi], jobs=1)
  assert pieces == [grid, [yogi], [long]]


_SWEEP = """
import sys
from tff_fedopt.experiment import jobs, spec, sweep
from tff_fedopt.testing import toy
toy.install()
jobs._COMMAND = {command!r}
specs = [
    spec.RunSpec('toy', 'fedavg', rounds=100000, seed=s, evaluate_every=100000)
    for s in range(2)
]
sweep.run_all(specs, sys.argv[1], jobs=2)
"""


def test_no_process_outlives_a_killed_sweep(tmp_path, processes):
  parent = processes.start(
      ['-c', _SWEEP.format(command=_TOY_JOB), tmp_path],
      seconds=240,
      warm=True,
      cwd=_ROOT,
      env={**os.environ, 'PYTHONPATH': str(_ROOT)},
      stderr=subprocess.DEVNULL,
  )
  runs = lambda: {p.parent for p in tmp_path.glob('*/checkpoints/*.ckpt')}
  pids.wait_for(lambda: len(runs()) == 2, 200, 'both runs')
  children = pids.below(parent.pid)
  assert len(children) >= 2  # Each with its engine inside.
  parent.kill()
  parent.wait()
  pids.wait_until_gone(children, 15)
  # Each run saved its last completed round on the way out.
  for rows in tmp_path.glob('*/metrics.csv'):
    last = rows.read_text().splitlines()[-1].split(',')[0]
    checkpoints = sorted(rows.parent.glob('checkpoints/*.ckpt'))
    assert int(checkpoints[-1].stem[-8:]) == int(last)


_JOB_THAT_HANGS = """
import os, sys, time
sys.stdin.readline()
if os.path.exists('first'):
  time.sleep(1000)
open('first', 'w')
print('{"status": "failed", "error": "as planned"}', flush=True)
sys.stdin.read()
"""


def test_an_interrupt_ends_the_processes_of_a_sweep(
    tmp_path, monkeypatch, processes
):
  processes.mark(monkeypatch)
  monkeypatch.chdir(tmp_path)
  command = (sys.executable, '-c', _JOB_THAT_HANGS)
  monkeypatch.setattr(jobs, '_COMMAND', command)
  monkeypatch.setattr(jobs, '_GRACE_SECONDS', 0.5)
  children = []

  def interrupt(_):
    pids.wait_for(lambda: len(processes.running()) == 2, 10, 'two jobs')
    children.extend(processes.running())
    raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    sweep.run_all(
        [_spec(seed=s) for s in range(9)],
        tmp_path / 'runs',
        jobs=2,
        on_result=interrupt,
    )
  assert len(children) == 2 and processes.running() == []


def test_impossible_jobs():
  with pytest.raises(ValueError, match='jobs: 0'):
    sweep.run_all([], 'x', jobs=0)
