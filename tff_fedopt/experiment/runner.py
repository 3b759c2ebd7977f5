"""Runs one spec in one directory; resumable to the bit."""

import contextlib
import dataclasses
import os
import shutil
import time
import typing
from typing import Protocol

import tensorflow_federated as tff

from tff_fedopt import runtime
from tff_fedopt.experiment import checkpoint as checkpoint_lib
from tff_fedopt.experiment import failures
from tff_fedopt.experiment import program as program_lib
from tff_fedopt.experiment import progress
from tff_fedopt.experiment import provenance
from tff_fedopt.experiment import round_log
from tff_fedopt.experiment import rounds
from tff_fedopt.experiment import run_dir as run_dir_lib
from tff_fedopt.experiment import sampling
from tff_fedopt.experiment import spec as spec_lib
from tff_fedopt.processes import client_state

RunResult = run_dir_lib.RunResult
RunOptions = spec_lib.RunOptions


@typing.runtime_checkable
class LimitedClients(Protocol):
  """Client data that need not make batches which nobody uses."""

  def limited(self, max_batches: int) -> tff.simulation.datasets.ClientData:
    """The same clients with the first batches of each round alone."""


def run_experiment(
    spec: spec_lib.RunSpec,
    run_dir: str | os.PathLike,
    *,
    resume: bool = False,
    retries: int = 0,
    options: RunOptions = RunOptions(),
    programs: program_lib.Programs | None = None,
) -> RunResult:
  """Trains and evaluates as a spec says, and records everything.

  The directory gets config.json, provenance.json, metrics.csv, timing.csv,
  checkpoints/ and tensorboard/. After an interruption of any kind, resuming
  ends with the weights and the metrics.csv of an uninterrupted run, to the bit.
  A directory that holds this run, finished, is not run again.

  Args:
    spec: The run.
    run_dir: Its directory.
    resume: Whether to continue an unfinished run in the directory.
    retries: How often to go on, after a worker died, from the last completed
      round.
    options: How to run.
    programs: What earlier runs loaded and traced, to share it.

  Returns:
    The result, `done` or `diverged`.

  Raises:
    run_dir.RunDirError: If the directory holds something else.
    checkpoint.CheckpointError: If a checkpoint cannot be used.
    client_state.ClientStateError: If clients' memory cannot be used.
    failures.ClientWorkError: If clients' work failed.
    runtime.WorkerDied: If a worker died more often than `retries`.
  """
  directory = run_dir_lib.RunDir(run_dir)
  programs = programs or program_lib.Programs()
  with directory.locked():
    finished = directory.admit(spec, resume)
    if not options.any_engine:
      _refuse_other_engine(directory)
    if finished:
      return finished
    program = programs.get(spec, directory.client_state)
    directory.claim(spec)
    while True:
      try:
        _Attempt(spec, directory, program, options).run()
        return directory.result(spec)
      except runtime.WorkerDied as e:
        if not retries:
          raise
        retries -= 1
        progress.say(f'{e}; going on from the last completed round')


def _refuse_other_engine(directory):
  """Keeps apart numbers that differ in rounding."""
  before, now = directory.provenance(), runtime.in_use()
  for name, value in now.items():
    there, here = (_text(v) for v in (before.get(name, value), value))
    if there != here:
      raise run_dir_lib.RunDirError(
          f'{directory.path} holds a run with {name} {there}, here it is'
          f' {here}; its numbers would differ in rounding: choose another run'
          ' directory, or --any_engine to go on all the same'
      )


def _text(value):
  # How many devices of a kind there are makes no difference.
  return ', '.join(sorted(set(value))) if isinstance(value, list) else value


