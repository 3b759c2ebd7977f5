"""What clients remember: versions, first visits, damage, garbage."""

import collections
import concurrent.futures
import errno
import os
import types

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt.processes import client_state

W0 = (np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([7, 8]))
SPECS = [tf.TensorSpec(w.shape, w.dtype) for w in W0]
MEMORY = dict(variate='zeros', last='initial_model')
RUN = 123


class Device:
  """A client's operations, as calls."""

  def __init__(self, state_dir, memory=None, specs=None):
    specs = specs or SPECS
    store = client_state.Store(memory or MEMORY)
    self._state_dir = store.claim(state_dir, specs)
    text = tf.TensorSpec([], tf.string)
    number = tf.TensorSpec([], tf.int64)
    weights = tuple(tf.TensorSpec(s.shape, s.dtype) for s in specs)
    slots = collections.OrderedDict((name, weights) for name in MEMORY)
    self._read = tf.function(
        store.read,
        input_signature=[text, text, number, number, weights],
    )
    self._write = tf.function(
        store.write,
        input_signature=[
            text, text, number, number, slots, tf.TensorSpec([], bool)
        ],
    )

  def read(self, client_id, t, run=RUN, x=W0):
    x = tuple(map(tf.constant, x))
    return tf.nest.map_structure(
        lambda v: v.numpy(),
        self._read(
            client_id, self._state_dir, np.int64(t), np.int64(run), x
        ),
    )

  def write(self, client_id, t, value, run=RUN, where=True):
    memory = collections.OrderedDict(
        (name, tuple(tf.constant(value + 0 * w) for w in W0))
        for name in MEMORY
    )
    self._write(
        client_id, self._state_dir, np.int64(t), np.int64(run), memory, where
    )


@pytest.fixture(name='state_dir')
def _state_dir(tmp_path):
  return tmp_path / 'state of 1'


@pytest.fixture(name='device')
def _device(state_dir):
  return Device(state_dir)


def value(memory):
  """The one number that `Device.write` filled everything with."""
  (number,) = {float(v) for v in np.concatenate([
      np.ravel(t) for t in tf.nest.flatten(memory)
  ])}
  return number


def files(state_dir):
  return sorted(p.name for p in state_dir.rglob('*.index'))


def test_first_visit(device):
  moved = tuple(w + 1 for w in W0)
  for t, x in ((0, W0), (5, moved)):
    memory = device.read('a', t, x=x)
    for slot, expected in (('variate', [0 * w for w in W0]), ('last', W0)):
      for got, want in zip(memory[slot], expected):
        np.testing.assert_array_equal(got, want)


def test_reads_the_newest_version_written_before(device):
  device.read('a', 0)
  device.write('a', 3, 3.0)
  device.write('a', 10, 10.0)
  device.write('a', 7, 7.0)
  for t, expected in ((4, 3), (7, 3), (8, 7), (10, 7), (11, 10), (10**9, 10)):
    assert value(device.read('a', t)) == expected
  np.testing.assert_array_equal(device.read('a', 3)['last'][0], W0[0])
  # A repeated round replaces what the interrupted one left.
  device.write('a', 10, -1.0)
  assert value(device.read('a', 11)) == -1


def test_writes_nothing_unless_told(device, state_dir):
  device.write('a', 1, 1.0, where=False)
  assert not files(state_dir)


def test_names_and_runs_do_not_meet(device, state_dir):
  names = ['', 'a', 'a.1', '../a', 'a/b', '*', '[a]', 'é\n', 'f' * 120]
  device.read('a', 0)
  device.read('a', 0, run=RUN + 1)
  for number, name in enumerate(names):
    device.write(name, 1, float(number))
    device.write(name, 1, -float(number), run=RUN + 1)
  for number, name in enumerate(names):
    assert value(device.read(name, 2)) == number
    assert value(device.read(name, 2, run=RUN + 1)) == -number
  # Nothing is outside, and at most one level of folders is inside.
  assert [p.name for p in state_dir.parent.iterdir()] == [state_dir.name]
  assert all(
      len(p.relative_to(state_dir).parts) <= 2 for p in state_dir.rglob('*')
  )


