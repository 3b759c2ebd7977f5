"""Processes that a test starts; none outlives it, whatever happens.

The fixture `processes` (made known by the root's conftest.py) starts them:

    result = processes.run([sys.executable, '-c', code], seconds=60)
    with processes.start(['bash', 'x.sh'], stdout=subprocess.PIPE) as process:
      ...

A Python whose start is not what is tested need not import TensorFlow itself:

    result = processes.run(['-c', code], seconds=60, warm=True)
"""

from collections.abc import Iterator, Sequence
import contextlib
import ctypes
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any
import uuid

import pytest

from tff_fedopt.testing import pids
from tff_fedopt.testing import warm_python

# Every process below a test inherits it, also one in a session of its own.
MARK = 'TFF_FEDOPT_TEST'
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_PR_SET_CHILD_SUBREAPER = 36


@functools.cache
def _warm_python() -> socket.socket:
  """Starts this test process's warm Python; it ends with this process."""
  ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
  with its:
    subprocess.Popen(
        [sys.executable, '-I', warm_python.__file__, str(its.fileno()), MARK],
        env={**os.environ, MARK: warm_python.NO_MARK},
        pass_fds=[its.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
  return ours


class _Warm(subprocess.Popen):
  """A process that the warm Python forks."""

  def __init__(self, arguments, *, ignored, blocked, **options):
    self._signals = dict(ignored=[*ignored], blocked=[*blocked])
    super().__init__(arguments, **options)

  # The step of Popen that starts something; the others are of its pipes.
  def _execute_child(self, args, *options):
    folder, variables = options[4:6]
    p2cread, _, _, c2pwrite, _, errwrite = pipes = options[9:15]
    message = dict(
        arguments=[os.fspath(a) for a in args],
        folder=os.path.abspath(folder or '.'),
        variables=dict(variables),
        cores=[*os.sched_getaffinity(0)],
        **self._signals,
    )
    files = [
        number if given == -1 else given
        for number, given in enumerate((p2cread, c2pwrite, errwrite))
    ]
    server = _warm_python()
    libc = ctypes.CDLL(None)
    # Whoever loses its parent becomes our child.
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
      socket.send_fds(server, [json.dumps(message).encode()], files)
      self.pid = int(server.recv(20))
      assert server.recv(20) == b'adopted'
    finally:
      libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    self._child_created = True
    self._close_pipe_fds(*pipes)


class Processes:
  """Starts processes and ends them."""

  def __init__(self):
    self._mark = uuid.uuid4().hex
    self._timers = []
    self._overdue = []

  def start(
      self,
      command: Sequence[Any],
      *,
      seconds: float,
      ignored: Sequence[signal.Signals] = (),
      blocked: Sequence[signal.Signals] = (),
      warm: bool = False,
      **options,
  ) -> subprocess.Popen:
    """Starts a process in a session of its own.

    Args:
      command: What runs.
      seconds: After so many, all that it started is killed and the test fails.
      ignored: Signals that it inherits as ignored. Those that this process
        ignores itself, as whatever a shell runs in its background, are not.
      blocked: Signals that it inherits as blocked.
      warm: Whether the command is arguments (`-c` or `-m` first) of a Python
        that has already imported TensorFlow and TFF.
      **options: Of `subprocess.Popen`.

    Returns:
      The process.
    """
    environment = {**options.pop('env', os.environ), MARK: self._mark}
    if warm:
      process = _Warm(
          command, env=environment, ignored=ignored, blocked=blocked, **options
      )
    else:
      with _handed_on(ignored, blocked):
        process = subprocess.Popen(
            command,
            env=environment,
            start_new_session=True,
            restore_signals=signal.SIGPIPE not in ignored,
            **options,
        )
    timer = threading.Timer(seconds, self._expire, [process, seconds])
    timer.daemon = True
    timer.start()
    self._timers.append(timer)
    return process

  def run(
      self, command: Sequence[Any], *, seconds: float, **options
  ) -> subprocess.CompletedProcess:
    """Runs a process to its end, and that of its output pipes.

    Args:
      command: What runs.
      seconds: As in `start`.
      **options: As in `start`.

    Returns:
      Exit code, standard output and error as text.
    """
    with self.start(
        command,
        seconds=seconds,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    ) as process:
      out, err = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err)

  def mark(self, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes what the product itself starts in this test count as well."""
    monkeypatch.setenv(MARK, self._mark)

  def running(self) -> list[int]:
    """Returns the ids of all processes below this test that run."""
    return pids.carrying(MARK, self._mark)

  def _expire(self, process, seconds):
    self._overdue.append(f'{process.args!r:.200} ran for {seconds:g} s')
    self.end()

  def end(self) -> None:
    """Kills them all."""
    while running := self.running():
      for pid in running:
        with contextlib.suppress(ProcessLookupError):
          os.kill(pid, signal.SIGKILL)

  def close(self) -> None:
    """Kills what still runs; fails if anything was killed for its time."""
    for timer in self._timers:
      timer.cancel()
    self.end()
    assert not self._overdue, self._overdue


@pytest.fixture(name='processes')
def _processes() -> Iterator[Processes]:
  started = Processes()
  yield started
  started.close()


@pytest.fixture(name='interruptible')
def _interruptible() -> Iterator[None]:
  """SIGINT interrupts the test, also where a shell made it be ignored."""
  handler = signal.signal(signal.SIGINT, signal.default_int_handler)
  mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
  yield
  signal.pthread_sigmask(signal.SIG_SETMASK, mask)
  signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def _handed_on(ignored, blocked):
  """Makes this thread's next process inherit exactly this state of signals.

  A handled signal is handed on with its default action, so nothing gets lost
  here meanwhile.
  """
  before = {number: signal.getsignal(number) for number in _SIGNALS}
  mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
  try:
    for number, handler in before.items():
      if number in ignored:
        signal.signal(number, signal.SIG_IGN)
      elif handler == signal.SIG_IGN and number != signal.SIGPIPE:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in before.items():
      signal.signal(number, handler)
