"""Tests of whole runs: records, resuming to the bit, every way to end."""

import dataclasses
import fcntl
import functools
import io
import json
import os
import pathlib
import re
import signal
import sys

import numpy as np
import pytest

from tff_fedopt import runtime
from tff_fedopt.experiment import checkpoint
from tff_fedopt.experiment import evaluation
from tff_fedopt.experiment import program
from tff_fedopt.experiment import rounds
from tff_fedopt.experiment import run_dir
from tff_fedopt.experiment import runner
from tff_fedopt.experiment import sampling
from tff_fedopt.experiment import spec as spec_lib
from tff_fedopt.testing import toy

_OPTIONS = runner.RunOptions(checkpoint_every=3)

# A run that ends itself, like a power cut, while round 5 is evaluated.
_KILLED = """
import os, signal, sys
from tff_fedopt.experiment import runner
from tff_fedopt.experiment import spec
from tff_fedopt.testing import toy

toy.install()
validation, calls = toy.Task.validation, []

def kill_in_round_5(task):
  calls.append(1)
  if len(calls) == 5:
    os.kill(os.getpid(), signal.SIGKILL)
  return validation(task)

toy.Task.validation = kill_in_round_5
runner.run_experiment(
    spec.RunSpec('toy', 'fedadam', {'tau': 0.01, 'server_learning_rate': 0.1}),
    sys.argv[1],
    options=runner.RunOptions(checkpoint_every=3),
)
"""


@pytest.fixture(autouse=True)
def _toy_task(monkeypatch):
  toy.install(monkeypatch.setattr)


@pytest.fixture(scope='module', name='programs')
def _programs():
  """Shared by all tests: one process is traced for all runs of FedAdam."""
  return program.Programs()


def _spec(tau=0.01, **changes):
  given = {'tau': tau, 'server_learning_rate': 0.1}
  return spec_lib.RunSpec('toy', 'fedadam', given, **changes)


@pytest.fixture(scope='module', name='reference')
def _reference(tmp_path_factory, programs):
  """The directory of an uninterrupted run."""
  with pytest.MonkeyPatch.context() as patch:
    toy.install(patch.setattr)
    directory = tmp_path_factory.mktemp('runs') / 'reference'
    result = runner.run_experiment(
        _spec(), directory, options=_OPTIONS, programs=programs
    )
  assert result.status == 'done' and not result.reused
  return directory


def _at_validation(monkeypatch, round_num, act):
  """Acts once, when round `round_num` (of this process) is evaluated."""
  original = toy.Task.validation
  calls = []

  def validation(task):
    calls.append(1)
    if len(calls) == round_num:
      act()
    return original(task)

  monkeypatch.setattr(toy.Task, 'validation', validation)


def _final_state(directory):
  path = directory / 'checkpoints' / 'round_00000006.ckpt'
  _, leaves = checkpoint._read(path)
  return leaves


def _assert_same_run(directory, reference):
  metrics = (directory / 'metrics.csv').read_bytes()
  assert metrics == (reference / 'metrics.csv').read_bytes()
  ours, theirs = _final_state(directory), _final_state(reference)
  assert ours.keys() == theirs.keys()
  for name in theirs:
    np.testing.assert_array_equal(ours[name], theirs[name], name)


def test_makes_no_batch_that_local_steps_leave_out(monkeypatch, tmp_path):
  asked = []
  limited = toy.Clients.limited

  def run(name, steps):
    spec = spec_lib.RunSpec('toy', 'fedavg', {'local_steps': steps})
    runner.run_experiment(spec, tmp_path / name, options=_OPTIONS)
    return (tmp_path / name / 'metrics.csv').read_text()

  monkeypatch.setattr(
      toy.Clients, 'limited', lambda c, n: asked.append(n) or limited(c, n)
  )
  few = run('few', '1')
  assert asked == [1]
  every = run('every', 'all')
  assert asked == [1]
  # Steps are taken on the same batches whether or not there are more.
  monkeypatch.setattr(toy.Clients, 'limited', lambda c, n: c)
  assert run('uncut', '1') == few != every


