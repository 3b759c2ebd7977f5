"""How long a round takes beside what it is compared with, as ratios.

Every variant of a comparison lives in a process of its own, warmed up once;
then the variants take turns, so that a machine that slows down slows all of
them. A process may be faster or slower than the next for as long as it lives,
so all this is done several times with new processes. What is printed is the
median over all turns of the ratio within a turn. Batches are random numbers of
the task's shapes: only time is measured.
"""

import dataclasses
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile

import pandas as pd

from tff_fedopt import plugins
from tff_fedopt import runtime
from tff_fedopt.bench import variants


class _Variant:
  """One variant, warm in a process of its own."""

  def __init__(self, comparison: str, name: str, folder: str):
    self.name = name
    self.figures = []
    self.start_up = None  # Seconds until it was warm.
    # TFF's default context leaves a worker behind; its own session makes the
    # whole group of processes ours to end.
    self._process = subprocess.Popen(
        [sys.executable, '-m', variants.__name__]
        + [comparison, name, _engine(), *plugins.loaded()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, 'TMPDIR': folder},
    )

  def _answer(self) -> float:
    line = self._process.stdout.readline()
    if not line:
      raise RuntimeError(f'variant {self.name} ended early')
    return float(line)

  def wait(self) -> None:
    """Returns when it is warm."""
    self.start_up = self._answer()

  def measure(self) -> None:
    self._process.stdin.write('\n')
    self._process.stdin.flush()
    self.figures.append(self._answer())

  def stop(self) -> None:
    try:
      os.killpg(self._process.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass
    self._process.wait()


def _engine() -> str:
  return json.dumps(dataclasses.asdict(runtime.chosen()))


def compare(comparison: str, turns: int, starts: int) -> pd.DataFrame:
  """Runs one comparison.

  Args:
    comparison: A name that `variants.comparison` knows.
    turns: How often each variant is measured after a start.
    starts: How often all variants are started.

  Returns:
    A row per variant: median figure; the ratio of the variant's figure to the
    first variant's (ours), as median, minimum and maximum over the turns, of
    times; and the median of the seconds from importing to the end of the first
    measured call.

  Raises:
    RuntimeError: If a variant fails; its error is on standard error.
  """
  spec = variants.comparison(comparison)
  figures = {name: [] for name in spec.variants}
  start_ups = {name: [] for name in spec.variants}
  for _ in range(starts):
    for variant in _measured(comparison, turns):
      figures[variant.name] += variant.figures
      start_ups[variant.name].append(variant.start_up)
  ours = next(iter(figures.values()))
  rows = []
  for name, theirs in figures.items():
    ratios = [math.nan]  # Memory may well grow by nothing.
    if spec.unit == 's':
      ratios = [its / mine for its, mine in zip(theirs, ours)]
    rows.append(
        dict(
            comparison=comparison,
            variant=name,
            unit=spec.unit,
            median=f'{statistics.median(theirs):.4g}',
            ratio_to_ours=f'{statistics.median(ratios):.3f}',
            ratio_min=f'{min(ratios):.3f}',
            ratio_max=f'{max(ratios):.3f}',
            starts=starts,
            turns=turns,
            start_up=f'{statistics.median(start_ups[name]):.1f} s',
        )
    )
  return pd.DataFrame(rows)


def _measured(comparison, turns):
  """The variants after one start and their turns, their processes ended."""
  started = []
  # They are killed in the end and cannot tidy up.
  with tempfile.TemporaryDirectory() as folder:
    try:
      for name in variants.comparison(comparison).variants:
        variant = _Variant(comparison, name, folder)
        started.append(variant)
        variant.wait()  # One at a time: starting is not measured here.
      for _ in range(turns):
        for variant in started:
          variant.measure()
    finally:
      for variant in started:
        variant.stop()
  return started
