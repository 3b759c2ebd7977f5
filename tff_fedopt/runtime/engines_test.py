"""What both engines have to do alike, and what only the local one promises."""

import gc
import os
import resource
import signal
import threading

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt import runtime
from tff_fedopt.runtime import settings

_ENDLESS = 2**40
_CLIENTS = [np.float32(x) for x in (1, 2, 4, 8, 16)]
_OF_CLIENTS = tff.FederatedType(np.float32, tff.CLIENTS)


@pytest.fixture(params=['local', 'worker'])
def engine(request):
  runtime.use(request.param)
  return request.param


@pytest.fixture
def local():
  runtime.use('local')


def _traced(path):
  """A computation that adds one, and a line to a file."""

  @tff.tensorflow.computation(np.float32)
  def plus_one(x):
    line = tf.print('once', output_stream=f'file://{path}')
    with tf.control_dependencies([line]):
      return x + 1

  return plus_one


@tff.tensorflow.computation(np.float32)
def _positive(x):
  with tf.control_dependencies([tf.debugging.assert_positive(x)]):
    return tf.identity(x)


@tff.federated_computation(_OF_CLIENTS)
def _sum_of_positive(values):
  return tff.federated_sum(tff.federated_map(_positive, values))


def _two_passes(path):
  """Σ (x + 1 - mean(x + 1))², the mean being known after all clients only."""

  @tff.tensorflow.computation(np.float32, np.float32)
  def squared_distance(x, mean):
    return tf.square(x - mean)

  @tff.federated_computation(_OF_CLIENTS)
  def spread(values):
    x = tff.federated_map(_traced(path), values)
    mean = tff.federated_broadcast(tff.federated_mean(x))
    distances = tff.federated_map(squared_distance, (x, mean))
    return tff.federated_sum(distances), tff.federated_max(x), x

  return spread


def test_a_client_is_gone_through_once(engine, tmp_path):
  path = tmp_path / 'log'
  spread, largest, members = _two_passes(path)(_CLIENTS)
  expected = np.array(_CLIENTS) + 1
  assert spread == pytest.approx(np.sum((expected - expected.mean()) ** 2))
  assert largest == 17
  np.testing.assert_array_equal(members, expected)
  if engine == 'local':
    assert path.read_text().split() == ['once'] * len(_CLIENTS)


def test_values_at_either_place(engine):
  @tff.tensorflow.computation
  def seven():
    return np.float32(7)

  @tff.federated_computation(
      tff.FederatedType(np.float32, tff.SERVER),
      tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True),
      _OF_CLIENTS,
  )
  def places(server, alike, own):
    return (
        tff.federated_zip((server, tff.federated_eval(seven, tff.SERVER))),
        alike,
        tff.federated_zip((alike, own)),
        tff.federated_sum(tff.federated_eval(seven, tff.CLIENTS)),
        tff.federated_sum(tff.federated_value(np.float32(2), tff.CLIENTS)),
        tff.federated_value(np.float32(3), tff.SERVER),
    )

  assert places(1.0, 5.0, _CLIENTS[:2]) == (
      (1.0, 7.0),
      5.0,
      [(5.0, 1.0), (5.0, 2.0)],
      14.0,
      4.0,
      3.0,
  )


def test_no_clients(engine):
  assert _sum_of_positive([]) == 0


def test_structures_text_and_sequences(engine):
  member = tff.to_type([
      ('empty', []),
      ('nested', [('text', np.str_), ('deep', [(np.float32, [2, 3])])]),
      ('flag', np.bool_),
  ])

  @tff.tensorflow.computation(tff.SequenceType(np.int64), np.int64)
  def shifted(data, by):
    return data.map(lambda x: x + by)

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
  for data in ([1, 2], tf.data.Dataset.range(1, 3)):
    assert list(shifted(data, 10).as_numpy_iterator()) == [11, 12]


def test_variables_and_tables_begin_anew(engine):
  @tff.tensorflow.computation(np.str_)
  def count(key):
    total = tf.Variable(tf.constant([1.0, 2.0]) + 1.0)
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(['a', 'b'], [3, 4]), -1
    )
    with tf.control_dependencies([total.assign_add([1.0, 1.0])]):
      return total.read_value(), table.lookup(key)

  for key, value in (('a', 3), ('b', 4), ('c', -1)):
    total, found = count(key)
    np.testing.assert_array_equal(total, [3, 4])
    assert found == value