def test_directory_of_a_finished_run(reference, programs):
  lines = (reference / 'metrics.csv').read_text().splitlines()
  assert lines[0] == (
      'round,train/loss,non_finite_clients [clients],local_steps [steps],'
      'finalizer/update_non_finite,validation/loss,test/loss,diverged'
  )
  assert [line.split(',')[0] for line in lines[1:]] == list('123456')
  assert [bool(line.split(',')[6]) for line in lines[1:]] == [False] * 5 + [
      True
  ]
  timing = (reference / 'timing.csv').read_text().splitlines()
  assert timing[0] == 'round,round_time [s],evaluation_time [s]'
  assert len(timing) == 7
  config = json.loads((reference / 'config.json').read_text())
  assert spec_lib.RunSpec.from_json(config['spec']) == _spec()
  assert config['fingerprint'] == _spec().fingerprint()
  origin = json.loads((reference / 'provenance.json').read_text())
  assert origin['status'] == 'done' and origin['rounds'] == 6
  assert origin['tff'] == '0.87.0' and origin['data_kind'] == 'synthetic'
  assert origin['cores'] == len(os.sched_getaffinity(0))
  assert origin['task'] == {'clients': 4, 'batch': 2}
  assert origin['fingerprint'] == _spec().fingerprint()
  assert 0 < origin['wall_seconds'] < 100
  # Two weights each way, four bytes each.
  assert (origin['bytes_down'], origin['bytes_up']) == (8, 8)
  assert origin['bytes_total'] == 16
  assert len(list((reference / 'checkpoints').iterdir())) == 1
  assert list((reference / 'tensorboard').iterdir())
  # The last row is what the last checkpoint's weights give.
  weights = _final_state(reference)
  (w,) = [v for k, v in weights.items() if k.endswith('trainable/0')]
  test = toy.arrays(101, 5)
  loss = 0.5 * np.mean((test['x'] @ w - test['y']) ** 2)
  frame = runner.run_experiment(_spec(), reference).frame
  assert frame['test/loss'].iloc[-1] == pytest.approx(loss, rel=1e-5)
  assert frame['validation/loss'].iloc[-1] < frame['validation/loss'].iloc[0]


def test_kill_9_and_resume_is_the_uninterrupted_run(
    tmp_path, reference, programs, processes
):
  directory = tmp_path / 'killed'
  root = pathlib.Path(runner.__file__).parents[2]
  child = processes.run(
      ['-c', _KILLED, directory],
      seconds=200,
      warm=True,
      cwd=root,
      env={**os.environ, 'PYTHONPATH': str(root)},
  )
  assert child.returncode == -signal.SIGKILL
  assert (directory / 'metrics.csv').read_text().count('\n') == 5
  assert [p.name for p in (directory / 'checkpoints').iterdir()] == [
      'round_00000003.ckpt'
  ]
  with pytest.raises(run_dir.RunDirError, match='unfinished; resume it'):
    runner.run_experiment(_spec(), directory)
  result = runner.run_experiment(
      _spec(), directory, resume=True, options=_OPTIONS, programs=programs
  )
  assert result.status == 'done'
  _assert_same_run(directory, reference)


@pytest.mark.parametrize('error', [KeyboardInterrupt, SystemExit])
def test_interrupt_keeps_the_last_completed_round(
    tmp_path, reference, programs, monkeypatch, error
):
  def interrupt():
    raise error

  _at_validation(monkeypatch, 5, interrupt)
  run = functools.partial(
      runner.run_experiment,
      _spec(),
      tmp_path,
      options=_OPTIONS,
      programs=programs,
  )
  with pytest.raises(error):
    run()
  assert sorted(p.name for p in (tmp_path / 'checkpoints').iterdir()) == [
      'round_00000003.ckpt', 'round_00000004.ckpt'
  ]
  run(resume=True)
  _assert_same_run(tmp_path, reference)


@pytest.fixture
def reference_of_worker(tmp_path_factory, programs, worker):
  """As `reference`, on the other engine, which stays in use for the test."""
  del worker
  path = tmp_path_factory.mktemp('reference_of_worker')
  runner.run_experiment(_spec(), path, options=_OPTIONS, programs=programs)
  return path


