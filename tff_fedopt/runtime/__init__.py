"""Where TFF computations run: on this machine, or on workers on several hosts.

`use()` replaces TFF's default context, whose worker process survives its parent
and keeps the parent's standard output open. Importing this module does not
import TensorFlow; `use()` does.
"""

import atexit
from collections.abc import Sequence
import os
import threading

from tff_fedopt.runtime import worker as worker_lib

WorkerDied = worker_lib.WorkerDied

_lock = threading.Lock()
_context = None  # The context in use, a `_execution.Context`.


def _cores() -> int:
  return len(os.sched_getaffinity(0))


def use(
    max_concurrent_clients: int | None = None, workers: Sequence[str] = ()
) -> None:
  """Makes TFF computations of the calling thread run on our workers.

  Without arguments the settings in use are kept. The local worker starts at the
  first call of a computation. TFF keeps one default context per thread: a new
  thread that calls computations has to call `use()` too.

  Args:
    max_concurrent_clients: Clients that a worker computes at the same time;
      default: the cores that this process may use. Local worker only.
    workers: Addresses `host:port` of running `worker_binary` processes; the
      clients of a round are spread over them. Empty: one local worker.

  Raises:
    ValueError: If an argument is impossible.
    WorkerDied: If an address cannot be reached; the message names it.
  """
  global _context
  if max_concurrent_clients is not None and max_concurrent_clients < 1:
    raise ValueError(
        'max_concurrent_clients must be at least 1, got'
        f' {max_concurrent_clients}'
    )
  if isinstance(workers, str):
    raise ValueError(
        f"workers must be a list like ['host:port'], got {workers!r}"
    )
  if workers and max_concurrent_clients is not None:
    raise ValueError(
        'max_concurrent_clients is for the local worker; start remote workers'
        ' with --max_concurrent_computation_calls instead'
    )
  for address in workers:
    host, _, port = address.rpartition(':')
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
      raise ValueError(f"a worker's address must be host:port, got {address!r}")

  import tensorflow_federated as tff

  from tff_fedopt.runtime import context

  with _lock:
    keep = max_concurrent_clients is None and not workers
    if _context is None or not keep:
      settings = (max_concurrent_clients or _cores(), tuple(workers))
      if _context is None or _context.settings != settings:
        context = context.Context(*settings)
        if _context is not None:
          _context.stop()
        _context = context
    tff.framework.set_default_context(_context)


def shutdown() -> None:
  """Stops the local worker; a later computation starts a new one."""
  with _lock:
    if _context is not None:
      _context.stop()


def worker_pids() -> list[int]:
  """Returns the process ids of the running local workers (none or one)."""
  return [] if _context is None else _context.worker_pids()


atexit.register(shutdown)
