"""Tells whether this machine is ready to run experiments, and what is missing.

Exit code: 0 ready, 2 not ready or wrong usage.
"""

from collections.abc import Sequence
import dataclasses
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time
import zipfile

from absl import flags

import tasks
from tasks.data import counts
from tasks.data import sources
from tff_fedopt import environment
from tff_fedopt.commands import command_line
from tff_fedopt.commands import engine_flags

MIN_FREE_GIB = 2.0
_PACKAGES = (
    'tensorflow-federated', 'tensorflow', 'jax', 'numpy', 'tensorflow-datasets'
)
_DAY = 24 * 3600
_HELLO = 'from tff_fedopt.commands import doctor; doctor.hello()'


@dataclasses.dataclass(frozen=True)
class Finding:
  """One line of the report.

  Attributes:
    subject: What was looked at.
    text: What was found.
    remedy: What to do where that stops an experiment, else None.
    is_data: Whether the finding is that a task has its real data.
  """

  subject: str
  text: str
  remedy: str | None = None
  is_data: bool = False


def _gib(num_bytes: int) -> str:
  return f'{num_bytes / 2**30:.1f} GiB'


def check_system() -> list[Finding]:
  """Looks at the interpreter, the machine and the installed packages."""
  memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  versions = ', '.join(
      f'{name} {environment.installed_version(name)}' for name in _PACKAGES
  )
  return [
      Finding('python', f'{platform.python_version()} ({sys.executable})'),
      Finding(
          'platform',
          f'{platform.system()} {platform.machine()},'
          f' {len(os.sched_getaffinity(0))} cores, {_gib(memory)} memory',
      ),
      Finding('packages', versions),
  ]


def check_disk(folder: str, min_free_gib: float = MIN_FREE_GIB) -> Finding:
  """Looks at the free space of the disk that holds, or will hold, a folder."""
  place = pathlib.Path(folder).absolute()
  while not place.exists():
    place = place.parent
  free = shutil.disk_usage(place).free
  remedy = None
  if free < min_free_gib * 2**30:
    remedy = (
        f'make room on the disk of {place}: {_gib(free)} are free, at least'
        f' {min_free_gib:g} GiB are needed'
    )
  return Finding('disk', f'{_gib(free)} free in {place}', remedy)


def check_embedded(folder: str) -> Finding:
  """Looks at the embedded synthetic data, which is made when first used."""
  files = [p for p in pathlib.Path(folder).rglob('*') if p.is_file()]
  if not files:
    return Finding('embedded', f'made in {folder} when first used')
  size = sum(p.stat().st_size for p in files)
  return Finding('embedded', f'{len(files)} files, {_gib(size)} in {folder}')


def _check_images(task: str, data_dir: str) -> Finding | None:
  """Looks for images outside TFF's own files; None if there are none."""
  npz = pathlib.Path(data_dir, f'{task}.npz')
  if task == 'cifar10' and npz.exists():
    if zipfile.is_zipfile(npz):
      return Finding(task, npz.name, is_data=True)
    return Finding(
        task,
        f'{npz.name} is damaged',
        f'{npz}: cut short or not an archive; delete it and make it again',
    )
  prepared = sorted(pathlib.Path(data_dir, task).glob('*/dataset_info.json'))
  if prepared:
    text = f'TensorFlow Datasets in {prepared[-1].parent}'
    return Finding(task, text, is_data=True)
  return None


def check_data(task: str, data_dir: str) -> Finding:
  """Looks for the real data of a task.

  Missing data stops nothing by itself, as every task has embedded data.

  Args:
    task: One of `tasks.PUBLISHED`.
    data_dir: Folder with TFF's data files.

  Returns:
    What was found, with a remedy only for a file that is there and unusable.
  """
  dataset = tasks.info(task).dataset
  known = sources.DATASETS.get(dataset)
  filename = known.filename if known else f'{task}.npz'
  if known is None or not os.path.exists(os.path.join(data_dir, filename)):
    return _check_images(task, data_dir) or Finding(task, f'no {filename}')
  try:
    found = sources.find(dataset, data_dir)
    if dataset == 'stackoverflow':
      for name in (counts.WORDS, counts.TAGS):
        counts.path_of(data_dir, name)
  except sources.DataError as e:
    return Finding(task, 'unusable', str(e))
  clients, examples = found.counts['train']
  return Finding(
      task,
      f'{filename}, {found.kind}: {clients} clients, {examples} examples',
      is_data=True,
  )