def test_another_engine_goes_on_only_if_asked(
    reference_of_worker, programs
):
  runtime.use('local')
  run = functools.partial(
      runner.run_experiment, _spec(), reference_of_worker, programs=programs
  )
  with pytest.raises(
      run_dir.RunDirError,
      match='engine worker, here it is local;.*--any_engine',
  ):
    run(resume=True)
  assert run(options=runner.RunOptions(any_engine=True)).reused


def test_retry_after_a_dead_worker(
    tmp_path, reference_of_worker, programs, monkeypatch, capsys
):
  _at_validation(
      monkeypatch, 2, lambda: toy.kill_worker_in_next_call(monkeypatch)
  )
  runner.run_experiment(
      _spec(), tmp_path, retries=1, options=_OPTIONS, programs=programs
  )
  _assert_same_run(tmp_path, reference_of_worker)
  assert capsys.readouterr().err.startswith('round 3: ')


def test_without_retries_a_dead_worker_ends_the_run(
    tmp_path, reference_of_worker, programs, monkeypatch
):
  _at_validation(
      monkeypatch, 2, lambda: toy.kill_worker_in_next_call(monkeypatch)
  )
  run = functools.partial(
      runner.run_experiment, _spec(), tmp_path, programs=programs
  )
  with pytest.raises(runtime.WorkerDied, match='^round 3: '):
    run()
  run(resume=True)
  _assert_same_run(tmp_path, reference_of_worker)


def test_evaluation_is_due_every_few_rounds_and_last(tmp_path, programs):
  spec = _spec(evaluate_every=4, rounds=5)
  frame = runner.run_experiment(
      spec,
      tmp_path,
      options=dataclasses.replace(_OPTIONS, test=False, tensorboard=False),
      programs=programs,
  ).frame
  evaluated = frame['round'][frame['validation/loss'].notna()]
  assert evaluated.tolist() == [4, 5]
  assert frame['test/loss'].isna().all()
  assert not (tmp_path / 'tensorboard').exists()


class _Terminal(io.StringIO):

  def isatty(self):
    return True


@pytest.mark.parametrize('make', [_Terminal, io.StringIO])
def test_progress_bar_on_a_terminal_only(tmp_path, programs, monkeypatch, make):
  monkeypatch.setattr(sys, 'stderr', make())
  options = runner.RunOptions(label='[3/35] toy fedadam')
  runner.run_experiment(
      _spec(), tmp_path, options=options, programs=programs
  )
  text = sys.stderr.getvalue()
  if make is _Terminal:
    assert re.search(
        r'\[3/35\] toy fedadam \d/6 \|.*\| +[\d.]+ rounds/s, 00:0\d left,'
        r' loss \d',
        text,
    ), text
  else:
    assert text == ''


def test_divergence_ends_the_run(tmp_path, programs):
  spec = spec_lib.RunSpec('toy', 'fedadam', {'client_learning_rate': 1e30})
  result = runner.run_experiment(spec, tmp_path, programs=programs)
  assert result.status == 'diverged'
  assert result.frame['diverged'].tolist()[-1] == 1
  assert len(result.frame) < 6
  assert np.isnan(result.frame['validation/loss'].iloc[-1])
  # It is finished: nothing is run again.
  again = runner.run_experiment(spec, tmp_path, resume=True)
  assert again.reused and again.status == 'diverged'


def test_one_traced_process_for_numbers_that_the_state_holds(
    tmp_path, reference, programs
):
  """The third run repeats the first one's numbers after another one's."""
  traces = programs.traces
  for name, tau in (('a', 0.1), ('b', 0.01)):
    runner.run_experiment(_spec(tau), tmp_path / name, programs=programs)
  assert programs.traces == traces
  _assert_same_run(tmp_path / 'b', reference)
  a = (tmp_path / 'a' / 'metrics.csv').read_bytes()
  assert a != (reference / 'metrics.csv').read_bytes()


def test_directories_that_are_refused(tmp_path, reference):
  with pytest.raises(
      run_dir.RunDirError,
      match='holds another run: stored with rounds 6, now 7;',
  ):
    runner.run_experiment(_spec(rounds=7), reference, resume=True)
  (tmp_path / 'thesis.txt').write_text('')
  with pytest.raises(run_dir.RunDirError, match='not empty and holds no run'):
    runner.run_experiment(_spec(), tmp_path)
  with pytest.raises(run_dir.RunDirError, match='cannot be a run directory'):
    runner.run_experiment(_spec(), tmp_path / 'thesis.txt' / 'run')
  with run_dir.RunDir(reference).locked():
    with pytest.raises(run_dir.RunDirError, match='in use by another process'):
      runner.run_experiment(_spec(), reference)
    # Nor does a new sweep delete the run of another.
    with pytest.raises(run_dir.RunDirError, match='in use by another process'):
      run_dir.RunDir(reference).clear()
  assert (reference / 'metrics.csv').exists()


