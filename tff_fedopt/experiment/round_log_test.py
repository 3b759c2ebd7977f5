"""Tests of the files that grow with a run."""

import collections

import numpy as np
import pytest

from tff_fedopt.experiment import checkpoint
from tff_fedopt.experiment import round_log


def _row(round_num, accuracy=None):
  return {
      'round': round_num,
      'train/loss': np.float32(0.1),
      'validation/accuracy': accuracy,
      'non_finite_clients': np.int32(2),
      'diverged': False,
  }


_HEADER = (
    'round,train/loss,validation/accuracy [%],non_finite_clients [clients],'
    'diverged\n'
)


def test_rows_have_units_and_enough_digits(tmp_path):
  log = round_log.CsvLog(tmp_path / 'm.csv')
  log.append(_row(1))
  log.append(_row(2, np.float32(0.125)))
  assert (tmp_path / 'm.csv').read_text() == (
      _HEADER + '1,0.100000001,,2,0\n2,0.100000001,12.5,2,0\n'
  )
  frame = round_log.read(tmp_path / 'm.csv')
  assert list(frame.columns) == [
      'round', 'train/loss', 'validation/accuracy', 'non_finite_clients',
      'diverged',
  ]
  assert frame['validation/accuracy'].tolist()[1] == 0.125
  assert np.isnan(frame['validation/accuracy'][0])
  assert np.float32(frame['train/loss'][0]) == np.float32(0.1)


def test_float_numbers_survive_the_file(tmp_path):
  values = np.random.default_rng(0).normal(size=50)
  log = round_log.CsvLog(tmp_path / 'm.csv')
  for i, v in enumerate(values):
    log.append({'round': i, 'a': v, 'b': v.astype(np.float32)})
  log.append({'round': 50, 'a': np.inf, 'b': np.nan})
  frame = round_log.read(tmp_path / 'm.csv')
  np.testing.assert_array_equal(frame['a'], [*values, np.inf])
  np.testing.assert_array_equal(
      frame['b'].astype(np.float32), np.float32([*values, np.nan])
  )


def test_opening_at_a_position_drops_what_came_after(tmp_path):
  path = tmp_path / 'm.csv'
  log = round_log.CsvLog(path)
  log.append(_row(1))
  position = log.position
  expected = path.read_bytes()
  assert position == len(expected)
  log.append(_row(2))
  with open(path, 'ab') as f:
    f.write(b'3,0.')  # Killed while writing.
  log = round_log.CsvLog(path, position)
  assert path.read_bytes() == expected
  log.append(_row(2, 0.5))
  assert path.read_text().splitlines()[1:] == [
      '1,0.100000001,,2,0', '2,0.100000001,50,2,0'
  ]
  round_log.CsvLog(path, 0)
  assert path.read_bytes() == b''


def test_lost_rows_are_an_error(tmp_path):
  (tmp_path / 'm.csv').write_text('round\n1\n')
  with pytest.raises(
      checkpoint.CheckpointError, match=r'm.csv has 8 bytes.*at 9.*delete'
  ):
    round_log.CsvLog(tmp_path / 'm.csv', 9)


def test_a_value_without_a_column_is_an_error(tmp_path):
  log = round_log.CsvLog(tmp_path / 'm.csv')
  log.append({'round': 1})
  with pytest.raises(ValueError, match="no column 'train/loss'"):
    log.append({'round': 2, 'train/loss': 1.0})


def test_round_values_are_the_scalars_by_path():
  metrics = collections.OrderedDict(
      distributor=(),
      client_work=collections.OrderedDict(
          train=collections.OrderedDict(loss=1.0, by_class=np.zeros(3)),
          non_finite_clients=np.int32(0),
      ),
      finalizer=collections.OrderedDict(update_non_finite=0),
      diverged=True,
  )
  assert round_log.round_values(metrics) == {
      'train/loss': 1.0,
      'non_finite_clients': 0,
      'finalizer/update_non_finite': 0,
      'diverged': True,
  }


def test_tensorboard_reads_one_value_a_round_after_a_resume(tmp_path):
  from tensorboard.backend.event_processing import event_accumulator

  first = round_log.TensorBoardLog(tmp_path, 1)
  for t in (1, 2, 3):
    first.append(t, 100.0 + t, {'train/accuracy': t / 10, 'test/loss': None})
  first.close()
  resumed = round_log.TensorBoardLog(tmp_path, 3)
  resumed.append(3, 200.0, {'train/accuracy': 0.5})
  resumed.close()
  events = event_accumulator.EventAccumulator(str(tmp_path))
  events.Reload()
  assert events.Tags()['scalars'] == ['train/accuracy [%]']
  scalars = events.Scalars('train/accuracy [%]')
  assert [s.step for s in scalars] == [1, 2, 3]
  np.testing.assert_allclose([s.value for s in scalars], [10, 20, 50])
