"""A run's directory: who may use it, and what it says about the run."""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
from typing import Any

import pandas as pd

import tasks
from tff_fedopt.experiment import files
from tff_fedopt.experiment import identity
from tff_fedopt.experiment import round_log
from tff_fedopt.experiment import spec as spec_lib

FINISHED = ('done', 'diverged')


class RunDirError(ValueError):
  """A directory cannot be used for a run; says why and what to do."""


@dataclasses.dataclass(frozen=True)
class RunResult:
  """How a run ended.

  Attributes:
    spec: The run.
    status: `done`, `diverged` or `failed`.
    frame: One row per round; columns named as in metrics.csv without units,
      parts of a whole (accuracy, recall) as fractions. Empty if it failed
      before the first round.
    run_dir: The run's directory.
    error: One line, if it failed.
    reused: Whether it had been finished before.
  """

  spec: spec_lib.RunSpec
  status: str
  frame: pd.DataFrame
  run_dir: pathlib.Path
  error: str = ''
  reused: bool = False

  @property
  def headline(self) -> str:
    """How it ended, for people: the task's metric as evaluated last."""
    if self.status == 'failed':
      return f'failed: {self.error}'
    metric = tasks.info(self.spec.task).metric
    measured = self.frame[f'validation/{metric.name}'].dropna()
    value = f'{metric.label} was never evaluated'
    if len(measured):
      last = metric.scale * measured.iloc[-1]
      value = f'{metric.label} {last:.4g} {metric.unit}'.rstrip()
    return value if self.status == 'done' else f'{self.status}: {value}'

  @property
  def timing(self) -> pd.DataFrame:
    """Seconds by round: `round`, `round_time`, `evaluation_time`."""
    return round_log.read(self.run_dir / 'timing.csv')


class RunDir:
  """The paths of a run, and its two JSON files."""

  def __init__(self, path):
    self.path = pathlib.Path(path)
    self.metrics = self.path / 'metrics.csv'
    self.timing = self.path / 'timing.csv'
    self.checkpoints = self.path / 'checkpoints'
    self.tensorboard = self.path / 'tensorboard'
    self.client_state = self.path / 'client_state'
    self._config = self.path / 'config.json'
    self._provenance = self.path / 'provenance.json'

  @contextlib.contextmanager
  def locked(self, instead: str = 'choose another run directory'):
    """Keeps other processes out; a killed process keeps nobody out.

    Folders that were made for it go again if they are still empty at the end.

    Args:
      instead: What others can do in place of waiting.
    """
    made = [p for p in (self.path, *self.path.parents) if not p.exists()]
    path = self.path / '.lock'
    try:
      self.path.mkdir(parents=True, exist_ok=True)
      lock = open(path, 'w')
    except OSError as e:
      raise RunDirError(
          f'{self.path} cannot be a run directory: {e.strerror}'
      ) from e
    with lock:
      try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its holder may just have deleted it.
        is_here = os.path.samestat(os.fstat(lock.fileno()), os.stat(path))
      except (BlockingIOError, FileNotFoundError):
        is_here = False
      if not is_here:
        raise RunDirError(
            f'{self.path} is in use by another process; wait for it or'
            f' {instead}'
        )
      try:
        yield
      finally:
        with contextlib.suppress(OSError):  # Of others that use the folder.
          if [p.name for p in self.path.iterdir()] == [path.name]:
            path.unlink()
            for folder in made:
              folder.rmdir()

  def admit(
      self, spec: spec_lib.RunSpec, resume: bool
  ) -> RunResult | None:
    """Decides whether a run may use the directory.

    An empty or new directory: yes. The same run, finished: its result is
    returned. The same run, unfinished: only to resume. Anything else: no.

    Args:
      spec: The run.
      resume: Whether an unfinished run may go on.

    Returns:
      The result if the run is finished, else None.

    Raises:
      RunDirError: If the run may not use the directory.
    """
    if not self._config.exists():
      if any(p.name != '.lock' for p in self.path.iterdir()):
        raise RunDirError(
            f'{self.path} is not empty and holds no run; choose another run'
            ' directory'
        )
      return None
    config = _read_json(self._config)
    now = spec.identity()
    if config.get('fingerprint') != now.sha:
      stored = identity.Identity.from_json(config.get('identity', {}))
      what = '; '.join(identity.differences(stored, now))
      raise RunDirError(
          f'{self.path} holds another run: {what}; choose another run directory'
      )
    if self.provenance().get('status') in FINISHED:
      return dataclasses.replace(self.result(spec), reused=True)
    if not resume:
      raise RunDirError(
          f'{self.path} holds this run, unfinished; resume it (--resume) or'
          ' choose another run directory'
      )
    return None

  def clear(self) -> None:
    """Deletes a run that nobody is using; anything else stays.

    Raises:
      RunDirError: If another process is using it.
    """
    if not self._config.exists():
      return
    with self.locked():
      for path in self.path.iterdir():
        if path.is_dir():
          shutil.rmtree(path)
        elif path.name != '.lock':
          path.unlink()

  def claim(self, spec: spec_lib.RunSpec) -> None:
    """Makes it the run's directory; only after nothing about it is wrong."""
    now = spec.identity()
    config = {
        'fingerprint': now.sha,
        'identity': now.to_json(),
        'spec': spec.to_json(),
    }
    files.write_json(self._config, config)

  def provenance(self) -> dict[str, Any]:
    return _read_json(self._provenance) if self._provenance.exists() else {}

  def write_provenance(self, values: dict[str, Any]) -> None:
    files.write_json(self._provenance, values)

  def result(self, spec: spec_lib.RunSpec) -> RunResult:
    """Reads the result of a finished run."""
    return RunResult(
        spec=spec,
        status=self.provenance()['status'],
        frame=round_log.read(self.metrics),
        run_dir=self.path,
    )


def _read_json(path) -> dict[str, Any]:
  try:
    return json.loads(path.read_text(encoding='utf-8'))
  except ValueError as e:
    raise RunDirError(
        f'{path} is damaged; delete its directory to start again'
    ) from e