def hello() -> None:
  """Sums one number of each of two clients on every engine and device."""
  import numpy as np  # pylint: disable=g-import-not-at-top
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  import tensorflow_federated as tff  # pylint: disable=g-import-not-at-top

  from tff_fedopt import runtime  # pylint: disable=g-import-not-at-top

  @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
  def total(values):
    return tff.federated_sum(values)

  gpus = range(len(tf.config.list_physical_devices('GPU')))
  places = [{'devices': [d]} for d in ('cpu', *(f'gpu:{i}' for i in gpus))]
  for place in (*places, {'engine': 'worker'}):
    runtime.use(**place)
    try:
      answer = total([1, 2])
    finally:
      runtime.shutdown()
    if answer != 3:
      raise RuntimeError(f'{place}: the sum of 1 and 2 came back as {answer}')
    found = runtime.in_use()
    (device,) = place.get('devices', ['cpu'])
    print(f'{found["engine"]} on {device} ({found["devices"][0]})')


def check_hello(timeout: float, code: str = _HELLO) -> Finding:
  """Runs a federated computation in a process of its own.

  Args:
    timeout: Seconds after which it is given up.
    code: What the process runs.

  Returns:
    The time it took, or why it failed.
  """
  started = time.monotonic()
  with subprocess.Popen(
      [sys.executable, '-c', code],
      cwd=pathlib.Path(__file__).resolve().parents[2],
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      start_new_session=True,
  ) as process:
    try:
      places, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
      return Finding(
          'hello',
          f'no answer within {timeout:g} s',
          'two clients could not be summed in time; end what else keeps this'
          f' machine busy, or allow more than --timeout={timeout:g}',
      )
    finally:
      # The session holds all that the process started.
      try:
        os.killpg(process.pid, signal.SIGKILL)
      except ProcessLookupError:
        pass
  if process.returncode:
    # A traceback ends with the error; destructors may complain after it.
    lines = errors.partition('Exception ignored in')[0].split('\n')
    lines = [line for line in lines if line.strip()]
    reason = lines[-1] if lines else f'exit status {process.returncode}'
    return Finding(
        'hello', 'failed', f'a federated computation does not run: {reason}'
    )
  seconds = time.monotonic() - started
  return Finding(
      'hello',
      f'two clients summed in {seconds:.1f} s, start included:'
      f' {"; ".join(places.splitlines())}',
  )


def diagnose(data_dir: str | None, timeout: float):
  """Yields the findings, the slow one last.

  Args:
    data_dir: Folder with TFF's data files, which must then hold some; None for
      TFF's own cache, which may be empty.
    timeout: Seconds for the federated computation.

  Yields:
    Findings.
  """
  yield from check_system()
  try:
    made_here = sources.user_cache_dir()
  except sources.DataError as e:
    yield Finding('cache', 'unusable', str(e))
  else:
    yield check_disk(made_here)
    yield check_embedded(made_here)
  folder = os.path.expanduser(data_dir or sources.default_data_dir())
  findings = [check_data(task, folder) for task in tasks.PUBLISHED]
  remedy = None
  if data_dir and not os.path.isdir(folder):
    remedy = (
        f"--data_dir={data_dir} is no folder; name the one with TFF's files"
    )
  elif data_dir and not any(f.is_data or f.remedy for f in findings):
    remedy = (
        f'--data_dir={data_dir} has no data of any task; fetch some, for'
        f' example with "{sources.fetch_command("shakespeare", folder)}"'
    )
  yield Finding('data_dir', folder, remedy)
  yield from findings
  yield check_hello(timeout)


def _define(values: flags.FlagValues) -> None:
  section = command_line.Section(values, 'what is looked at')
  section.text(
      'data_dir',
      None,
      f"folder with TFF's data files (default: {sources.default_data_dir()})",
  )
  section.number('timeout', 120.0, 'seconds for a federated computation')
  engine_flags.define(values)


def _run(values: flags.FlagValues, arguments: list[str]) -> int:
  """Prints the findings and a last line: READY, or the one thing to do."""
  del arguments
  if not 0 < values.timeout <= _DAY:
    raise ValueError(
        f'--timeout must lie in 0 … {_DAY} seconds, got {values.timeout:g}'
    )
  engine_flags.choose(values)
  remedy = None
  for finding in diagnose(values.data_dir, values.timeout):
    print(f'{finding.subject:20}{finding.text}', flush=True)
    remedy = remedy or finding.remedy
  print(f'NOT READY: {remedy}' if remedy else 'READY')
  return 2 if remedy else 0


_COMMAND = command_line.Command(
    name='doctor',
    summary=__doc__ or '',
    examples=('', '--data_dir=DIR'),
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