def test_leftovers_of_a_killed_writer_are_no_version(device, state_dir):
  device.write('a', 1, 1.0)
  (index,) = state_dir.rglob('YQ.*.index')
  name = index.name.replace('0000000001', '0000000002')
  (index.parent / (name + '.tempstate99')).write_bytes(b'half')
  data = name.replace('.index', '.data-00000-of-00001')
  (index.parent / data).write_bytes(b'half')
  assert value(device.read('a', 3)) == 1


def test_clients_at_the_same_time(device):
  with concurrent.futures.ThreadPoolExecutor(8) as pool:
    # All of them store w^0; each its own memory.
    list(pool.map(lambda i: device.read(str(i), 0), range(24)))
    list(pool.map(lambda i: device.write(str(i), 0, float(i)), range(24)))
    got = list(pool.map(lambda i: value(device.read(str(i), 1)), range(24)))
  assert got == list(range(24))
  np.testing.assert_array_equal(device.read('new', 1)['last'][0], W0[0])


def test_collects_what_a_checkpoint_has_passed(device, state_dir):
  device.read('a', 0)
  for t in (1, 3, 5, 6):
    device.write('a', t, float(t))
  device.write('b', 0, 0.0)
  device.write('a', 1, 1.0, run=RUN + 1)
  before = len(files(state_dir))
  assert client_state.collect(state_dir, 5, RUN, client_ids=['b', 'c']) == 0
  # A state after 5 rounds asks for version 3 and may write 5, 6 again.
  assert client_state.collect(state_dir, 5, RUN) == 1
  assert len(files(state_dir)) == before - 1
  assert value(device.read('a', 5)) == 3
  assert value(device.read('a', 6)) == 5
  assert client_state.collect(state_dir, 7, RUN, client_ids=['a']) == 2
  assert value(device.read('a', 7)) == 6
  assert value(device.read('b', 7)) == 0
  assert value(device.read('a', 7, run=RUN + 1)) == 1
  np.testing.assert_array_equal(device.read('c', 7)['last'][0], W0[0])
  # Data goes with its index.
  data = [p for p in state_dir.rglob('*.data-*')]
  assert len(data) == len(files(state_dir))
  assert client_state.collect(state_dir / 'absent', 7, RUN) == 0


def test_what_later_rounds_wrote_is_taken_back(device, state_dir):
  device.read('a', 0)  # Stores w^0.
  for t in (0, 2, 3):
    device.write('a', t, float(t))
  device.write('b', 4, 4.0)
  device.write('b', 4, 5.0, run=RUN + 1)
  state = types.SimpleNamespace(
      client_work=collections.OrderedDict(
          round=np.int64(3), run=np.int64(RUN), state_dir=str(state_dir)
      )
  )
  assert client_state.collect_client_state(state) == 1  # Version 0 of a.
  assert client_state.take_back(state) == 2  # 3 of a and 4 of b.
  assert client_state.take_back(state) == 0
  assert value(device.read('a', 9)) == 2
  assert value(device.read('b', 9, run=RUN + 1)) == 5
  np.testing.assert_array_equal(device.read('b', 9)['last'][0], W0[0])
  data = [p for p in state_dir.rglob('*.data-*')]
  assert len(data) == len(files(state_dir))
  nothing = types.SimpleNamespace(client_work=())
  assert client_state.collect_client_state(nothing) == 0
  assert client_state.take_back(nothing) == 0


def test_directory_of_something_else_is_refused(state_dir):
  Device(state_dir)
  Device(state_dir)  # The same again is welcome.
  before = (state_dir / 'manifest.json').read_bytes()
  for memory, specs in (
      (dict(variate='zeros'), SPECS),
      (MEMORY, SPECS[:1]),
      (MEMORY, [tf.TensorSpec(s.shape, tf.float64) for s in SPECS]),
  ):
    with pytest.raises(
        client_state.ClientStateError, match='belongs to another'
    ) as e:
      client_state.Store(memory).claim(state_dir, specs)
    assert str(state_dir) in str(e.value) and '\n' not in str(e.value)
  assert (state_dir / 'manifest.json').read_bytes() == before


