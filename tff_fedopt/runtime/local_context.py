"""A TFF execution context in this process, on the TensorFlow installed here."""

import collections
import concurrent.futures
import os
import threading
import weakref

import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.runtime import calls as calls_lib
from tff_fedopt.runtime import errors
from tff_fedopt.runtime import leaf as leaf_lib
from tff_fedopt.runtime import plan as plan_lib
from tff_fedopt.runtime import values


class Context(tff.framework.SyncContext):
  """Runs computations on TensorFlow in this process.

  Clients are gone through once, several at a time, each in a thread on its
  device; what they give is summed in their order, so that neither the number of
  threads and devices nor their speed changes a result.
  """

  def __init__(self, devices: tuple[str, ...], max_concurrent_clients: int):
    """Takes where computations run.

    Args:
      devices: Names of TensorFlow's logical devices, such as '/device:CPU:0',
        which take clients in turn; the server is on the first.
      max_concurrent_clients: How many clients are computed at the same time.
    """
    self._owner = os.getpid()
    self._devices = devices
    self._num_threads = max_concurrent_clients
    self._lock = threading.Lock()
    # A computation's hash would serialise all of it, so by identity.
    self._plans = {}
    self._leaves = weakref.WeakValueDictionary()

  def invoke(self, comp, arg):
    """Runs `comp` on `arg`.

    Args:
      comp: A computation.
      arg: Its argument, or None.

    Returns:
      Arrays and data sets in the containers of the computation's type.

    Raises:
      leaf.Unsupported: If the computation needs another engine.
      RuntimeError: If it failed.
    """
    if os.getpid() != self._owner:
      raise RuntimeError(
          'TensorFlow cannot be used in a forked process; start a new one, or'
          " use engine='worker'"
      )
    comp_type = comp.type_signature
    plan = self._plan(comp)
    with tf.device('/device:CPU:0'):
      ingestion = values.Ingestion()
      argument = None
      if arg is not None:
        argument = ingestion.value(arg, comp_type.parameter)
      num_clients = ingestion.num_clients or 0
      result = self._run(plan, argument, num_clients)
      return values.result(result, comp_type.result, num_clients)

  def stop(self) -> None:
    """Does nothing: no process has to be stopped."""

  def worker_pids(self) -> list[int]:
    """Returns the process ids of workers, of which there are none."""
    return []

  def _run(self, plan, argument, num_clients):
    """Runs a plan in other threads, so that this one can be interrupted."""
    run = _Run(self._devices, self._num_threads, num_clients)
    with concurrent.futures.ThreadPoolExecutor(1) as server:
      try:
        return server.submit(run.results, plan, argument).result()
      except tf.errors.OpError as e:
        raise _translated(e, self._devices) from e
      finally:
        run.calls.cancel()

  def _plan(self, comp):
    with self._lock:
      entry = self._plans.get(id(comp))
      if entry is None:
        gone = weakref.ref(comp, lambda _, key=id(comp): self._forget(key))
        entry = self._plans[id(comp)] = gone, plan_lib.make(comp, self._leaf)
      return entry[1]

  def _forget(self, key):
    self._plans.pop(key, None)

  def _leaf(self, block):
    key = block.proto.SerializeToString(deterministic=True)
    leaf = self._leaves.get(key)
    if leaf is None:
      leaf = leaf_lib.Leaf(block.proto, block.type_signature.result)
      self._leaves[key] = leaf
    return leaf


class _Run:
  """One call of a computation."""

  def __init__(self, devices, num_threads, num_clients):
    self._devices = devices
    self._num_threads = num_threads
    self._num_clients = num_clients
    self.calls = calls_lib.Calls()

  def results(self, plan, argument):
    """Goes through a plan's passes; returns its result."""
    environment = {plan.parameter: argument, plan_lib.CALLS: self.calls}
    with tf.device(self._devices[0]):
      for one_pass in plan.passes:
        for step in one_pass.server:
          environment[step.name] = step.value(environment)
        if one_pass.clients or one_pass.aggregates:
          self._go_through_clients(one_pass, environment)
      return plan.result(environment)

  def _go_through_clients(self, one_pass, environment):
    """Runs the clients' steps; adds kept values and sums to an environment."""
    kept = {
        name: plan_lib.PerClient([None] * self._num_clients)
        for name in one_pass.kept
    }
    sums = [
        (aggregate.zero(environment), aggregate.accumulate(environment))
        for aggregate in one_pass.aggregates
    ]
    for i, (given, to_keep) in enumerate(
        self._clients(one_pass, dict(environment))
    ):
      for name, value in to_keep.items():
        kept[name][i] = value
      sums = [
          (accumulate(_pair(total, value)), accumulate)
          for (total, accumulate), value in zip(sums, given)
      ]
    environment |= kept
    for aggregate, (total, _) in zip(one_pass.aggregates, sums):
      environment[aggregate.name] = aggregate.report(environment)(total)

  def _clients(self, one_pass, environment):
    """Yields what each client gives and what is kept of it, in their order."""

    def compute(i):
      with tf.device(self._devices[i % len(self._devices)]):
        own = {
            name: plan_lib.of_client(value, i)
            for name, value in environment.items()
        }
        for step in one_pass.clients:
          own[step.name] = step.value(own)
        given = [aggregate.value(own) for aggregate in one_pass.aggregates]
        return given, {name: own[name] for name in one_pass.kept}

    # One more than compute at a time, which waits to be summed.
    ahead = self._num_threads + 1
    waiting = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(self._num_threads) as threads:
      try:
        for i in range(self._num_clients):
          waiting.append(threads.submit(compute, i))
          if len(waiting) == ahead:
            yield waiting.popleft().result()
        while waiting:
          yield waiting.popleft().result()
      finally:
        for future in waiting:
          future.cancel()


def _pair(total, value):
  return tff.structure.Struct([(None, total), (None, value)])


def _translated(error, devices):
  """A computation's failure, as every engine names it."""
  if isinstance(error, tf.errors.ResourceExhaustedError):
    return RuntimeError(
        f'out of memory on {", ".join(devices)}: lower max_concurrent_clients,'
        f' batch_size or cohort_size ({errors.failure(error.message)})'
    )
  return errors.failure(error.message)
