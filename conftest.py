"""Ends the TFF runtime with the tests, and fails them if a worker survives."""

import os
import pathlib
import sys
import time
import uuid

import pytest

# Every process started below inherits it, also one whose parent has died.
MARK = 'TFF_FEDOPT_TEST_SESSION'
PATIENCE_SECONDS = 10

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault(MARK, uuid.uuid4().hex)


def surviving_workers(mark):
  """Returns the ids of TFF worker processes that carry a session's mark."""
  found = []
  for process in pathlib.Path('/proc').glob('[0-9]*'):
    try:
      if b'worker_binary' not in process.joinpath('cmdline').read_bytes():
        continue
      if f'{MARK}={mark}'.encode() in process.joinpath('environ').read_bytes():
        found.append(int(process.name))
    except OSError:  # It ended meanwhile, or is not ours.
      continue
  return sorted(found)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
  runtime = sys.modules.get('tff_fedopt.runtime')
  if runtime is not None:
    runtime.shutdown()
  if hasattr(session.config, 'workerinput'):
    return  # One of several test processes: only their controller looks.
  deadline = time.monotonic() + PATIENCE_SECONDS
  while survivors := surviving_workers(os.environ[MARK]):
    if time.monotonic() > deadline:
      session.config.survivors = survivors
      session.exitstatus = pytest.ExitCode.TESTS_FAILED
      return
    time.sleep(0.1)


def pytest_terminal_summary(terminalreporter, config):
  if survivors := getattr(config, 'survivors', None):
    terminalreporter.write_line(
        f'FAILED: TFF worker processes outlived the tests: {survivors}',
        red=True,
    )