def test_a_failure_is_one_line_and_the_same_everywhere():
  texts = set()
  for engine in settings.ENGINES:
    runtime.use(engine)
    for call in (
        lambda: _positive(np.float32(-1)),
        lambda: _sum_of_positive(_CLIENTS + [np.float32(-1)]),
    ):
      with pytest.raises(RuntimeError) as error:
        call()
      texts.add(str(error.value))
    assert _positive(np.float32(1)) == 1
  (text,) = texts
  assert text.startswith('the computation failed: assertion failed: ')
  assert 'Condition x > 0' in text and text.endswith('Assert}}]]')
  assert '\n' not in text


def test_wrong_arguments_are_named(local):
  @tff.tensorflow.computation(tff.SequenceType(np.float32), (np.int32, [2]))
  def anything(data, vector):
    return data.reduce(np.float32(0), lambda a, b: a + b), vector

  vector = np.array([1, 2], np.int32)
  data = tf.data.Dataset.from_tensor_slices([np.float32(1)])
  assert anything(data, vector)[0] == 1
  with pytest.raises(TypeError, match='int64.*does not fit float32'):
    anything(tf.data.Dataset.range(3), vector)
  with pytest.raises(TypeError, match=r'shape \(3,\) for int32\[2\]'):
    anything(data, np.array([1, 2, 3], np.int32))
  with pytest.raises(TypeError, match='float64 for int32'):
    anything(data, np.array([1.5, 2]))


def test_what_cannot_run_is_named(local):
  @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
  def secure(values):
    return tff.federated_secure_sum_bitwidth(values, np.int32(4))

  with pytest.raises(
      RuntimeError,
      match="intrinsic federated_secure_sum_bitwidth; use engine='worker'",
  ):
    secure([1, 2])

  @tff.tensorflow.computation(np.str_)
  def keeps(key):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    with tf.control_dependencies([table.insert(key, table.lookup(key) + 1)]):
      return table.lookup(key)

  with pytest.raises(RuntimeError, match='MutableHashTableV2, which keeps'):
    keeps('a')


def _megabytes():
  pages = int(open('/proc/self/statm').read().split()[1])
  return pages * resource.getpagesize() / 2**20


def test_memory_is_flat_whether_clients_fail_or_not(local):
  @tff.tensorflow.computation(np.float32)
  def with_a_large_variable(x):
    large = tf.Variable(tf.zeros([2**20]))  # 4 MiB
    with tf.control_dependencies([large.assign_add(tf.fill([2**20], x))]):
      mean = tf.reduce_mean(large)
    with tf.control_dependencies([tf.debugging.assert_positive(mean)]):
      return tf.identity(mean)

  @tff.federated_computation(_OF_CLIENTS)
  def total(values):
    return tff.federated_sum(tff.federated_map(with_a_large_variable, values))

  def failing():
    with pytest.raises(RuntimeError, match='Condition'):
      total([np.float32(-1)] * 2)

  for call in (lambda: total(_CLIENTS), failing):
    for _ in range(5):
      call()
    before = _megabytes()
    for _ in range(30):
      call()
    # If the variables stayed, at least 240.
    assert _megabytes() - before < 80


def test_a_call_leaves_no_reference_cycles(local, tmp_path):
  spread = _two_passes(tmp_path / 'log')
  spread(_CLIENTS)
  gc.collect()
  gc.disable()
  try:
    for _ in range(3):
      spread(_CLIENTS)
    assert gc.collect() == 0
  finally:
    gc.enable()


def test_what_is_compiled_goes_with_its_computation(local):
  context = runtime._context
  before = len(context._plans)

  @tff.tensorflow.computation(np.float32)
  def doubled(x):
    return 2 * x

  assert doubled(2.0) == 4
  assert len(context._plans) == before + 1
  del doubled
  gc.collect()
  assert len(context._plans) == before


def test_interrupt_ends_a_call(local, interruptible):
  del interruptible

  @tff.federated_computation(
      tff.FederatedType(tff.SequenceType(np.int64), tff.CLIENTS)
  )
  def total(data):
    return tff.federated_sum(
        tff.federated_map(
            tff.tensorflow.computation(
                lambda d: d.reduce(np.int64(0), lambda a, b: a + b),
                tff.SequenceType(np.int64),
            ),
            data,
        )
    )

  clients = [tf.data.Dataset.range(n) for n in (_ENDLESS, 2, _ENDLESS)]
  threads = threading.active_count()
  threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
  with pytest.raises(KeyboardInterrupt):
    total(clients)
  assert threading.active_count() == threads
  assert total(clients[1:2]) == 1


