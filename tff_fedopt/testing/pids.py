"""The system's processes, for tests of who ends with whom."""

from collections.abc import Callable, Iterable
import contextlib
import pathlib
import time


def runs(pid: int) -> bool:
  """Whether a process is there and not just waiting to be collected."""
  fields = _fields(pid)
  return bool(fields) and fields[0] != 'Z'


def below(pid: int) -> list[int]:
  """All children of a process, their children too."""
  found = []
  for path in pathlib.Path('/proc').glob('[0-9]*'):
    fields = _fields(path.name)
    if fields and int(fields[1]) == pid:
      found += [int(path.name), *below(int(path.name))]
  return found


def carrying(variable: str, value: str) -> list[int]:
  """All running processes that have an environment variable of this value."""
  entry = f'{variable}={value}'.encode()
  found = []
  for path in pathlib.Path('/proc').glob('[0-9]*'):
    with contextlib.suppress(OSError):  # It ended meanwhile, or is not ours.
      environment = path.joinpath('environ').read_bytes().split(b'\0')
      if entry in environment and runs(int(path.name)):
        found.append(int(path.name))
  return sorted(found)


def _fields(pid):
  """What /proc/PID/stat says after the name: state, parent, ...; else []."""
  try:
    text = pathlib.Path(f'/proc/{pid}/stat').read_text()
  except (FileNotFoundError, ProcessLookupError):
    return []
  return text.rsplit(')', 1)[1].split()


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
  """Returns once the condition holds; fails after so many seconds."""
  end = time.monotonic() + seconds
  while not condition():
    assert time.monotonic() < end, f'{what}: not within {seconds} s'
    time.sleep(0.05)


def wait_until_gone(pids: Iterable[int], seconds: float) -> None:
  """Returns once none of the processes runs; fails after so many seconds.

  Killed, a process still takes its time to end on a busy machine, and whoever
  adopted it to collect it.
  """
  for pid in pids:
    wait_for(lambda: not runs(pid), seconds, f'end of process {pid}')
