"""Many runs: traced once per group, one after the other or in processes."""

from collections.abc import Callable, Sequence
import dataclasses
import math
import os
import pathlib

import pandas as pd

from tff_fedopt.experiment import cells as cells_lib
from tff_fedopt.experiment import jobs as jobs_lib
from tff_fedopt.experiment import round_log
from tff_fedopt.experiment import run_dir as run_dir_lib
from tff_fedopt.experiment import spec as spec_lib

RunResult = run_dir_lib.RunResult

# Pieces that a sweep is cut into, per process: more even out the ends, fewer
# trace less often.
_PIECES_PER_JOB = 3


def _name(spec):
  return f'{spec.task} {spec.algorithm}'


def run_all(
    specs: Sequence[spec_lib.RunSpec],
    out_dir: str | os.PathLike,
    *,
    jobs: int = 1,
    isolated: bool = False,
    resume: bool = False,
    retries: int = 1,
    options: spec_lib.RunOptions = spec_lib.RunOptions(
        keep_last=False, test=False
    ),
    on_result: Callable[[RunResult], None] | None = None,
    name: Callable[[spec_lib.RunSpec], str] = _name,
) -> list[RunResult]:
  """Runs many specs, each in a directory of its own below `out_dir`.

  Specs that differ only in numbers which the state holds are run one after the
  other with one traced process. A run that fails or diverges stops no other.

  Args:
    specs: The runs.
    out_dir: Where the run directories are.
    jobs: Processes that run at the same time, each with an engine of its own.
    isolated: Whether one job too gets a process, so that a crash of native code
      ends a run and not the sweep.
    resume: Whether runs that are there are reused or continued; without it
      they are deleted and run anew.
    retries: How often a run goes on after its worker died.
    options: How to run.
    on_result: Called with each result as it comes.
    name: What people call a run.

  Returns:
    One result per spec, in their order. That of a run which failed says why in
    `error`; the traceback is in `<run directory>.error.log`.

  Raises:
    ValueError: If `jobs` is below 1.
  """
  if jobs < 1:
    raise ValueError(f'jobs: {jobs}; expected 1 or more')
  out_dir = pathlib.Path(out_dir)
  unique = list(dict.fromkeys(specs))
  results = {}

  def collect(result):
    results[result.spec] = result
    if on_result:
      on_result(result)

  waiting = []
  for spec in unique:
    finished = _finished(spec, out_dir) if resume else None
    if finished:
      collect(finished)
    else:
      waiting.append(spec)
  pieces = _pieces(waiting, jobs)
  order = [spec for piece in pieces for spec in piece]
  labels = {
      spec: f'[{count}/{len(order)}] {name(spec)}'
      for count, spec in enumerate(order, 1)
  }
  if pieces and (isolated or min(jobs, len(pieces)) > 1):
    jobs_lib.run(
        pieces,
        jobs=min(jobs, len(pieces)),
        task={
            'out_dir': os.fspath(out_dir.absolute()),
            'resume': resume,
            'retries': retries,
            'options': dataclasses.asdict(options),
        },
        log_dir=out_dir,
        label=labels.get,
        on_outcome=lambda spec, outcome: collect(
            _result(spec, out_dir, **outcome)
        ),
    )
  elif pieces:  # TensorFlow is not loaded for nothing.
    cells = cells_lib.Cells(out_dir, resume, retries, options)
    for spec in order:
      collect(_result(spec, out_dir, **cells.run(spec, labels[spec])))
  return [results[spec] for spec in specs]


def _finished(spec, out_dir) -> RunResult | None:
  """The result of a cell that was finished before; None if it was not."""
  directory = run_dir_lib.RunDir(cells_lib.cell_dir(spec, out_dir))
  if not directory.path.exists():
    return None
  try:
    return directory.admit(spec, resume=True)
  except run_dir_lib.RunDirError:
    return None  # Running it says what is wrong.


def _result(spec, out_dir, status, error='', reused=False) -> RunResult:
  directory = run_dir_lib.RunDir(cells_lib.cell_dir(spec, out_dir))
  if status in run_dir_lib.FINISHED:
    return dataclasses.replace(directory.result(spec), reused=reused)
  rows = directory.metrics.exists() and directory.metrics.stat().st_size
  return RunResult(
      spec=spec,
      status=status,
      frame=round_log.read(directory.metrics)
      if rows
      else pd.DataFrame({'round': pd.Series(dtype=int)}),
      run_dir=directory.path,
      error=error,
  )


def _pieces(specs, jobs) -> list[list[spec_lib.RunSpec]]:
  """Groups that share a trace, cut where one would keep others waiting.

  The longest come first, so that no long one is begun at the end.
  """
  groups = {}
  for spec in specs:
    groups.setdefault(spec_lib.group_key(spec), []).append(spec)
  limit = math.inf
  if jobs > 1:
    limit = sum(map(_cost, specs)) / (jobs * _PIECES_PER_JOB)
  pieces = []
  for group in groups.values():
    piece = []
    for spec in group:
      if piece and sum(map(_cost, piece)) + _cost(spec) > limit:
        pieces.append(piece)
        piece = []
      piece.append(spec)
    pieces.append(piece)
  if jobs == 1:
    # Each task is loaded once.
    order = list(dict.fromkeys(spec_lib.task_key(p[0]) for p in pieces))
    return sorted(pieces, key=lambda p: order.index(spec_lib.task_key(p[0])))
  return sorted(pieces, key=lambda p: -sum(map(_cost, p)))


def _cost(spec) -> int:
  """Client trainings of a run: all that is known of its length beforehand."""
  return spec.rounds * spec.cohort_size * spec.local_epochs
