"""However its owner ends, a worker ends too; these tests need no TensorFlow."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from tff_fedopt.runtime import worker as worker_lib
from tff_fedopt.testing import pids

PATIENCE_SECONDS = 10

# Starts a worker, prints the process ids that have to vanish, and ends.
OWNER = """
import multiprocessing, os, signal, sys, threading, time
from tff_fedopt.runtime import worker as worker_lib

workers = []
# The starting thread ends at once, which must not end the worker.
thread = threading.Thread(target=lambda: workers.append(worker_lib.Worker(2)))
thread.start()
thread.join()
time.sleep(0.3)
assert workers[0].is_alive()
how = sys.argv[1]
children = []
if how.endswith('-with-child'):
  # The children have copies of all open files. One ends, one outlives us.
  fork = multiprocessing.get_context('fork')
  stopper = fork.Process(target=workers[0].stop)
  stopper.start()
  stopper.join()
  assert workers[0].is_alive()
  children.append(os.fork())
  if not children[0]:
    os.closerange(1, 3)  # The test waits for the end of both pipes.
    time.sleep(60)
    os._exit(0)
print(workers[0].pid, *children, flush=True)
if how == 'return':
  pass
elif how == 'exception':
  raise RuntimeError('unhandled')
else:
  os.kill(os.getpid(), signal.Signals[how.split('-')[0]])
  time.sleep(60)
"""


@pytest.mark.parametrize(
    'how, code',
    [
        ('return', 0),
        ('exception', 1),
        ('SIGINT', -signal.SIGINT),
        ('SIGTERM', -signal.SIGTERM),
        ('SIGKILL', -signal.SIGKILL),
        ('SIGKILL-with-child', -signal.SIGKILL),
    ],
)
def test_worker_ends_with_its_owner(how, code):
  # `run` also waits for the end of both output pipes: a worker that held one
  # would let `command | cat` hang.
  result = subprocess.run(
      [sys.executable, '-c', OWNER, how],
      capture_output=True,
      text=True,
      timeout=30,
  )
  assert result.returncode == code, result.stderr
  pid, *children = map(int, result.stdout.split())
  try:
    pids.wait_until_gone([pid], PATIENCE_SECONDS)
    assert all(map(pids.runs, children))
  finally:
    for child in children:
      os.kill(child, signal.SIGKILL)


def test_worker_ends_with_its_supervisor():
  worker = worker_lib.Worker(1)
  worker._supervisor.kill()
  assert not worker.is_alive(PATIENCE_SECONDS)
  pids.wait_until_gone([worker.pid], PATIENCE_SECONDS)
  worker.stop()


def test_stop_ends_the_worker():
  worker = worker_lib.Worker(1)
  assert worker.is_alive()
  worker.stop()
  assert not pids.runs(worker.pid)
  assert not worker.is_alive(1.0)
  worker.stop()


def test_killed_worker_is_noticed_and_named():
  worker = worker_lib.Worker(1)
  os.kill(worker.pid, signal.SIGKILL)
  assert not worker.is_alive(1.0)
  assert f'(process {worker.pid}) was killed by SIGKILL' in worker.death()
  worker.stop()


def test_worker_gets_its_concurrency_and_nothing_of_ours():
  worker = worker_lib.Worker(3)
  process = pathlib.Path(f'/proc/{worker.pid}')
  command = process.joinpath('cmdline').read_text().split('\0')
  assert '--max_concurrent_computation_calls=3' in command
  # Anonymous files apart (sockets, event queues): no pipe, no terminal.
  files = {os.readlink(fd) for fd in process.joinpath('fd').iterdir()}
  named = {f for f in files if not f.startswith(('socket:', 'anon_inode:'))}
  assert len(named) == 2 and os.devnull in named
  assert os.getsid(worker.pid) != os.getsid(0)
  worker.stop()


def test_a_worker_that_does_not_start_says_why(monkeypatch):
  monkeypatch.setattr(worker_lib, 'worker_binary', lambda: '/missing/worker')
  with pytest.raises(RuntimeError, match='/missing/worker: No such file'):
    worker_lib.Worker(1)


@pytest.mark.parametrize(
    'version,threshold',
    [
        ('glibc 2.31', 32 << 20),
        ('glibc 2.34', 32 << 20),
        ('glibc 2.35', 4 << 30),
        ('glibc 3.0', 4 << 30),
        (None, 32 << 20),
    ],
)
def test_worker_keeps_what_was_freed(monkeypatch, version, threshold):
  monkeypatch.setattr(os, 'confstr', lambda name: version)
  for name in ('MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_'):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setenv('MALLOC_ARENA_MAX', '7')
  environment = worker_lib._worker_environment()
  assert environment['MALLOC_MMAP_THRESHOLD_'] == str(threshold)
  assert int(environment['MALLOC_TRIM_THRESHOLD_']) > threshold
  # What the user has set stays.
  assert environment['MALLOC_ARENA_MAX'] == '7'
