"""Where tests find real data; they are skipped, saying so, where there is none.

    data_dir = real_data.directory()          # skips the test
    data_dir = real_data.directory('cifar10')  # cifar10.npz

Looks for a folder named by the environment variable TFF_FEDOPT_REAL_DATA, else
builds the small real caches once with `../shared/data/build_tff_cache.py`, if
that lies beside the repository, into the user's cache folder.
"""

import functools
import os
import pathlib
import subprocess
import sys

import pytest

from tasks.data import sources
from tasks.data import sqlite_writer

VARIABLE = 'TFF_FEDOPT_REAL_DATA'
_ROOT = str(pathlib.Path(__file__).resolve().parents[2])
_BUILDER = os.path.join(
    os.path.dirname(_ROOT), 'shared', 'data', 'build_tff_cache.py'
)
_ALL = ('cifar100', 'emnist', 'shakespeare', 'stackoverflow', 'cifar10')


def _filename(dataset: str) -> str:
  if dataset == 'cifar10':
    return 'cifar10.npz'
  return sources.DATASETS[dataset].filename


@functools.cache
def _build(dataset: str) -> str:
  """Runs the builder; it skips what is up to date (under a second)."""
  folder = os.path.join(sources.user_cache_dir(), 'real_data')
  with sqlite_writer.locked(os.path.join(folder, dataset)):
    if not os.path.exists(os.path.join(folder, _filename(dataset))):
      subprocess.run(
          [sys.executable, _BUILDER, folder, '--only', dataset],
          check=True,
          capture_output=True,
          timeout=600,
      )
  return folder


def directory(*datasets: str) -> str:
  """Returns a folder that holds real data sets, or skips the test.

  Args:
    *datasets: The data sets needed; none means the four federated ones.

  Returns:
    A value for `data_dir`.
  """
  datasets = datasets or _ALL[:4]
  given = os.environ.get(VARIABLE)
  if given:
    missing = [
        _filename(d)
        for d in datasets
        if not os.path.exists(os.path.join(given, _filename(d)))
    ]
    if missing:
      pytest.skip(f'{VARIABLE}={given} has no {", ".join(missing)}')
    return given
  if not os.path.exists(_BUILDER):
    pytest.skip(f'no real data: {VARIABLE} is not set and {_BUILDER} is absent')
  return [_build(dataset) for dataset in datasets][0]