def test_name_that_is_a_pattern_is_refused(tmp_path):
  with pytest.raises(client_state.ClientStateError, match='for patterns'):
    Device(tmp_path / 'state[1]')
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    'spoil,message',
    [
        (lambda d: d.write_text('a file'), 'cannot be used for client state'),
        (lambda d: (d / 'x').mkdir(parents=True), 'holds no client state'),
        (
            lambda d: d.mkdir() or (d / 'manifest.json').write_text('{"form'),
            'is damaged; delete',
        ),
        (
            lambda d: d.mkdir() or (d / 'manifest.json').write_text('[]'),
            'belongs to another',
        ),
    ],
    ids=['file', 'foreign', 'damaged', 'other'],
)
def test_unusable_directory(spoil, message, state_dir):
  spoil(state_dir)
  with pytest.raises(client_state.ClientStateError, match=message) as e:
    Device(state_dir)
  assert str(state_dir) in str(e.value) and '\n' not in str(e.value)


def truncate(path):
  path.write_bytes(path.read_bytes()[:-5])


def flip(path):
  content = bytearray(path.read_bytes())
  content[3] ^= 1
  path.write_bytes(content)


def other_slots(path):
  prefix = str(path).removesuffix('.index').removesuffix('.data-00000-of-00001')
  tf.raw_ops.SaveV2(
      prefix=prefix, tensor_names=['x'], shape_and_slices=[''], tensors=[W0[0]]
  )


def other_shapes(path):
  prefix = str(path).removesuffix('.index').removesuffix('.data-00000-of-00001')
  names = [f'{slot}/{j}' for slot in MEMORY for j in range(2)]
  tf.raw_ops.SaveV2(
      prefix=prefix,
      tensor_names=names,
      shape_and_slices=[''] * 4,
      tensors=[tf.zeros([1], tf.float32)] * 4,
  )


@pytest.mark.parametrize(
    'spoil,part,message',
    [
        (truncate, 'data', 'is damaged or from another program'),
        (flip, 'data', 'is damaged or from another program'),
        (truncate, 'index', 'is damaged or from another program'),
        (other_slots, 'index', 'is damaged or from another program'),
        (other_shapes, 'index', 'is damaged or from another program'),
        (os.unlink, 'data', 'is missing'),
    ],
    ids=lambda x: getattr(x, '__name__', '' if ' ' in str(x) else x),
)
def test_damage_is_named(spoil, part, message, device, state_dir):
  device.read('a', 0)
  device.write('a', 0, 1.0)
  (path,) = state_dir.glob(f'*/*.{part}*')
  for other in 'bcd':
    device.write(other, 0, 1.0)
  spoil(path)
  with pytest.raises(tf.errors.OpError) as raised:
    device.read('a', 1)
  error = client_state.translate(raised.value, state_dir)
  assert message in str(error) and str(state_dir) in str(error)
  assert '\n' not in str(error)
  if spoil not in (other_slots, other_shapes):
    assert str(path).removesuffix('.index').split('.data')[0] in str(error)


def test_id_that_no_file_can_be_named_after(device, state_dir):
  with pytest.raises(tf.errors.OpError) as raised:
    device.write('f' * 150, 0, 1.0)
  error = client_state.translate(raised.value, state_dir)
  assert 'the client id is too long' in str(error)


def test_full_disk_and_other_errors(state_dir):
  path = f'{state_dir}/0001/YQ.1.0000000003.data-00000-of-00001'
  said = f'{path}.tempstate123; {os.strerror(errno.ENOSPC)}'
  error = client_state.translate(RuntimeError(said), state_dir)
  assert str(error) == (
      f'{path} cannot be written: the disk is full; free space and resume,'
      ' nothing is lost'
  )
  error = client_state.translate(RuntimeError(f'{path}: odd\nmore'), state_dir)
  assert str(error).startswith(f'{path} cannot be used: ')
  assert '\n' not in str(error)
  assert client_state.translate(ValueError('anything else'), state_dir) is None


def test_memory_that_went_away_is_no_fresh_start(device, state_dir):
  device.read('a', 0)
  client_state.require(state_dir, RUN)
  with pytest.raises(client_state.ClientStateError, match='nothing that clie'):
    client_state.require(state_dir, RUN + 1)
  device.write('a', 1, 1.0, run=RUN + 1)
  client_state.require(state_dir, RUN + 1)
