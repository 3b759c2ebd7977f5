"""Tests of checkpoints."""

import collections

import numpy as np
import pytest

from tff_fedopt.experiment import checkpoint

_Pair = collections.namedtuple('_Pair', 'first second')


def _state(value=1.5, shape=(2,), dtype=np.float32):
  return _Pair(
      collections.OrderedDict(w=[np.full(shape, value, dtype)], empty=()),
      np.int64(7),
  )


def _checkpoint(round_num, state, fingerprint='f'):
  return checkpoint.Checkpoint(
      round_num, state, {'metrics.csv': 10 * round_num}, fingerprint
  )


def test_loads_what_was_saved_and_keeps_the_newest(tmp_path):
  store = checkpoint.Store(tmp_path / 'new', keep=2)
  assert store.load(_state(), 'f') is None
  for round_num in (2, 4, 10, 6):
    store.save(_checkpoint(round_num, _state(round_num / 3)))
  assert store.rounds() == [6, 10]
  assert sorted(p.name for p in (tmp_path / 'new').iterdir()) == [
      'round_00000006.ckpt', 'round_00000010.ckpt'
  ]
  loaded = store.load(_state(0), 'f')
  assert loaded.round == 10
  assert loaded.positions == {'metrics.csv': 100}
  assert isinstance(loaded.state, _Pair)
  assert loaded.state.first['w'][0] == pytest.approx(10 / 3, abs=1e-6)
  assert loaded.state.first['w'][0].dtype == np.float32
  assert loaded.state.second == 7 and loaded.state.second.dtype == np.int64
  assert loaded.state.first['empty'] == ()
  store.prune(0)
  assert store.rounds() == []


def test_containers_may_change_but_names_may_not(tmp_path):
  """TFF may hand a named tuple back as an ordered dictionary."""
  store = checkpoint.Store(tmp_path)
  state = _state()
  as_dict = collections.OrderedDict(first=state.first, second=state.second)
  store.save(_checkpoint(1, as_dict))
  assert isinstance(store.load(state, 'f').state, _Pair)
  renamed = collections.OrderedDict(first=state.first, third=state.second)
  with pytest.raises(
      checkpoint.CheckpointError,
      match=r'round_00000001.ckpt.* second is int64\[\], expected missing',
  ):
    store.load(renamed, 'f')


@pytest.mark.parametrize(
    'template, message',
    [
        (_state(shape=(3,)), r' first/w/0 is float32\[2\], expected float32\['),
        (_state(dtype=np.float64), r'expected float64\[2\].*delete'),
    ],
)
def test_another_process_is_refused(tmp_path, template, message):
  store = checkpoint.Store(tmp_path)
  store.save(_checkpoint(1, _state()))
  with pytest.raises(checkpoint.CheckpointError, match=message):
    store.load(template, 'f')


def test_another_run_is_refused(tmp_path):
  store = checkpoint.Store(tmp_path)
  store.save(_checkpoint(1, _state(), 'other'))
  with pytest.raises(checkpoint.CheckpointError, match='ckpt belongs to ano'):
    store.load(_state(), 'f')


@pytest.mark.parametrize('damage', ['cut', 'flip', 'empty', 'text'])
def test_damage_is_an_error_that_names_the_file(tmp_path, damage):
  store = checkpoint.Store(tmp_path)
  store.save(_checkpoint(1, _state()))
  store.save(_checkpoint(2, _state()))
  path = store.path(2)
  content = bytearray(path.read_bytes())
  if damage == 'flip':
    content[-40] ^= 1
  path.write_bytes({
      'cut': content[:-1], 'flip': content, 'empty': b'', 'text': b'hello',
  }[damage])
  with pytest.raises(
      checkpoint.CheckpointError, match='round_00000002.ckpt is damaged; delete'
  ):
    store.load(_state(), 'f')
  path.unlink()
  assert store.load(_state(), 'f').round == 1


def test_interrupted_writing_leaves_the_old_one(tmp_path, monkeypatch):
  store = checkpoint.Store(tmp_path)
  store.save(_checkpoint(1, _state()))

  def fail(*_):
    raise KeyboardInterrupt

  monkeypatch.setattr('os.replace', fail)
  with pytest.raises(KeyboardInterrupt):
    store.save(_checkpoint(2, _state()))
  assert store.load(_state(), 'f').round == 1


def test_keeping_none_is_refused(tmp_path):
  with pytest.raises(ValueError, match='0 checkpoints'):
    checkpoint.Store(tmp_path, keep=0)


def test_another_version_is_not_called_damage(tmp_path):
  store = checkpoint.Store(tmp_path)
  store.save(_checkpoint(1, _state()))
  path = store.path(1)
  path.write_bytes(path.read_bytes().replace(b'point 1\n', b'point 12\n', 1))
  with pytest.raises(
      checkpoint.CheckpointError, match='in format 12, which another version'
  ):
    store.load(_state(), 'f')


def test_without_the_newest_the_one_before_is_used(tmp_path):
  store = checkpoint.Store(tmp_path)
  for round_num in (1, 2):
    store.save(_checkpoint(round_num, _state()))
  store.path(2).unlink()
  assert store.load(_state(), _checkpoint(1, _state()).fingerprint).round == 1
