"""A process ends up the same, whoever started it."""

import signal
import subprocess
import sys

import pytest

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_STATE = """
import os, signal, sys
{close}
from tff_fedopt.runtime import inherited
inherited.settle()
for number, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
  assert os.get_inheritable(number)
sys.stdin.read()
print('printed')
print('printed', file=sys.stderr)
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
ignored = [
    s.name
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if signal.getsignal(s) == signal.SIG_IGN
]
with open(sys.argv[1], 'w') as f:
  assert f.fileno() > 2
  print(len(blocked), *ignored, file=f)
"""


def _state(processes, tmp_path, close='', **signals):
  path = tmp_path / 'state'
  processes.run(
      [sys.executable, '-c', _STATE.format(close=close), path],
      seconds=60,
      stdin=subprocess.DEVNULL,
      **signals,
  )
  return path.read_text().split()


def test_nothing_stays_blocked(processes, tmp_path):
  assert _state(processes, tmp_path, blocked=_SIGNALS) == ['0']


def test_what_was_ignored_on_purpose_stays_so_and_sigterm_does_not(
    processes, tmp_path
):
  state = _state(processes, tmp_path, ignored=_SIGNALS)
  assert state == ['0', 'SIGINT', 'SIGHUP']


@pytest.mark.parametrize('numbers', ['0', '1', '2', '0, 1', '0, 1, 2'])
def test_closed_standard_files_are_opened(processes, tmp_path, numbers):
  close = f"""
for number in ({numbers},):
  os.close(number)
  setattr(sys, ('stdin', 'stdout', 'stderr')[number], None)
"""
  assert _state(processes, tmp_path, close) == ['0']