@pytest.mark.parametrize(
    'arguments, message',
    [
        (dict(engine='remote'), "must be local or worker, got 'remote'"),
        (dict(devices='gpu'), "must be a list like .'gpu'., got 'gpu'"),
        (dict(devices=['tpu']), "must be cpu, gpu or.*got 'tpu'"),
        (dict(devices=['gpu:']), "must be cpu, gpu or.*got 'gpu:'"),
        (dict(devices=['gpu']), 'gpu: TensorFlow found no GPU.*setup.sh'),
        (dict(devices=['cpu:1']), 'no cpu:1; TensorFlow found cpu:0'),
        (dict(devices=['cpu', 'cpu:0']), 'names one twice'),
        (dict(engine='worker', devices=['cpu']), "are for engine='local'"),
        (dict(engine='worker', deterministic_ops=True), "engine='local'"),
        (dict(engine='local', workers=['h:1']), "are for engine='worker'"),
        (dict(devices=['cpu'], workers=['h:1']), "are for engine='local'"),
    ],
)
def test_contradictions_and_unknown_devices(local, arguments, message):
  with pytest.raises(ValueError, match=message) as error:
    runtime.use(**arguments)
  assert '\n' not in str(error.value)
  assert _positive(np.float32(1)) == 1  # The settings in use stay.


def test_an_engine_is_implied_or_kept(local):
  for arguments, engine in (
      ({}, 'local'),
      (dict(max_concurrent_clients=1), 'local'),
      (dict(engine='worker'), 'worker'),
      (dict(max_concurrent_clients=1), 'worker'),
      (dict(devices=['cpu']), 'local'),
  ):
    runtime.use(**arguments)
    assert runtime.in_use()['engine'] == engine
  assert len(runtime.in_use()['devices']) == 1


# Two logical devices have to be made before TensorFlow starts.
_DEVICES = """
import glob, os, re
import tensorflow as tf
cpu = tf.config.list_physical_devices('CPU')[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
from tff_fedopt import runtime
from tff_fedopt.runtime import settings
runtime.use('local')
import numpy as np, tensorflow_federated as tff

@tff.tensorflow.computation(tff.SequenceType(np.float32), np.float32)
def train(data, start):
  w = tf.Variable(start)
  for _ in range(3):
    w.assign(data.reduce(w.read_value(), lambda a, x: a - 0.1 * (a - x)))
  return w.read_value(), tf.strings.length(tf.strings.as_string(start))

@tff.federated_computation(
    tff.FederatedType(np.float32, tff.SERVER),
    tff.FederatedType(tff.SequenceType(np.float32), tff.CLIENTS))
def next_round(start, data):
  trained = tff.federated_map(train, (data, tff.federated_broadcast(start)))
  return tff.federated_mean(trained[0])

rng = np.random.default_rng(0)
clients = [
    tf.data.Dataset.from_tensor_slices(rng.normal(size=9).astype(np.float32))
    for _ in range(7)
]

def rounds():
  w = np.float32(0)
  for _ in range(3):
    w = next_round(w, clients)
  return np.float32(w).tobytes().hex()

found = set()
for devices in (['cpu:0'], ['cpu:0,1'], ['cpu:1,0'], ['cpu']):
  for concurrent in (1, 2, 3):
    runtime.use(devices=devices, max_concurrent_clients=concurrent)
    found.add(rounds())
print('results', len(found))

listening = set()
for table in glob.glob('/proc/net/tcp*'):
  for line in open(table).read().splitlines()[1:]:
    fields = line.split()
    if fields[3] == '0A':
      listening.add(f'socket:[{fields[9]}]')
ours = set()
for process in glob.glob('/proc/[0-9]*'):
  try:
    if os.getsid(int(process[6:])) == os.getsid(0):
      ours |= {os.readlink(fd) for fd in glob.glob(process + '/fd/*')}
  except OSError:
    pass
children = open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read()
print('sockets', len(listening & ours), 'children', len(children.split()))

import sys
sys.stdout.flush()
if not os.fork():
  try:
    rounds()
  except RuntimeError as e:
    print('forked', e)
  sys.stdout.flush()
  os._exit(0)
os.wait()
"""


def test_devices_sockets_and_forks(processes):
  process = processes.run(['-c', _DEVICES], seconds=240, warm=True)
  lines = process.stdout.splitlines()
  assert lines[:2] == ['results 1', 'sockets 0 children 0'], process.stderr
  assert lines[2].startswith('forked TensorFlow cannot be used in a forked')
  assert process.returncode == 0
