"""Computations on our workers: results, interruptions, several hosts."""

import asyncio
import os
import pathlib
import signal
import socket
import threading

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt import runtime
from tff_fedopt.runtime import worker as worker_lib
from tff_fedopt.testing import pids

# A call that would take hours: a test whose calls nothing ends is ended.
_ENDLESS = 2**40
_SOON_SECONDS = 10.0


@tff.tensorflow.computation(tff.SequenceType(np.int64), np.float32)
def _client_mean(dataset, start):
  count, total = dataset.reduce(
      (np.int64(0), np.int64(0)), lambda s, x: (s[0] + 1, s[1] + x)
  )
  return start + tf.cast(total / count, tf.float32), tf.cast(count, tf.float32)


@tff.federated_computation(
    tff.FederatedType(np.float32, tff.SERVER),
    tff.FederatedType(tff.SequenceType(np.int64), tff.CLIENTS),
)
def _average(start, data):
  """As in a round of FedAvg: broadcast, local work, weighted mean."""
  result = tff.federated_map(
      _client_mean, (data, tff.federated_broadcast(start))
  )
  return tff.federated_mean(result[0], result[1])


def _clients(*sizes):
  return [tf.data.Dataset.range(n) for n in sizes]


_SIZES = (2, 4, 6, 8, 10)
# start + Σ n·(n-1)/2 / Σ n
_EXPECTED = 0.5 + sum(n * (n - 1) / 2 for n in _SIZES) / sum(_SIZES)


def _check_average():
  result = _average(np.float32(0.5), _clients(*_SIZES))
  np.testing.assert_allclose(result, _EXPECTED, rtol=1e-6)


@pytest.fixture(autouse=True)
def local_worker():
  runtime.use('worker')


def test_average_and_one_worker_for_all_calls():
  _check_average()
  pids = runtime.worker_pids()
  runtime.use()
  _check_average()
  assert len(pids) == 1 and runtime.worker_pids() == pids
  assert _average(np.float32(0.5), _clients(4)) == 2.0


def test_concurrency_is_the_cores_or_as_asked():
  def flag():
    _check_average()
    (pid,) = runtime.worker_pids()
    command = pathlib.Path(f'/proc/{pid}/cmdline').read_text().split('\0')
    return int(command[2].removeprefix('--max_concurrent_computation_calls='))

  cores = len(os.sched_getaffinity(0))
  assert flag() == cores
  (first,) = runtime.worker_pids()
  runtime.use(max_concurrent_clients=cores + 1)
  assert flag() == cores + 1
  assert not os.path.exists(f'/proc/{first}')
  runtime.use()  # Keeps what was asked for.
  assert flag() == cores + 1
  runtime.use(max_concurrent_clients=cores)


def test_inside_a_running_event_loop():
  async def cell():
    _check_average()

  asyncio.run(cell())


