"""Where a run's numbers came from."""

import datetime
import functools
import importlib.metadata
import os
import pathlib
import platform
import subprocess
from typing import Any

_PACKAGES = {
    'tff': 'tensorflow-federated',
    'tf': 'tensorflow',
    'tfds': 'tensorflow-datasets',
    'jax': 'jax',
    'numpy': 'numpy',
    'pandas': 'pandas',
}


def now() -> str:
  """The time, in UTC, as ISO 8601 to the second."""
  return datetime.datetime.now(datetime.timezone.utc).isoformat(
      timespec='seconds'
  )


def environment() -> dict[str, Any]:
  """Returns versions, commit and machine, as JSON values."""
  return {
      'python': platform.python_version(),
      **_versions(),
      'commit': commit(),
      'cores': len(os.sched_getaffinity(0)),
      'memory_bytes': os.sysconf('SC_PAGE_SIZE')
      * os.sysconf('SC_PHYS_PAGES'),
      'host_os': platform.platform(),
      'cpu': _cpu(),
  }


@functools.cache
def _versions():
  versions = {}
  for name, package in _PACKAGES.items():
    try:
      versions[name] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      versions[name] = None
  return versions


@functools.cache
def commit() -> str | None:
  """Returns the code's commit, `-dirty` if changed since, or None."""
  root = pathlib.Path(__file__).resolve().parents[2]
  try:
    return subprocess.run(
        ['git', '-C', root, 'describe', '--always', '--dirty', '--abbrev=40']
        + ['--exclude=*'],
        capture_output=True,
        check=True,
        text=True,
        timeout=10,
    ).stdout.strip()
  except (OSError, subprocess.SubprocessError):
    return None  # Not a checkout, or no git.


def _cpu() -> str:
  try:
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
      if line.startswith('model name'):
        return line.split(':', 1)[1].strip()
  except OSError:
    pass
  return platform.machine()
