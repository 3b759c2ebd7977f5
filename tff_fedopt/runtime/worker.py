"""One local TFF worker process that cannot outlive the process that owns it."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import weakref

from tff_fedopt.runtime import inherited

_START_SECONDS = 120.0
_STOP_SECONDS = 5.0
_LOG_TAIL_BYTES = 2000

# Workers of this process whose pipes a forked child has to close: a child that
# kept the pipe would keep the worker alive after its owner is gone.
_workers = weakref.WeakSet()


class WorkerDied(RuntimeError):
  """A worker process ended, or could not be reached, during a call."""


def worker_binary() -> str:
  """Returns the path of the worker program inside the TFF package."""
  spec = importlib.util.find_spec('tensorflow_federated')
  if spec is None:
    raise RuntimeError('tensorflow_federated is not installed')
  path = os.path.join(os.path.dirname(spec.origin), 'data', 'worker_binary')
  if not os.access(path, os.X_OK):
    raise RuntimeError(f'{path} is missing or cannot be run; reinstall TFF')
  return path


def _allocator() -> dict[str, str]:
  """Returns glibc's variables for one heap that keeps what was freed.

  Returned to the kernel, a freed tensor costs the clearing of its pages at the
  next step: half the time of a round with a large model.
  """
  version = os.confstr('CS_GNU_LIBC_VERSION') or ''
  major, minor = re.match(r'(?:glibc )?(\d+)\.(\d+)|', version).groups('0')
  # Up to 2.34, more than half of a heap's 64 MiB was refused.
  limited = (int(major), int(minor)) < (2, 35)
  return {
      'MALLOC_ARENA_MAX': '1',
      'MALLOC_MMAP_THRESHOLD_': str(32 << 20 if limited else 4 << 30),
      'MALLOC_TRIM_THRESHOLD_': str(16 << 30),
  }


def _worker_environment() -> dict[str, str]:
  return {'TF_CPP_MIN_LOG_LEVEL': '2', **_allocator(), **os.environ}


class Worker:
  """A running worker process on this machine.

  The worker runs under a supervisor (`supervisor.py`) that kills it when
  this process ends in any way. Nothing of the worker is connected to the
  terminal or to pipes of this process.
  """

  def __init__(self, max_concurrent_clients: int):
    """Starts the worker and returns when it accepts connections.

    Args:
      max_concurrent_clients: Number of clients that compute at the same time.

    Raises:
      RuntimeError: If the worker does not start.
    """
    inherited.open_standard_files()
    self._owner = os.getpid()
    self._ended = threading.Event()
    self._status = None
    # Unnamed, so nothing stays behind; error messages show its end.
    self._log = tempfile.TemporaryFile('a+b')
    supervisor = os.path.join(os.path.dirname(__file__), 'supervisor.py')
    self._supervisor = subprocess.Popen(
        [sys.executable, '-I', '-S', supervisor, str(self._owner)]
        # Port 0: the kernel picks a free port while binding, so two starting
        # workers can never meet on one (gRPC would let them share it).
        + [worker_binary(), '--port=0']
        + [f'--max_concurrent_computation_calls={max_concurrent_clients}'],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=self._log,
        env=_worker_environment(),
        # Ctrl-C in a terminal goes to the whole group; the owner decides alone.
        start_new_session=True,
    )
    _workers.add(self)
    listening = threading.Event()
    self.pid = None
    self.address = None
    threading.Thread(target=self._watch, args=(listening,), daemon=True).start()
    try:
      started = listening.wait(_START_SECONDS)
    except BaseException:
      self.stop()
      raise
    if not started or self.address is None:
      self.stop()
      raise RuntimeError(f'the TFF worker did not start{self._log_tail()}')

  def _watch(self, listening: threading.Event) -> None:
    """Follows the supervisor's reports until it ends."""
    reports = b''
    # Unbuffered: a lock held by this thread could block the interpreter's exit.
    while chunk := os.read(self._supervisor.stdout.fileno(), 100):
      reports += chunk
      *lines, reports = reports.split(b'\n')
      for line in lines:
        event, *numbers = line.split()
        if event == b'listening':
          self.pid = int(numbers[0])
          self.address = f'127.0.0.1:{int(numbers[1])}'
          listening.set()
        else:
          self._status = int(numbers[0])
    self._ended.set()
    listening.set()

  def _log_tail(self) -> str:
    size = os.fstat(self._log.fileno()).st_size
    start = max(0, size - _LOG_TAIL_BYTES)
    tail = os.pread(self._log.fileno(), _LOG_TAIL_BYTES, start)
    text = tail.decode(errors='replace').strip()
    return f'; its last output: {text}' if text else ''

  def is_mine(self) -> bool:
    """Whether this process, and not one it was forked from, owns the worker."""
    return os.getpid() == self._owner

  def is_alive(self, patience: float = 0.0) -> bool:
    """Whether the worker runs, after up to `patience` seconds of watching."""
    return self.is_mine() and not self._ended.wait(patience)

  def death(self) -> str:
    """Returns one line that says how the worker ended."""
    if self._status is None:
      how = 'was stopped'
    elif os.WIFSIGNALED(self._status):
      number = os.WTERMSIG(self._status)
      how = f'was killed by {signal.Signals(number).name}'
      if number == signal.SIGKILL:
        how += ' (out of memory?)'
    else:
      how = f'exited with code {os.WEXITSTATUS(self._status)}'
    return f'the TFF worker (process {self.pid}) {how}{self._log_tail()}'

  def stop(self) -> None:
    """Ends the worker; does nothing in a forked child or when it is gone."""
    if not self.is_mine():
      return
    if not self._supervisor.stdin.closed:
      self._supervisor.stdin.close()
    try:
      self._supervisor.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
      self._supervisor.kill()  # The worker dies with it.
      self._supervisor.wait()

  def _disconnect_child(self) -> None:
    # The file objects stay valid, on other files: the numbers of closed
    # descriptors would be given to the child's next files.
    nothing = os.open(os.devnull, os.O_RDWR)
    for pipe in (self._supervisor.stdin, self._supervisor.stdout):
      if not pipe.closed:
        os.dup2(nothing, pipe.fileno(), inheritable=False)
    os.close(nothing)


def _disconnect_all_in_child() -> None:
  for worker in list(_workers):
    worker._disconnect_child()


os.register_at_fork(after_in_child=_disconnect_all_in_child)