def test_in_another_thread():
  errors = []

  def work():
    try:
      runtime.use()
      _check_average()
    except BaseException as e:
      errors.append(e)

  threads = [threading.Thread(target=work) for _ in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert not errors
  assert len(runtime.worker_pids()) == 1


def test_worker_killed_during_a_call_then_a_fresh_one():
  _check_average()
  (pid,) = runtime.worker_pids()
  threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
  with pytest.raises(runtime.WorkerDied, match=f'{pid}.*SIGKILL'):
    _average(np.float32(0.5), _clients(_ENDLESS, 2))
  _check_average()
  assert runtime.worker_pids() != [pid]


def test_interrupt_during_a_call(interruptible):
  del interruptible
  _check_average()
  (pid,) = runtime.worker_pids()
  threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
  with pytest.raises(KeyboardInterrupt):
    _average(np.float32(0.5), _clients(_ENDLESS, 2))
  assert not os.path.exists(f'/proc/{pid}')  # It stopped computing.
  _check_average()


def test_a_failing_computation_is_an_error_once_and_keeps_the_worker():
  @tff.tensorflow.computation(np.int32)
  def positive(x):
    with tf.control_dependencies([tf.debugging.assert_positive(x)]):
      return tf.identity(x)

  _check_average()
  pids = runtime.worker_pids()
  with pytest.raises(RuntimeError, match='Condition x > 0') as error:
    positive(-1)
  assert not isinstance(error.value, runtime.WorkerDied)
  assert positive(1) == 1
  assert runtime.worker_pids() == pids


def test_values_cross_unchanged():
  member = tff.to_type([
      ('empty', []),
      ('nested', [('text', np.str_), ('deep', [(np.float32, [2, 3])])]),
      ('flag', np.bool_),
  ])

  @tff.federated_computation(
      tff.FederatedType(member, tff.SERVER),
      tff.FederatedType((np.int64, [None]), tff.CLIENTS),
  )
  def same(state, vectors):
    return state, tff.federated_broadcast(state), vectors

  deep = np.arange(6, dtype=np.float32).reshape(2, 3)
  nested = {'text': b'\xff', 'deep': (deep,)}
  state = {'empty': (), 'nested': nested, 'flag': True}
  vectors = [np.array([1, 2], np.int64), np.array([], np.int64)]
  server, clients, back = same(state, vectors)
  for result in (server, clients):
    assert result['nested']['text'] == b'\xff'
    np.testing.assert_array_equal(result['nested']['deep'][0], deep)
    assert result['flag']
  np.testing.assert_array_equal(back[0], vectors[0])
  assert len(back) == 2 and back[1].shape == (0,)


def test_clients_spread_over_two_remote_workers():
  remote = [worker_lib.Worker(1), worker_lib.Worker(1)]
  _check_average()
  (local,) = runtime.worker_pids()
  try:
    runtime.use(workers=[worker.address for worker in remote])
    assert not os.path.exists(f'/proc/{local}')
    assert runtime.worker_pids() == []
    for _ in range(2):
      _check_average()
    remote[1].stop()
    with pytest.raises(runtime.WorkerDied, match=remote[1].address):
      _check_average()
  finally:
    for worker in remote:
      worker.stop()
    runtime.use(max_concurrent_clients=len(os.sched_getaffinity(0)))
  _check_average()


def test_an_unreachable_worker_is_named():
  with socket.socket() as unused:  # Bound, but nobody listens.
    unused.bind(('127.0.0.1', 0))
    address = f'127.0.0.1:{unused.getsockname()[1]}'
    with pytest.raises(runtime.WorkerDied, match=f'{address}.*refused'):
      runtime.use(workers=[address])
  _check_average()


@pytest.mark.parametrize(
    'arguments, message',
    [
        (dict(max_concurrent_clients=0), 'at least 1, got 0'),
        (dict(workers='host:1'), 'must be a list'),
        (dict(workers=['host']), "must be host:port, got 'host'"),
        (dict(workers=['host:0']), "must be host:port, got 'host:0'"),
        (dict(workers=['h:1'], max_concurrent_clients=2), 'of this machine'),
    ],
)
def test_impossible_arguments(arguments, message):
  with pytest.raises(ValueError, match=message):
    runtime.use(**arguments)


# One import of TFF; then forks, each with a worker of its own, that end in all
# ways while they compute. Prints `HOW STATUS WORKER_PID` of each.
_ENDINGS = """
import os, signal, sys, threading, time
from tff_fedopt import runtime
runtime.use('worker')
import numpy as np, tensorflow as tf, tensorflow_federated as tff

@tff.federated_computation(
    tff.FederatedType(tff.SequenceType(np.int64), tff.CLIENTS))
def total(data):
  return tff.federated_sum(tff.federated_map(tff.tensorflow.computation(
      lambda d: d.reduce(np.int64(0), lambda a, b: a + b),
      tff.SequenceType(np.int64)), data))

assert total([tf.data.Dataset.range(4)] * 2) == 12
(own,) = runtime.worker_pids()
for how in ['return', 'exception', 'SIGINT', 'SIGTERM', 'SIGKILL']:
  receive, send = os.pipe()
  child = os.fork()
  if child == 0:
    assert total([tf.data.Dataset.range(3)] * 2) == 6
    os.write(send, str(runtime.worker_pids()[0]).encode())
    if how == 'return':
      sys.exit(0)
    if how == 'exception':
      raise RuntimeError('unhandled')
    number = signal.Signals[how]
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    total([tf.data.Dataset.range(2**40)] * 2)
  pid = int(os.read(receive, 20))
  assert pid != own
  _, status = os.waitpid(child, 0)
  print(how, os.waitstatus_to_exitcode(status), pid, flush=True)
assert total([tf.data.Dataset.range(4)] * 2) == 12
assert runtime.worker_pids() == [own]
print('parent', 0, own, flush=True)
"""


def test_no_worker_survives_and_a_pipe_ends(processes):
  # `run` waits for the end of both output pipes.
  result = processes.run(['-c', _ENDINGS], seconds=240, warm=True)
  endings = {}
  for line in result.stdout.splitlines():
    how, code, pid = line.split()
    endings[how] = int(code)
    pids.wait_until_gone([int(pid)], _SOON_SECONDS)
  assert endings == {
      'return': 0,
      'exception': 1,
      'SIGINT': -signal.SIGINT,
      'SIGTERM': -signal.SIGTERM,
      'SIGKILL': -signal.SIGKILL,
      'parent': 0,
  }, result.stderr