class _Attempt:
  """From the last checkpoint to the end of the run, or to an interruption."""

  def __init__(self, spec, directory, program, options):
    self._spec = spec
    self._directory = directory
    self._program = program
    self._options = options
    self._store = checkpoint_lib.Store(
        directory.checkpoints, options.keep_checkpoints
    )
    self._identity = spec.identity()
    self._saved_round = 0

  def run(self) -> None:
    """Runs; writes the final provenance."""
    last = self._store.load(self._program.initial_state, self._identity.sha)
    if last is None:
      # What a run left that ended before its first checkpoint.
      shutil.rmtree(self._directory.client_state, ignore_errors=True)
      last = checkpoint_lib.Checkpoint(
          0, self._program.initial_state, {}, self._identity.sha
      )
    else:
      self._saved_round = last.round
      run = client_state.run_number(last.state)
      if run is not None:
        client_state.require(
            self._directory.client_state, run, last.round
        )
    # Here, wherever the directory was before.
    state = self._program.process.with_state_dir(
        last.state, self._directory.client_state
    )
    last = dataclasses.replace(last, state=state)
    self._write_provenance('running', last.round)
    with contextlib.ExitStack() as stack:
      self._open(stack, last)
      try:
        status = 'done'
        for result, last in self._rounds(last):
          if result.diverged:
            status = 'diverged'
            break
          if last.round % self._options.checkpoint_every == 0:
            self._save(last)
      except (
          KeyboardInterrupt,
          SystemExit,
          runtime.WorkerDied,
          failures.ClientWorkError,
      ):
        self._save(self._completed)
        raise
      except client_state.ClientStateError:
        # The disk may be full.
        with contextlib.suppress(OSError, client_state.ClientStateError):
          self._save(self._completed)
        raise
      self._save(last)
    self._write_provenance(status, last.round)
    if not self._options.keep_last:
      # Nobody can go on from here any more.
      self._store.prune(0)
      shutil.rmtree(self._directory.client_state, ignore_errors=True)
    self._store.prune(1)
    self._forget(last.state)

  def _open(self, stack, last):
    close = lambda f: stack.enter_context(contextlib.closing(f))
    self._metrics, self._timing = (
        close(round_log.CsvLog(path, last.positions.get(path.name, 0)))
        for path in (self._directory.metrics, self._directory.timing)
    )
    self._board = None
    if self._options.tensorboard:
      self._board = close(
          round_log.TensorBoardLog(self._directory.tensorboard, last.round + 1)
      )
    self._bar = close(
        progress.Progress(
            self._spec.rounds,
            what=self._options.label
            or f'{self._spec.task} {self._spec.algorithm}',
            unit='rounds',
            done=last.round,
            leave=not self._options.label,
            shown=self._options.progress,
        )
    )

  def _rounds(self, last):
    """Yields each round's result, recorded, and the checkpoint to resume it."""
    spec, program = self._spec, self._program
    self._completed = last
    clients = program.task.train
    cohorts = sampling.Cohorts(
        clients.client_ids,
        spec.cohort_size,
        spec.seed,
        last.round + 1,
        spec.rounds,
        spec.cohorts,
        program.probabilities,
    )
    if program.process.max_batches and isinstance(clients, LimitedClients):
      clients = clients.limited(program.process.max_batches)
    results = rounds.run(
        program.process,
        clients,
        cohorts,
        seed=spec.seed,
        state=last.state,
        start_round=last.round,
    )
    with contextlib.closing(results):
      started = time.monotonic()
      for result in results:
        trained = time.monotonic()
        row = self._row(result)
        evaluated = time.monotonic()
        self._metrics.append(row)
        self._timing.append({
            'round': result.round,
            'round_time': trained - started,
            'evaluation_time': evaluated - trained,
        })
        self._completed = checkpoint_lib.Checkpoint(
            result.round,
            result.state,
            {
                self._directory.metrics.name: self._metrics.position,
                self._directory.timing.name: self._timing.position,
            },
            self._identity.sha,
        )
        if self._board:
          self._board.append(result.round, time.time(), row)
        self._bar.update()
        yield result, self._completed
        started = time.monotonic()

  def _row(self, result):
    spec, program = self._spec, self._program
    is_last = result.round == spec.rounds
    due = is_last or result.round % spec.evaluate_every == 0
    # What a diverged model does on other data says nothing.
    due = due and not result.diverged
    values = round_log.round_values(result.metrics)
    diverged = values.pop('diverged')
    row = {'round': result.round, **values}
    task = program.task
    for split, batches, wanted in (
        ('validation', program.validation, due),
        ('test', task.test, due and is_last and self._options.test),
    ):
      measured = dict.fromkeys(program.evaluate.metric_names)
      if wanted:
        measured = program.evaluate(
            rounds.model_weights(program.process, result.state),
            batches(),
        )
        if split == 'validation':
          name = task.metric.name
          self._bar.note(f'{name} {measured[name]:.4g}')
      row.update((f'{split}/{name}', v) for name, v in measured.items())
    return {**row, 'diverged': diverged}

  def _save(self, last):
    """Writes a checkpoint, the rows it refers to first."""
    if last.round == self._saved_round:
      return
    self._metrics.sync()
    self._timing.sync()
    run = client_state.run_number(last.state)
    if run is not None:
      client_state.take_stock(self._directory.client_state, last.round, run)
    self._store.save(last)
    self._saved_round = last.round
    self._forget(last.state)
    if self._board:
      self._board.flush()

  def _forget(self, state):
    """Deletes what clients remember for rounds before the oldest checkpoint."""
    kept, run = self._store.rounds(), client_state.run_number(state)
    if run is not None and kept:
      client_state.collect(self._directory.client_state, kept[0], run)

  def _write_provenance(self, status, rounds_done):
    before = self._directory.provenance()
    finished = status in run_dir_lib.FINISHED
    timing = round_log.read(self._directory.timing) if finished else None
    task, process = self._program.task, self._program.process
    self._directory.write_provenance({
        **provenance.environment(),
        **runtime.in_use(),
        'status': status,
        'rounds': rounds_done,
        'seed': self._spec.seed,
        'profile': self._spec.profile,
        'fingerprint': self._identity.sha,
        'task_sha': self._identity.task_sha,
        'identity': self._identity.to_json(),
        'task': task.summary(),
        'data_kind': task.data_kind,
        # Of one client in one round, read off the types of what is sent.
        'bytes_down': process.bytes_down,
        'bytes_up': process.bytes_up,
        'bytes_total': process.bytes_down + process.bytes_up,
        'started': before.get('started', provenance.now()),
        'date': provenance.now() if finished else None,
        # Of all rounds, those before an interruption included.
        'wall_seconds': (
            round(timing.drop(columns='round').to_numpy().sum(), 3)
            if finished
            else None
        ),
    })
