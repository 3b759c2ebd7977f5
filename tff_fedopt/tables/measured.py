"""Numbers that a function computes: called once per seed, kept for --resume."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import json
import math
import pathlib
import time
import traceback
from typing import Any

from tasks import code_hash
from tff_fedopt.experiment import files
from tff_fedopt.experiment import identity
from tff_fedopt.experiment import provenance
from tff_fedopt.tables import spec as spec_lib


@dataclasses.dataclass(frozen=True, eq=False)
class MeasuredRun:
  """One call of a measuring function; equal if they measure the same."""

  measure: spec_lib.Measure
  seed: int

  @property
  def name(self) -> str:
    return self.measure.function.__qualname__

  def code(self) -> Mapping[str, str]:
    """Returns the file of the function's module, and the hash of its code."""
    module = self.measure.function.__module__
    return code_hash.of_module(module, alone=True)

  def fingerprint(self) -> str:
    """Returns the SHA-256 of function, arguments, seed and code, in hex."""
    return identity.sha256({
        'function': self.name,
        'arguments': dict(self.measure.arguments),
        'seed': self.seed,
        'code': code_hash.together(self.code()),
    })

  def __eq__(self, other):
    return (
        isinstance(other, MeasuredRun)
        and self.fingerprint() == other.fingerprint()
    )

  def __hash__(self):
    return hash(self.fingerprint())


@dataclasses.dataclass(frozen=True)
class MeasuredResult:
  """How a call ended.

  Attributes:
    spec: The call.
    status: `done`, `diverged` (not a number) or `failed`.
    measured: What it returned; None if it failed.
    provenance: Versions, commit, cores, date, wall time.
    error: One line, if it failed.
    reused: Whether it had been computed before.
  """

  spec: MeasuredRun
  status: str
  measured: spec_lib.Measured | None = None
  provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  error: str = ''
  reused: bool = False

  @property
  def headline(self) -> str:
    """How it ended, for people."""
    if self.status == 'done':
      return f'{self.measured.value:.4g}'
    return self.status + (self.error and f': {self.error}')


def run_all(
    runs: Sequence[MeasuredRun],
    out_dir: pathlib.Path,
    *,
    resume: bool = False,
    on_result: Callable[[MeasuredResult], None] | None = None,
) -> list[MeasuredResult]:
  """Calls the functions, one after the other; a failure stops no other call.

  Args:
    runs: The calls.
    out_dir: Where what they returned is kept, one file a call.
    resume: Whether a call whose file is there is not made again.
    on_result: Called with each result as it comes.

  Returns:
    One result per call, in their order. The traceback of a failure is in the
    call's `.error.log`.
  """
  results = []
  for run in runs:
    path = out_dir / f'{run.fingerprint()[:16]}.json'
    result = _stored(run, path) if resume and path.exists() else None
    results.append(result or _call(run, path))
    if on_result:
      on_result(results[-1])
  return results


def _stored(run, path):
  values = json.loads(path.read_text(encoding='utf-8'))
  result = _result(
      run, values['value'], values['curve'], values['provenance']
  )
  return dataclasses.replace(result, reused=True)


def _call(run, path):
  path.parent.mkdir(parents=True, exist_ok=True)
  log = path.with_suffix('.error.log')
  log.unlink(missing_ok=True)
  started = time.monotonic()
  try:
    measured = run.measure.function(seed=run.seed, **run.measure.arguments)
  except Exception as e:  # pylint: disable=broad-except
    log.write_text(traceback.format_exc(), encoding='utf-8')
    return MeasuredResult(
        run, 'failed', error=(str(e).splitlines() or [type(e).__name__])[0]
    )
  values = {
      'function': run.name,
      'arguments': dict(run.measure.arguments),
      'seed': run.seed,
      'value': float(measured.value),
      'curve': measured.curve and [
          [float(number) for number in part] for part in measured.curve
      ],
      'provenance': {
          **provenance.environment(),
          'data_kind': 'computed',
          'date': provenance.now(),
          'wall_seconds': round(time.monotonic() - started, 3),
      },
  }
  files.write_json(path, values)
  return _result(run, values['value'], values['curve'], values['provenance'])


def _result(run, value, curve, its_provenance):
  return MeasuredResult(
      run,
      'diverged' if math.isnan(value) else 'done',
      spec_lib.Measured(value, curve and tuple(curve)),
      its_provenance,
  )
