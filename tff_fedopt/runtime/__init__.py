"""Where TFF computations run: in this process, or in workers.

`use()` replaces TFF's default context, whose worker process survives its parent
and keeps the parent's standard output open. Importing this module does not
import TensorFlow; `use()` does.
"""

import atexit
from collections.abc import Sequence
import dataclasses
import os
import threading
from typing import Any

from tff_fedopt.runtime import settings as settings_lib
from tff_fedopt.runtime import worker as worker_lib

DEFAULT_ENGINE = 'local'

WorkerDied = worker_lib.WorkerDied
Settings = settings_lib.Settings

_lock = threading.Lock()
_chosen = Settings(engine=DEFAULT_ENGINE)  # What `use()` takes.
_settings = None  # Those of the context.
_context = None  # Of `local_context` or `context`.


def _cores() -> int:
  return len(os.sched_getaffinity(0))


def use(
    engine: str | None = None,
    devices: Sequence[str] = (),
    max_concurrent_clients: int | None = None,
    workers: Sequence[str] = (),
    deterministic_ops: bool = False,
) -> None:
  """Makes TFF computations of the calling thread run on an engine.

  `local` computes in this process, `worker` in a process of TFF's own or in
  several on other machines (docs/engines.md). Without arguments the settings in
  use are kept. A worker starts at the first call of a computation. TFF keeps
  one default context per thread: a new thread that calls computations has to
  call `use()` too.

  Args:
    engine: `local` or `worker`; by default the one that only has `workers` or
      `devices`, else the one in use, else `DEFAULT_ENGINE`.
    devices: What the local engine computes on: `cpu`, `gpu` (all GPUs) or
      `gpu:0,1`; by default the CPU. Their number does not change results.
    max_concurrent_clients: Clients that are computed at the same time; by
      default one for each core that this process may use, or one for each
      device if several devices or a GPU are asked for. Not for remote workers.
    workers: Addresses `host:port` of running `worker_binary` processes; the
      clients of a round are spread over them. Empty: one worker here.
    deterministic_ops: Whether TensorFlow in this process, from now on, takes
      only deterministic kernels, which on a GPU are slower.

  Raises:
    ValueError: If an argument is impossible, contradicts another, or names a
      device that is not there.
    WorkerDied: If an address cannot be reached; the message names it.
  """
  asked = Settings(
      engine, devices, max_concurrent_clients, workers, deterministic_ops
  )
  global _chosen, _settings, _context
  with _lock:
    if asked == Settings():
      asked = _chosen
    asked = _with_engine(asked)
    if asked != _settings:
      context = _new_context(asked)
      if _context is not None:
        _context.stop()
      _settings, _context = asked, context
    _chosen = asked

    import tensorflow_federated as tff

    tff.framework.set_default_context(_context)


def choose(settings: Settings) -> None:
  """Sets what `use()` without arguments takes; starts and imports nothing."""
  global _chosen
  _chosen = _with_engine(settings)


def chosen() -> Settings:
  """Returns what `use()` without arguments takes, the engine filled in."""
  return _chosen


def _with_engine(settings):
  engine = settings.implied_engine() or _chosen.engine
  return dataclasses.replace(settings, engine=engine)


def _new_context(settings):
  concurrent = settings.max_concurrent_clients
  if settings.engine == 'worker':
    from tff_fedopt.runtime import context

    return context.Context(concurrent or _cores(), settings.workers)

  from tff_fedopt.runtime import devices
  from tff_fedopt.runtime import local_context

  names = devices.find(settings.devices or ('cpu',))
  if concurrent is None:
    concurrent = _cores() if devices.is_one_cpu(names) else len(names)
  if settings.deterministic_ops:
    devices.make_deterministic()
  return local_context.Context(names, concurrent)


def in_use() -> dict[str, Any]:
  """Returns the engine in use and what computes, by name, for records."""
  use()
  if _settings.workers:
    computes = [f'worker {address}' for address in _settings.workers]
  else:
    from tff_fedopt.runtime import devices

    names = devices.find(_settings.devices or ('cpu',))
    computes = devices.models(names)
  return dict(engine=_settings.engine, devices=computes)


def shutdown() -> None:
  """Stops the local worker; a later computation starts a new one."""
  with _lock:
    if _context is not None:
      _context.stop()


def worker_pids() -> list[int]:
  """Returns the process ids of the running local workers (none or one)."""
  return [] if _context is None else _context.worker_pids()


atexit.register(shutdown)
