"""How tests share the cores, and that nothing survives them.

Ends the TFF runtime with the tests, and fails them if a worker survives.
"""

import os
import pathlib
import sys
import time
import uuid

import pytest

from tff_fedopt.testing import pids

# Every process started below inherits it, also one whose parent has died.
MARK = 'TFF_FEDOPT_TEST_SESSION'
PATIENCE_SECONDS = 10

pytest_plugins = ['tff_fedopt.testing.processes']

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault(MARK, uuid.uuid4().hex)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
  """One test process for each core that this process may use."""
  return len(os.sched_getaffinity(0))


def take_one_core(environment):
  """Gives one of as many test processes as cores, and all below it, its core.

  TensorFlow and TFF's workers take as many threads as they have cores; those of
  several test processes would only wait for each other.

  Args:
    environment: Variables by which xdist says which of how many this is.
  """
  cores = sorted(os.sched_getaffinity(0))
  if environment.get('PYTEST_XDIST_WORKER_COUNT') == str(len(cores)):
    number = int(environment['PYTEST_XDIST_WORKER'].removeprefix('gw'))
    os.sched_setaffinity(0, {cores[number]})


take_one_core(os.environ)


@pytest.fixture(scope='module', autouse=True)
def _default_engine():
  """What a module's tests compute on is nothing to those of the next."""
  yield
  runtime = sys.modules.get('tff_fedopt.runtime')
  if runtime is not None:
    runtime.choose(runtime.Settings(runtime.DEFAULT_ENGINE))


def surviving_workers(mark):
  """Returns the ids of TFF worker processes that carry a session's mark."""
  return [pid for pid in pids.carrying(MARK, mark) if _is_worker(pid)]


def _is_worker(pid):
  try:
    command = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
  except OSError:  # It ended meanwhile.
    return False
  return b'worker_binary' in command


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
