"""The runs of a sweep, one after the other in this process."""

import dataclasses
import os
import pathlib
import traceback
from typing import Any

from tff_fedopt import runtime
from tff_fedopt.experiment import run_dir as run_dir_lib
from tff_fedopt.experiment import spec as spec_lib


class Cells:
  """Runs cells; those that may share a loaded task and a trace do."""

  def __init__(
      self,
      out_dir: str | os.PathLike,
      resume: bool,
      retries: int,
      options: spec_lib.RunOptions,
  ):
    """Begins; the arguments are those of `sweep.run_all`."""
    # Imported here: planning a sweep must not load TensorFlow.
    from tff_fedopt.experiment import program
    from tff_fedopt.experiment import runner

    self.programs = program.Programs()
    self._run_experiment = runner.run_experiment
    self._out_dir = pathlib.Path(out_dir)
    self._resume = resume
    self._retries = retries
    self._options = options

  def run(self, spec: spec_lib.RunSpec, label: str) -> dict[str, Any]:
    """Runs one spec; returns `status`, `error` and `reused`."""
    directory = cell_dir(spec, self._out_dir)
    log = directory.with_name(directory.name + '.error.log')
    log.unlink(missing_ok=True)
    try:
      if not self._resume:
        run_dir_lib.RunDir(directory).clear()
      result = self._run_experiment(
          spec,
          directory,
          resume=True,
          retries=self._retries,
          options=dataclasses.replace(self._options, label=label),
          programs=self.programs,
      )
    except Exception as e:  # pylint: disable=broad-except
      log.parent.mkdir(parents=True, exist_ok=True)
      log.write_text(traceback.format_exc(), encoding='utf-8')
      return {'status': 'failed', 'error': error_line(e)}
    return {'status': result.status, 'reused': result.reused}


def cell_dir(
    spec: spec_lib.RunSpec, out_dir: str | os.PathLike
) -> pathlib.Path:
  """Returns the run directory of a spec in a sweep.

  Each engine and kind of device has its own, since numbers differ in rounding.
  """
  name = f'{spec.task}-{spec.algorithm}-{spec.fingerprint()[:16]}'
  return pathlib.Path(out_dir) / (name + runtime.chosen().suffix())


def error_line(error: BaseException) -> str:
  """Returns an error as one line."""
  lines = str(error).strip().splitlines()
  return lines[0] if lines else type(error).__name__
