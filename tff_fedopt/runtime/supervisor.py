"""Holds one TFF worker process and makes sure it never outlives its owner.

Run as a script (`python -I -S supervisor.py OWNER_PID COMMAND…`), with
a pipe from the owner as standard input, a pipe to the owner as standard output
and the worker's log as standard error. It starts COMMAND, prints
`listening PID PORT` once the worker accepts connections and `ended STATUS`
(the wait status) when the worker is gone. The worker is killed when standard
input ends, when the owner process is gone, or when this process dies itself.

A process of its own is needed because only a process whose *main thread* lives
as long as the worker can use the parent-death signal, which fires when the
starting thread ends; and because an owner that is killed cannot clean up.
"""

import ctypes
import os
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1
_STARTING_POLL_SECONDS = 0.02
_POLL_SECONDS = 0.1
_TCP_LISTEN = '0A'


def _listening_port(pid):
  """Returns the port that process `pid` listens on, None if there is none."""
  sockets = set()
  for fd in os.listdir(f'/proc/{pid}/fd'):
    try:
      target = os.readlink(f'/proc/{pid}/fd/{fd}')
    except FileNotFoundError:
      continue
    if target.startswith('socket:['):
      sockets.add(target[len('socket:[') : -1])
  for table in ('tcp', 'tcp6'):
    try:
      with open(f'/proc/{pid}/net/{table}') as f:
        rows = [line.split() for line in f][1:]
    except FileNotFoundError:
      continue  # The kernel has no IPv6.
    for row in rows:
      if row[3] == _TCP_LISTEN and row[9] in sockets:
        return int(row[1].rsplit(':', 1)[1], 16)
  return None


def _start(command):
  """Starts `command` tied to the life of this process; returns its pid."""
  libc = ctypes.CDLL(None)
  supervisor = os.getpid()
  pid = os.fork()
  if pid:
    return pid
  libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
  if os.getppid() != supervisor:  # It died before the line above.
    os._exit(1)
  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
  os.dup2(os.open(os.devnull, os.O_RDWR), 0)
  os.dup2(2, 1)
  try:
    os.execv(command[0], command)
  except OSError as e:
    os.write(2, f'{command[0]}: {e.strerror}\n'.encode())
    os._exit(127)


def _report(line):
  try:
    os.write(1, line.encode())
  except BrokenPipeError:
    pass  # The owner is gone; the loop sees it too.


def _owner_closed(timeout):
  """Whether standard input ends within so many seconds."""
  readable, _, _ = select.select([0], [], [], timeout)
  return bool(readable) and not os.read(0, 4096)


def main():
  # Whatever the owner's own starter ignored or blocked: this can be ended, and
  # learns how the worker ended.
  signal.pthread_sigmask(signal.SIG_SETMASK, [])
  for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
    signal.signal(number, signal.SIG_DFL)
  owner, command = int(sys.argv[1]), sys.argv[2:]
  pid = _start(command)
  port = None
  while True:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
      _report(f'ended {status}\n')
      return
    if port is None:
      port = _listening_port(pid)
      if port is not None:
        _report(f'listening {pid} {port}\n')
    timeout = _STARTING_POLL_SECONDS if port is None else _POLL_SECONDS
    if _owner_closed(timeout) or os.getppid() != owner:
      os.kill(pid, signal.SIGKILL)
      os.waitpid(pid, 0)
      return


if __name__ == '__main__':
  main()
