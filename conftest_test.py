"""The watch for worker processes that outlive the tests."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

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


_SAYS_ITS_CORES = """
import os, pytest
@pytest.mark.parametrize('i', range(20))
def test_passes(i):
  name = os.environ['PYTEST_XDIST_WORKER']
  with open(name, 'w') as f:
    f.write(' '.join(map(str, os.sched_getaffinity(0))))
"""


def test_each_test_process_has_a_core_of_its_own(tmp_path, processes):
  root = pathlib.Path(conftest.__file__).parent
  (tmp_path / 'conftest.py').write_text((root / 'conftest.py').read_text())
  (tmp_path / 'a_test.py').write_text(_SAYS_ITS_CORES)
  mine = os.sched_getaffinity(0)
  cores = os.sched_getaffinity(os.getppid())
  os.sched_setaffinity(0, cores)
  try:
    result = processes.run(
        [sys.executable, '-m', 'pytest', '-n', 'auto', 'a_test.py'],
        seconds=120,
        cwd=tmp_path,
        env={
            k: v
            for k, v in {**os.environ, 'PYTHONPATH': str(root)}.items()
            if not k.startswith('PYTEST_')
        },
    )
  finally:
    os.sched_setaffinity(0, mine)
  assert result.returncode == 0, result.stdout
  taken = [path.read_text() for path in sorted(tmp_path.glob('gw*'))]
  assert taken == [str(core) for core in sorted(cores)]


_LEAVES_A_WORKER = '''
import subprocess
def test_passes():
  process = subprocess.Popen(
      ['bash', '-c', 'exec -a /x/worker_binary sleep %d'],
      start_new_session=True)
  open('pid', 'w').write(str(process.pid))
'''


@pytest.mark.parametrize('lives, status', [(60, 1), (0, 0)])
def test_a_surviving_worker_fails_a_session_that_passed(
    tmp_path, lives, status
):
  text = pathlib.Path(conftest.__file__).read_text(encoding='utf-8')
  patience = 'PATIENCE_SECONDS = 10'
  assert patience in text
  text = text.replace(patience, 'PATIENCE_SECONDS = 1')
  (tmp_path / 'conftest.py').write_text(text)
  (tmp_path / 'a_test.py').write_text(_LEAVES_A_WORKER % lives)
  env = {k: v for k, v in os.environ.items() if k != conftest.MARK}
  env['PYTHONPATH'] = str(pathlib.Path(conftest.__file__).parent)
  try:
    result = subprocess.run(
        [sys.executable, '-m', 'pytest', '-n', '1', 'a_test.py'],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
  finally:
    if lives:
      os.kill(int((tmp_path / 'pid').read_text()), signal.SIGKILL)
  assert '1 passed' in result.stdout
  assert result.returncode == status, result.stdout
  assert ('outlived the tests' in result.stdout) == bool(status)


_CHANGES_THE_ENGINE = '''
from tff_fedopt import runtime
def test_changes():
  assert runtime.chosen() == runtime.Settings(runtime.DEFAULT_ENGINE)
  runtime.choose(runtime.Settings('worker', max_concurrent_clients=3))
'''


def test_the_next_module_has_the_default_engine(tmp_path, processes):
  root = pathlib.Path(conftest.__file__).parent
  (tmp_path / 'conftest.py').write_text((root / 'conftest.py').read_text())
  for name in ('a_test.py', 'b_test.py'):
    (tmp_path / name).write_text(_CHANGES_THE_ENGINE)
  result = processes.run(
      [sys.executable, '-m', 'pytest', '-p', 'no:xdist', '.'],
      seconds=120,
      cwd=tmp_path,
      env={**os.environ, 'PYTHONPATH': str(root)},
  )
  assert '2 passed' in result.stdout, result.stdout
