"""However its owner ends, a worker ends too; these tests need no TensorFlow."""

import os
import pathlib
import signal
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
def test_worker_ends_with_its_owner(processes, how, code):
  # `run` also waits for the end of both output pipes: a worker that held one
  # would let `command | cat` hang.
  result = processes.run([sys.executable, '-c', OWNER, how], seconds=120)
  assert result.returncode == code, result.stderr
  pid, *children = map(int, result.stdout.split())
  pids.wait_until_gone([pid], PATIENCE_SECONDS)
  assert all(map(pids.runs, children))


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


@pytest.mark.parametrize('way', ['ignored', 'blocked'])
@pytest.mark.parametrize('how, code', [('return', 0), ('SIGKILL', -9)])
def test_worker_ends_with_an_owner_that_no_signal_reaches(
    processes, way, how, code
):
  result = processes.run(
      [sys.executable, '-c', OWNER, how], seconds=120, **{way: _SIGNALS}
  )
  assert result.returncode == code, result.stderr
  pids.wait_until_gone([int(result.stdout)], PATIENCE_SECONDS)
  # Nor does its supervisor stay.
  pids.wait_for(lambda: not processes.running(), PATIENCE_SECONDS, 'all ends')


# An owner without standard files, which its pipes would else become.
CLOSED = """
import os, sys
result = os.dup(1)
os.closerange(0, 3)
from tff_fedopt.runtime import worker as worker_lib
worker = worker_lib.Worker(1)
os.write(1, b'from C++ code')
os.write(2, b'from C++ code')
assert worker.is_alive(1.0)
worker.stop()
os.write(result, b'worked')
"""


def test_worker_of_an_owner_whose_standard_files_are_closed(processes):
  result = processes.run([sys.executable, '-c', CLOSED], seconds=120)
  assert result.stdout == 'worked'


def _state_of_signals(pid):
  """Blocked and ignored of the signals by which processes are ended."""
  text = pathlib.Path(f'/proc/{pid}/status').read_text()
  fields = dict(line.split(':\t') for line in text.splitlines())
  return [
      {n for n in _SIGNALS[:3] if int(fields[name], 16) >> (n - 1) & 1}
      for name in ('SigBlk', 'SigIgn')
  ]


def test_worker_and_supervisor_can_be_ended_by_signals():
  before = {n: signal.signal(n, signal.SIG_IGN) for n in _SIGNALS[:3]}
  mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
  try:
    worker = worker_lib.Worker(1)
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in before.items():
      signal.signal(number, handler)
  assert _state_of_signals(worker.pid) == [set(), set()]
  blocked, ignored = _state_of_signals(worker._supervisor.pid)
  assert not blocked and ignored <= {signal.SIGINT}
  worker._supervisor.terminate()
  assert not worker.is_alive(PATIENCE_SECONDS)
  pids.wait_until_gone([worker.pid], PATIENCE_SECONDS)
  worker.stop()


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
