"""Tests of the SQLite writer against TensorFlow's wire format and TFF."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks.data import sqlite_writer


def _by_tensorflow(**features):
  def feature(value):
    if isinstance(value, (str, bytes)):
      value = value.encode() if isinstance(value, str) else value
      return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    value = np.asarray(value)
    flat = value.reshape(-1).tolist()
    if value.dtype.kind == 'f':
      return tf.train.Feature(float_list=tf.train.FloatList(value=flat))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=flat))

  example = tf.train.Example(
      features=tf.train.Features(
          feature={k: feature(v) for k, v in features.items()}
      )
  )
  return example.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    'features',
    [
        dict(title='é <URL>', tokens=b'a' * 300, score=-3, type=''),
        dict(image=np.arange(256, dtype=np.uint8), label=np.int64(99)),
        dict(image=np.full((32, 32, 3), 128, np.uint8), coarse_label=0),
        dict(pixels=np.linspace(0, 1, 784, dtype=np.float32), label=61),
        dict(big=[0, 127, 128, 2**40, -1, -(2**63)]),
    ],
)
def test_bytes_are_those_of_tensorflow(features):
  assert sqlite_writer.serialized_example(**features) == _by_tensorflow(
      **features
  )


def test_refuses_what_is_no_feature():
  with pytest.raises(ValueError, match='string, integers or floats'):
    sqlite_writer.serialized_example(flag=np.array([True]))


def test_tff_reads_what_was_written(tmp_path):
  path = str(tmp_path / 'data.sqlite')
  rows = [
      ('train', 'b', [b'1', b'2']),
      ('train', 'a', [b'3']),
      ('test', 'b', [b'4']),
  ]
  sizes = sqlite_writer.write_database(path, rows, dict(kind='synthetic'))
  assert sizes == {'train': (2, 3), 'test': (1, 1)}
  train = tff.simulation.datasets.SqlClientData(path, 'train')
  assert train.client_ids == ['a', 'b']
  stored = list(train.create_tf_dataset_for_client('b').as_numpy_iterator())
  assert stored == [b'1', b'2']


def test_builds_once_when_several_start_together(tmp_path, processes):
  path = str(tmp_path / 'made')
  program = (
      'import sys, time\n'
      'from tasks.data import sqlite_writer\n'
      'def build(unfinished):\n'
      '  print("built")\n'
      '  with open(unfinished, "w") as f:\n'
      '    f.write("half"); f.flush(); time.sleep(0.5); f.write(" whole")\n'
      'print(open(sqlite_writer.build_once(sys.argv[1], build)).read())\n'
  )
  root = pathlib.Path(__file__).resolve().parents[2]
  started = [
      processes.start(
          [sys.executable, '-c', program, path],
          seconds=60,
          stdout=subprocess.PIPE,
          text=True,
          cwd=root,
      )
      for _ in range(3)
  ]
  out = [process.communicate()[0] for process in started]
  assert sum('built' in text for text in out) == 1
  assert all(text.endswith('half whole\n') for text in out)


def test_a_failed_build_leaves_nothing_that_counts(tmp_path):
  path = str(tmp_path / 'made')

  def fails(unfinished):
    with open(unfinished, 'w') as f:
      f.write('half')
    raise RuntimeError('interrupted')

  with pytest.raises(RuntimeError):
    sqlite_writer.build_once(path, fails)
  assert not os.path.exists(path)

  def works(unfinished):
    assert not os.path.exists(unfinished)  # the half is gone
    with open(unfinished, 'w') as f:
      f.write('whole')

  with open(sqlite_writer.build_once(path, works)) as f:
    assert f.read() == 'whole'
