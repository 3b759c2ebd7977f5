"""What a test starts ends with it, and gets the signals that it was given."""

import os
import signal
import subprocess
import sys

import pytest

from tff_fedopt.testing import pids
from tff_fedopt.testing import processes as processes_lib

# Two processes, one of them in a session of its own, that nothing but SIGKILL
# ends.
_STUBBORN = """
import os, signal, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
  signal.signal(number, signal.SIG_IGN)
if not os.fork():
  os.setsid()
  os.fork()
# One write: with PYTHONUNBUFFERED, print makes two, and these three mix.
os.write(1, b'%d\\n' % os.getpid())
time.sleep(600)
"""
_STATE = """
import signal
names = ('SIGINT', 'SIGTERM', 'SIGHUP')
handlers = [signal.getsignal(getattr(signal, name)) for name in names]
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
print(*(n for n, h in zip(names, handlers) if h == signal.SIG_IGN), sep=',')
print(*sorted(s.name for s in blocked), sep=',')
"""


def _started(started):
  process = started.start(
      [sys.executable, '-c', _STUBBORN],
      seconds=60,
      stdout=subprocess.PIPE,
      text=True,
  )
  return process, [int(process.stdout.readline()) for _ in range(3)]


def test_a_test_that_ends_ends_all_that_it_started():
  started = processes_lib.Processes()
  process, running = _started(started)
  assert started.running() == sorted(running)
  started.close()
  process.wait()
  assert not any(map(pids.runs, running))
  assert started.running() == []


def test_what_takes_too_long_is_ended_and_fails_the_test():
  started = processes_lib.Processes()
  result = started.run(['bash', '-c', 'echo begun; sleep 600'], seconds=0.5)
  assert (result.returncode, result.stdout) == (-signal.SIGKILL, 'begun\n')
  with pytest.raises(AssertionError, match='sleep 600.* ran for 0.5 s'):
    started.close()


@pytest.fixture(name='in_background')
def _in_background():
  """As a shell leaves what it starts in its background."""
  before = signal.signal(signal.SIGINT, signal.SIG_IGN)
  mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
  yield
  assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
  signal.signal(signal.SIGINT, before)
  signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@pytest.mark.parametrize('warm', [False, True])
@pytest.mark.parametrize('given', [(), ('SIGINT', 'SIGTERM', 'SIGHUP')])
def test_signals_are_as_asked_whatever_they_are_here(
    processes, in_background, given, warm
):
  del in_background
  for way in ('ignored', 'blocked'):
    numbers = [signal.Signals[name] for name in given]
    result = processes.run(
        ['-c', _STATE] if warm else [sys.executable, '-c', _STATE],
        seconds=60,
        warm=warm,
        **{way: numbers},
    )
    expected = {'ignored': '', 'blocked': ''}
    expected[way] = ','.join(sorted(given) if way == 'blocked' else given)
    assert result.stdout == '{ignored}\n{blocked}\n'.format(**expected)


_WARM = """
import os, sys
ready = 'tensorflow_federated' in sys.modules
import tensorflow as tf
print(ready, __name__, *sys.argv[1:], os.environ['GIVEN'], os.getcwd())
print(sys.stdin.read(), float(tf.reduce_sum(tf.ones([2, 3]))))
"""


def test_a_warm_python_becomes_what_is_asked(processes, tmp_path):
  other = processes.start(
      ['-c', 'import time; time.sleep(600)'], seconds=60, warm=True
  )
  with processes.start(
      ['-c', _WARM, 'a', tmp_path],
      seconds=60,
      warm=True,
      cwd=tmp_path,
      env={'GIVEN': 'this'},
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
  ) as process:
    assert set(processes.running()) == {other.pid, process.pid}
    assert os.getsid(process.pid) == process.pid
    out, _ = process.communicate('read')
  assert process.returncode == 0
  assert out.splitlines() == [
      f'True __main__ a {tmp_path} this {tmp_path}',
      'read 6.0',
  ]
  processes.end()
  assert other.wait() == -signal.SIGKILL


def test_a_warm_python_runs_modules(processes):
  result = processes.run(['-m', 'base64', '-t'], seconds=60, warm=True)
  assert result.returncode == 0, result.stderr
  assert 'Aladdin' in result.stdout


_ENDINGS = """
import atexit, os, signal, sys
atexit.register(print, 'exits')
{end}
"""


@pytest.mark.parametrize(
    'end, code, out, err',
    [
        ('pass', 0, 'exits\n', ''),
        ('sys.exit(7)', 7, 'exits\n', ''),
        ('sys.exit("why")', 1, 'exits\n', 'why'),
        ('raise ValueError("x")', 1, 'exits\n', 'ValueError: x'),
        (
            'os.kill(os.getpid(), signal.SIGINT); signal.pause()',
            -signal.SIGINT,
            'exits\n',
            'KeyboardInterrupt',
        ),
        (
            'os.kill(os.getpid(), signal.SIGTERM); signal.pause()',
            -signal.SIGTERM,
            '',
            '',
        ),
    ],
)
def test_a_warm_python_ends_as_any(processes, end, code, out, err):
  result = processes.run(
      ['-c', _ENDINGS.format(end=end)], seconds=60, warm=True
  )
  assert (result.returncode, result.stdout) == (code, out)
  # What TFF says when it is imported and not used comes last.
  assert err in result.stderr


def test_what_the_product_starts_counts(processes, monkeypatch):
  assert processes.running() == []
  processes.mark(monkeypatch)
  with subprocess.Popen(['sleep', '600'], env=dict(os.environ)) as process:
    assert processes.running() == [process.pid]
    processes.end()
  assert process.returncode == -signal.SIGKILL
