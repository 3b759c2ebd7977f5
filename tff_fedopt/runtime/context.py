"""TFF execution contexts on workers that we start, watch and stop ourselves."""

import contextlib
import os
import socket
import threading

import grpc
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import executor_pb2_grpc
from tensorflow_federated.python.core.environments.tensorflow_frontend import (
  tensorflow_computation,
)

from tff_fedopt.runtime import errors
from tff_fedopt.runtime import fixed_order
from tff_fedopt.runtime import remote_executor
from tff_fedopt.runtime import worker as worker_lib

_CONNECT_SECONDS = 10.0
# A killed worker's connection breaks slightly before its end is reported.
_DEATH_REPORT_SECONDS = 2.0
_MESSAGE_BYTES = 2**31 - 1
# About the values of one call: the worker keeps states and client data of at
# most one finished round.
_DISPOSE_BATCH = 5
_CHANNEL_OPTIONS = (
    ('grpc.max_receive_message_length', _MESSAGE_BYTES),
    ('grpc.max_send_message_length', _MESSAGE_BYTES),
    # Proxies from the environment are not for workers.
    ('grpc.enable_http_proxy', 0),
)


def _check_reachable(address: str) -> None:
  host, _, port = address.rpartition(':')
  try:
    socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
  except OSError as e:
    raise worker_lib.WorkerDied(
        f'no TFF worker answers at {address} ({e.strerror or e}); start'
        ' worker_binary there, or correct the address'
    ) from None


class _Stub(tff.framework.RemoteExecutorStub):
  """Calls a worker; turns its end into `WorkerDied` instead of retrying.

  TFF's own stub marks the end of a worker as an error to retry for ever, and
  its thread that watches the connection makes gRPC unusable in forked children.
  """

  def __init__(self, address: str, worker: worker_lib.Worker | None = None):
    """Connects to `address`; `worker` is None if it is not our process."""
    self._address = address
    self._worker = worker
    self._owner = os.getpid()
    self._stub = executor_pb2_grpc.ExecutorGroupStub(
        grpc.insecure_channel(address, _CHANNEL_OPTIONS)
    )

  def _call(self, method, request):
    try:
      return method(request)
    except grpc.RpcError as e:
      if self._worker is not None:
        if not self._worker.is_alive(_DEATH_REPORT_SECONDS):
          raise worker_lib.WorkerDied(self._worker.death()) from e
      elif e.code() is grpc.StatusCode.UNAVAILABLE:
        raise worker_lib.WorkerDied(
            f'the TFF worker at {self._address} is gone: {e.details()}'
        ) from e
      raise errors.failure(e.details()) from e

  def get_executor(self, request):
    return self._call(self._stub.GetExecutor, request)

  def create_value(self, request):
    return self._call(self._stub.CreateValue, request)

  def create_call(self, request):
    return self._call(self._stub.CreateCall, request)

  def create_struct(self, request):
    return self._call(self._stub.CreateStruct, request)

  def create_selection(self, request):
    return self._call(self._stub.CreateSelection, request)

  def compute(self, request):
    return self._call(self._stub.Compute, request)

  def dispose(self, request):
    self._release(self._stub.Dispose, request)

  def dispose_executor(self, request):
    self._release(self._stub.DisposeExecutor, request)

  def _release(self, method, request):
    """Frees worker memory; also called by finalizers, so it cannot fail."""
    if os.getpid() != self._owner:
      return  # A forked child's copy of the value: the worker is not its own.
    with contextlib.suppress(grpc.RpcError):
      method(request)


class _ExecutorFactory(tff.framework.ExecutorFactory):
  """Executors on one worker, made anew after any failed call."""

  def __init__(self, connect):
    """`connect()` returns the stub of a running worker."""
    self._connect = connect
    self._stub = None
    self._executors = None

  def create_executor(self, cardinalities):
    stub = self._connect()
    if stub is not self._stub:
      self._stub = stub
      self._executors = tff.framework.ResourceManagingExecutorFactory(
          self._new_executor
      )
    return self._executors.create_executor(cardinalities)

  def _new_executor(self, cardinalities):
    executor = remote_executor.RemoteExecutor(
        self._stub, dispose_batch_size=_DISPOSE_BATCH
    )
    executor.set_cardinalities({tff.CLIENTS: 0, **cardinalities})
    return executor

  def clean_up_executor(self, cardinalities):
    if self._executors is not None:
      self._executors.clean_up_executor(cardinalities)
    # A dead worker takes the executors of all cardinalities with it.
    self._stub = None


def _compile(comp):
  return tff.backends.native.desugar_and_transform_to_native(
      fixed_order.computation(comp)
  )


def _context_arguments(connect):
  return dict(
      executor_fn=_ExecutorFactory(connect),
      compiler_fn=_compile,
      transform_args=tensorflow_computation.transform_args,
      transform_result=tensorflow_computation.transform_result,
  )


class Context(tff.framework.SyncContext):
  """Runs computations on one local worker or on several remote ones.

  Computations run in a private thread with its own event loop, so a call works
  inside a running loop as well.
  """

  def __init__(self, max_concurrent_clients: int, addresses: tuple[str, ...]):
    self.settings = (max_concurrent_clients, addresses)
    self._lock = threading.RLock()
    self._worker = None
    self._stub = None
    self._inherited = []
    self._build()

  def _build(self):
    self._owner = os.getpid()
    _, addresses = self.settings
    if not addresses:
      self._inner = tff.framework.SyncExecutionContext(
          **_context_arguments(self._local_stub)
      )
      return
    contexts = []
    for address in addresses:
      _check_reachable(address)
      stub = _Stub(address)
      contexts.append(
          tff.framework.AsyncExecutionContext(
              **_context_arguments(lambda stub=stub: stub)
          )
      )
    self._inner = tff.backends.native.create_mergeable_comp_execution_context(
        contexts
    )

  def _local_stub(self):
    """Returns the stub of the local worker, started if there is none."""
    with self._lock:
      if self._worker is None or not self._worker.is_alive():
        self._worker = worker_lib.Worker(self.settings[0])
        self._stub = _Stub(self._worker.address, self._worker)
      return self._stub

  def invoke(self, comp, arg):
    """Runs `comp` on `arg`; raises `WorkerDied` if a worker ends meanwhile."""
    with self._lock:
      if os.getpid() != self._owner:
        # In a forked child threads and connections do not exist. They are kept
        # unused: their destructors would wait for the parent's threads.
        self._inherited.append((self._inner, self._stub))
        self._build()
    try:
      return self._inner.invoke(comp, arg)
    except Exception:
      raise
    except BaseException:
      # Interrupted. Without this, the abandoned call would keep the cores busy
      # and the next call waiting.
      self.stop()
      raise

  def stop(self) -> None:
    """Stops the local worker, if any."""
    with self._lock:
      if self._worker is not None:
        self._worker.stop()

  def worker_pids(self) -> list[int]:
    """Returns the process ids of the local workers that run."""
    worker = self._worker
    return [worker.pid] if worker is not None and worker.is_alive() else []
