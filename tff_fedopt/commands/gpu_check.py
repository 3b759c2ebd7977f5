"""Proves that GPUs train as the CPU does: every algorithm, times and memory.

Writes one file to send to whoever has no GPU. Exit code: 0 all alike, 1 an
algorithm failed or differs, 2 wrong usage or no such device.
"""

from collections.abc import Sequence
import os
import pathlib
import statistics
import sys
import tempfile
import time

from absl import flags

from tff_fedopt import runtime
from tff_fedopt.commands import command_line
from tff_fedopt.experiment import files

# How far weights may be apart, relative to the largest one; single precision,
# sums in another order, five rounds. Adaptive steps divide by what is near 0.
_TOLERANCE = 1e-3
_ADAPTIVE_TOLERANCE = 1e-2
_ADAPTIVE = ('fedadagrad', 'fedadam', 'fedyogi')
_ROUNDS = 5
_COHORT = 4


def _define(values: flags.FlagValues) -> None:
  section = command_line.Section(values, 'what is compared with the CPU')
  section.text('devices', 'gpu', 'gpu (all), gpu:0,1 or cpu')
  section.text('task', 'emnist_character', 'the task, on embedded data')
  section.items('algorithms', 'only these (default: all)')
  section.text('out', 'runs/gpu_check.json', 'where the result is saved')


def _run(values: flags.FlagValues, arguments: list[str]) -> int:
  del arguments
  command_line.check_folder('--out', pathlib.Path(values.out).parent)
  runtime.use(devices=[values.devices])  # Refused before anything is made.
  from tff_fedopt import algorithms
  from tff_fedopt.experiment import provenance

  computes = runtime.in_use()['devices']
  rows = []
  for name in values.algorithms or algorithms.names():
    rows.append(_compare(name, values.task, values.devices))
    print(_line(rows[-1]), flush=True)
  result = {**provenance.environment(), 'devices': computes, 'rows': rows}
  files.write_json(pathlib.Path(values.out), result)
  print(f'saved in {values.out}')
  return 0 if all(row['alike'] for row in rows) else 1


def _line(row):
  if 'error' in row:
    return f'{row["algorithm"]:12}failed: {row["error"]}'
  return (
      f'{row["algorithm"]:12}{"alike" if row["alike"] else "DIFFERS":8}'
      f' {row["difference"]:.1e} (allowed {row["allowed"]:.0e}),'
      f' {row["seconds"]:.3f} s a round, CPU {row["seconds_cpu"]:.3f},'
      f' {row["peak_mib"]} MiB'
  )


def _compare(name, task_name, devices):
  """Trains with an algorithm on the CPU and on devices; one row."""
  import numpy as np

  import tasks
  from tff_fedopt import algorithms

  task = tasks.load(task_name, profile='quick')
  hp = algorithms.validate(name, dict(client_learning_rate=0.01))
  row = {'algorithm': name}
  with tempfile.TemporaryDirectory() as folder:
    placed = hp.placed(
        len(task.train.client_ids), os.path.join(folder, 'state')
    )
    process = algorithms.build_parsed(name, task.model_fn, placed)
    try:
      cpu, row['seconds_cpu'] = _train(process, task, 'cpu')
      ours, row['seconds'] = _train(process, task, devices)
    except RuntimeError as e:
      return row | {'alike': False, 'error': str(e)}
  scale = max(np.abs(w).max() for w in cpu)
  difference = max(np.abs(a - b).max() for a, b in zip(cpu, ours)) / scale
  allowed = _ADAPTIVE_TOLERANCE if name in _ADAPTIVE else _TOLERANCE
  return row | dict(
      difference=float(difference),
      allowed=allowed,
      alike=bool(difference <= allowed),
      peak_mib=_peak_mib(),
  )


def _train(process, task, devices):
  """Weights after some rounds, and the median of the seconds of the later."""
  from tff_fedopt.experiment import rounds

  runtime.use(devices=[devices])
  ids = task.train.client_ids
  cohorts = [
      [ids[(t * _COHORT + i) % len(ids)] for i in range(_COHORT)]
      for t in range(_ROUNDS)
  ]
  seconds, began = [], time.monotonic()
  for result in rounds.run(process, task.train, cohorts):
    seconds.append(time.monotonic() - began)
    began = time.monotonic()
    weights = result.weights
  return weights, round(statistics.median(seconds[1:]), 4)


def _peak_mib():
  """The most memory that any GPU used so far; None without one."""
  import tensorflow as tf

  gpus = tf.config.list_logical_devices('GPU')
  peaks = [
      tf.config.experimental.get_memory_info(f'GPU:{i}')['peak']
      for i in range(len(gpus))
  ]
  return max(peaks) // 2**20 if peaks else None


_COMMAND = command_line.Command(
    name='gpu_check',
    summary=__doc__ or '',
    examples=('', '--devices=gpu:0 --algorithms=fedadam,scaffold'),
    define=_define,
    run=_run,
)


def main(argv: Sequence[str]) -> int:
  """Runs the command.

  Args:
    argv: The arguments, without the program's name.

  Returns:
    The exit code.
  """
  return command_line.run(_COMMAND, argv)


if __name__ == '__main__':
  command_line.end_with(main, sys.argv[1:])
