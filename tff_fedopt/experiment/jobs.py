"""Runs pieces of a sweep in processes that never outlive this one.

Each process (`python -m tff_fedopt.experiment.jobs`) reads lines of JSON from
its standard input, a piece of the sweep each, and writes one line per finished
run. The end of its standard input, also when its owner is killed, makes it save
what it has and end.
"""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from tff_fedopt import plugins
from tff_fedopt import runtime
from tff_fedopt.experiment import cells as cells_lib
from tff_fedopt.experiment import progress
from tff_fedopt.experiment import spec as spec_lib
from tff_fedopt.runtime import inherited

# How long a process may take to write its checkpoint when it is to end.
_GRACE_SECONDS = 5.0
_COMMAND = (sys.executable, '-m', __name__)
_ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(
    pieces: Sequence[Sequence[spec_lib.RunSpec]],
    *,
    jobs: int,
    task: dict[str, Any],
    log_dir: pathlib.Path,
    label: Callable[[spec_lib.RunSpec], str],
    on_outcome: Callable[[spec_lib.RunSpec, dict[str, Any]], None],
) -> None:
  """Runs pieces in their order, each in the next process that is free.

  Args:
    pieces: Specs that one process runs one after the other.
    jobs: Number of processes.
    task: Arguments of `cells.Cells`, as JSON values.
    log_dir: Where the processes' standard error goes, `job_0.log` and so on.
      That of a single process goes where this one's does, with its progress.
    label: What its progress calls a run.
    on_outcome: Called in this thread with each spec and its outcome (`status`,
      `error`, `reused`).
  """
  waiting = queue.SimpleQueue()
  for piece in pieces:
    waiting.put(piece)
  outcomes = queue.SimpleQueue()
  ends = threading.Event()
  task = task | {
      'plugins': plugins.loaded(),
      'total': sum(map(len, pieces)),
      'engine': dataclasses.asdict(_share_of_engine(jobs)),
  }
  log_dir.mkdir(parents=True, exist_ok=True)
  logs = [log_dir / f'job_{i}.log' for i in range(jobs)] if jobs > 1 else [None]
  children = [
      _Child(task, label, log, waiting, outcomes, ends) for log in logs
  ]
  try:
    for child in children:
      child.start()
    with contextlib.closing(
        progress.Progress(
            task['total'],
            what=f'in {jobs} processes',
            unit='runs',
            shown=jobs > 1 and task['options']['progress'],
        )
    ) as shown:
      for _ in range(task['total']):
        spec, outcome = outcomes.get()
        on_outcome(spec, outcome)
        shown.update()
  finally:
    ends.set()
    for child in children:
      child.stop()
    for child in children:
      child.join()


def _share_of_engine(jobs: int) -> runtime.Settings:
  """The engine of one of several processes on the cores of this machine."""
  settings = runtime.chosen()
  if settings.max_concurrent_clients or settings.devices or settings.workers:
    return settings
  cores = len(os.sched_getaffinity(0))
  return dataclasses.replace(
      settings, max_concurrent_clients=max(1, cores // jobs)
  )


class _Child:
  """Feeds one process with pieces; starts another one when it has died."""

  def __init__(self, task, label, log_path, waiting, outcomes, ends):
    self._task = task
    self._label = label
    self._log_path = log_path
    self._waiting = waiting
    self._outcomes = outcomes
    self._ends = ends
    self._lock = threading.Lock()
    self._process = None
    self._thread = threading.Thread(target=self._feed, daemon=True)

  def start(self):
    self._thread.start()

  def join(self):
    self._thread.join()

  def _feed(self):
    while not self._ends.is_set():
      try:
        left = list(self._waiting.get_nowait())
      except queue.Empty:
        break
      error = None
      try:
        for outcome in self._outcomes_of(left):
          self._outcomes.put((left.pop(0), outcome))
      except Exception as e:  # pylint: disable=broad-except
        error = e  # It died, or could not be started.
      if left and not self._ends.is_set():
        # The run that it died of has failed; the others get another process.
        failure = {'status': 'failed', 'error': self._death(error)}
        self._outcomes.put((left.pop(0), failure))
        if left:
          self._waiting.put(left)
    self.stop()

  def _outcomes_of(self, piece):
    """Yields outcomes; ends early if the process does."""
    process = self._running()
    runs = [(spec.to_json(), self._label(spec)) for spec in piece]
    message = self._task | {'runs': runs}
    process.stdin.write(json.dumps(message).encode() + b'\n')
    process.stdin.flush()
    for _ in runs:
      line = process.stdout.readline()
      if not line:
        return
      yield json.loads(line)

  def _running(self):
    with self._lock:
      if self._process is None and not self._ends.is_set():
        paths = [str(_ROOT), os.environ.get('PYTHONPATH', '')]
        with self._log() as log:
          self._process = subprocess.Popen(
              _COMMAND,
              stdin=subprocess.PIPE,
              stdout=subprocess.PIPE,
              stderr=log,
              env=os.environ
              | {'PYTHONPATH': os.pathsep.join(filter(None, paths))},
              # Ctrl-C in the terminal is for the owner, who ends the others.
              start_new_session=True,
          )
      if self._process is None:
        raise BrokenPipeError('the sweep is ending')
      return self._process

  def _log(self):
    if self._log_path is None:
      return contextlib.nullcontext()
    return open(self._log_path, 'ab')

  def _death(self, error) -> str:
    with self._lock:
      process, self._process = self._process, None
    if process is None:
      return f'its process could not be started: {error}'
    with contextlib.suppress(OSError):
      process.stdin.close()
    code = process.wait()
    how = f'signal {-code}' if code < 0 else f'code {code}'
    where = f'; see {self._log_path}' if self._log_path else ''
    return f'its process ended with {how}{where}'

  def stop(self):
    """Makes the process end, which ends this thread."""
    with self._lock:
      if self._process is not None:
        with contextlib.suppress(OSError):
          self._process.stdin.close()
        try:
          self._process.wait(2 * _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
          self._process.kill()
          self._process.wait()
        self._process = None


def main() -> None:
  """The process's side."""
  inherited.settle()
  # Standard output is for outcomes alone; what others print goes to the log.
  outcomes = os.fdopen(os.dup(1), 'w')
  os.dup2(2, 1)
  messages = queue.SimpleQueue()
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

  def read():
    for line in sys.stdin:
      messages.put(json.loads(line))
    messages.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_GRACE_SECONDS)
    os._exit(1)  # It hangs: end without a checkpoint of the last rounds.

  threading.Thread(target=read, daemon=True).start()

  cells = None
  while message := messages.get():
    if cells is None:
      for name in message['plugins']:
        plugins.load(name)
      runtime.choose(runtime.Settings(**message['engine']))
      cells = cells_lib.Cells(
          message['out_dir'],
          message['resume'],
          message['retries'],
          spec_lib.RunOptions(**message['options']),
      )
    for spec, label in message['runs']:
      outcome = cells.run(spec_lib.RunSpec.from_json(spec), label)
      print(json.dumps(outcome), file=outcomes, flush=True)


if __name__ == '__main__':
  main()