def test_damaged_checkpoint_is_never_a_fresh_start(
    tmp_path, programs, monkeypatch
):
  def interrupt():
    raise KeyboardInterrupt

  _at_validation(monkeypatch, 2, interrupt)
  run = functools.partial(
      runner.run_experiment, _spec(), tmp_path, programs=programs
  )
  with pytest.raises(KeyboardInterrupt):
    run()
  path = tmp_path / 'checkpoints' / 'round_00000001.ckpt'
  path.write_bytes(path.read_bytes()[:-1])
  rows = (tmp_path / 'metrics.csv').read_bytes()
  with pytest.raises(checkpoint.CheckpointError, match='000001.ckpt is damag'):
    run(resume=True)
  assert (tmp_path / 'metrics.csv').read_bytes() == rows


def test_more_clients_than_there_are(tmp_path, programs):
  with pytest.raises(ValueError, match='cohort_size: 5; toy has 4 clients'):
    runner.run_experiment(
        _spec(cohort_size=5), tmp_path, programs=programs
    )
  assert not list(tmp_path.iterdir())
  # Nor is anything left of a directory that was not there.
  with pytest.raises(ValueError, match='cohort_size: 5; toy has 4 clients'):
    runner.run_experiment(
        _spec(cohort_size=5), tmp_path / 'a' / 'b', programs=programs
    )
  assert not list(tmp_path.iterdir())


def test_a_lock_that_its_holder_deletes_admits_nobody(tmp_path, monkeypatch):
  """Another process opened the file before, and gets the lock after."""
  flock = fcntl.flock

  def late(lock, operation):
    (tmp_path / '.lock').unlink()
    flock(lock, operation)

  monkeypatch.setattr(fcntl, 'flock', late)
  with pytest.raises(run_dir.RunDirError, match='in use by another process'):
    with run_dir.RunDir(tmp_path).locked():
      pass


def test_cohorts_by_chance(tmp_path, programs, monkeypatch):
  sizes, run = [], rounds.run

  def watched(process, clients, cohorts, **kwargs):
    sizes.extend(map(len, cohorts))
    return run(process, clients, cohorts, **kwargs)

  monkeypatch.setattr(rounds, 'run', watched)
  spec = _spec(cohorts='bernoulli', cohort_size=2, rounds=4)
  runner.run_experiment(spec, tmp_path, options=_OPTIONS, programs=programs)
  assert sizes == [
      len(sampling.cohort(4, 2, spec.seed, t, 'bernoulli'))
      for t in (1, 2, 3, 4)
  ]
  assert len(set(sizes)) > 1


def test_settings_that_are_refused():
  with pytest.raises(ValueError, match='checkpoint_every: 0'):
    runner.RunOptions(checkpoint_every=0)


def test_runs_of_any_seed_and_method_are_validated_on_one_sample(
    tmp_path, monkeypatch, programs
):
  seen = []
  evaluate = evaluation.Evaluator.__call__

  def record(self, weights, dataset):
    seen.append(np.concatenate([batch['x'].numpy() for batch in dataset]))
    return evaluate(self, weights, dataset)

  monkeypatch.setattr(evaluation.Evaluator, '__call__', record)
  spec = _spec(rounds=1, validation_examples=4)
  for k, changes in enumerate((
      {},
      {'seed': 5, 'algorithm': 'fedavg', 'hyperparameters': {}},
      {'validation_seed': 1},
  )):
    runner.run_experiment(
        dataclasses.replace(spec, **changes),
        tmp_path / str(k),
        options=runner.RunOptions(test=False),
        programs=programs,
    )
  assert [len(rows) for rows in seen] == [4, 4, 4]
  np.testing.assert_array_equal(seen[0], seen[1])
  assert not np.array_equal(seen[0], seen[2])
