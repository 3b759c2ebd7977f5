"""What a process has from whoever started it, and had better not depend on."""

import os
import signal
import sys


def settle() -> None:
  """Makes this process one that can be ended, with its three standard files.

  * No signal stays blocked, and SIGTERM, by which services and containers end
    what they started, does not stay ignored; nor does SIGCHLD, without which
    nobody learns how children ended. An ignored SIGINT or SIGHUP is the wish of
    whoever typed `nohup` or `&`, and stays.
  * Standard files that are closed are opened, on nothing; see
    `open_standard_files`.

  For commands, before they do anything else.
  """
  signal.pthread_sigmask(signal.SIG_SETMASK, [])
  for number in (signal.SIGTERM, signal.SIGCHLD):
    if signal.getsignal(number) == signal.SIG_IGN:
      signal.signal(number, signal.SIG_DFL)
  open_standard_files()


def open_standard_files() -> None:
  """Opens those of the standard files that are closed, on nothing.

  Otherwise the next files and pipes of this process get their numbers: what
  TensorFlow has to say would be written into a checkpoint or to a worker.
  """
  for number, name in enumerate(('stdin', 'stdout', 'stderr')):
    try:
      os.fstat(number)
    except OSError:
      # The lowest free number is given out: this one.
      os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if getattr(sys, name) is None:
      mode = 'w' if number else 'r'
      setattr(sys, name, open(number, mode, closefd=False))
