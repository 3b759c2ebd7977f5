"""The watch for worker processes that outlive the tests."""

import os
import subprocess
import time

import conftest


def _start(mark, name):
  """Starts a sleeping process that is called `name` and carries a mark."""
  return subprocess.Popen(
      ['bash', '-c', f'exec -a {name} sleep 60'],
      env={**os.environ, conftest.MARK: mark},
  )


def test_only_marked_workers_are_survivors():
  with (
      _start('this', '/x/worker_binary') as worker,
      _start('this', '/x/other') as other,
      _start('another', '/x/worker_binary') as foreign,
  ):
    try:
      # bash needs a moment to become the named process.
      deadline = time.monotonic() + 20
      while not (found := conftest.surviving_workers('this')):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    finally:
      for process in (worker, other, foreign):
        process.kill()
  assert found == [worker.pid]
  assert conftest.surviving_workers('this') == []
