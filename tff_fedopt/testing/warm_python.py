"""A Python that has imported TensorFlow and TFF, and forks at each request.

A program (`python -I warm_python.py SOCKET VARIABLE`) for the fixture
`processes`. What it forks goes on as a fresh interpreter would, with its own
arguments, variables, folder, files, signals, cores and session, and is the
caller's child, since the process between them ends.

TensorFlow and TFF start their threads when they first compute, not when they
are imported: until then a fork lacks nothing. This process computes nothing.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import types

# /proc/PID/environ, by which a test finds what runs below it, says with what a
# process was started: here with this mark, which each fork overwrites.
NO_MARK = 32 * '0'


def serve(requests: socket.socket, variable: str) -> dict:
  """Forks at each request and answers with the id of the new process.

  Ends this process with the other end of `requests`.

  Args:
    requests: Each message describes a process in JSON, and has its three
      standard files.
    variable: Name of the one with the mark.

  Returns:
    In each new process, its description.
  """
  libc = ctypes.CDLL(None)
  libc.getenv.restype = ctypes.c_void_p
  place = libc.getenv(variable.encode())
  while True:
    message, files, _, _ = socket.recv_fds(requests, 1 << 20, 3)
    if not message:
      os._exit(0)
    between = os.fork()
    if not between:
      wanted = json.loads(message)
      if child := os.fork():
        requests.send(str(child).encode())
        os._exit(0)
      ctypes.memmove(place, wanted['variables'][variable].encode(), 32)
      for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
      requests.close()
      return wanted
    os.waitpid(between, 0)
    requests.send(b'adopted')
    for file in files:
      os.close(file)


def become(wanted: dict) -> None:
  """Makes this process the one described, as far as a start would."""
  os.setsid()
  os.chdir(wanted['folder'])
  os.sched_setaffinity(0, wanted['cores'])
  os.environ.clear()
  os.environ.update(wanted['variables'])
  paths = os.environ.get('PYTHONPATH', '').split(os.pathsep)
  sys.path[:0] = ['', *filter(None, paths)]
  sys.dont_write_bytecode = 'PYTHONDONTWRITEBYTECODE' in os.environ
  importlib.import_module('numpy').random.seed()
  signal.signal(signal.SIGINT, signal.default_int_handler)
  for number in (signal.SIGTERM, signal.SIGHUP):  # As nohup, say, left them.
    signal.signal(number, signal.SIG_DFL)
  for number in wanted['ignored']:
    signal.signal(number, signal.SIG_IGN)
  signal.pthread_sigmask(signal.SIG_SETMASK, wanted['blocked'])


def run(way: str, program: str, *arguments: str) -> None:
  """Does what `python WAY PROGRAM ARGUMENTS` does; `-c` or `-m`."""
  sys.argv = [way, *arguments]
  if way == '-m':
    runpy.run_module(program, run_name='__main__', alter_sys=True)
  else:
    main = sys.modules['__main__'] = types.ModuleType('__main__')
    exec(compile(program, '<string>', 'exec'), main.__dict__)


if __name__ == '__main__':
  importlib.import_module('tensorflow_federated')
  # What is there now stays; each fork's end would else look through all of it.
  gc.freeze()

  description = serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
  become(description)
  run(*description['arguments'])
