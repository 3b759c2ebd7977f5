"""Tests of federated CIFAR made from arrays."""

import functools
import os

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tasks.data import cifar
from tasks.data import noise as noise_lib
from tasks.data import sources
from tasks.data import sqlite_writer
from tff_fedopt.testing import real_data


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
  monkeypatch.setenv('TFF_FEDOPT_CACHE', str(tmp_path / 'cache'))


def _write_npz(folder, **changed):
  rng = np.random.default_rng(0)
  arrays = dict(
      x_train=rng.integers(0, 256, (200, 32, 32, 3)).astype(np.uint8),
      y_train=np.repeat(np.arange(10), 20),
      x_test=rng.integers(0, 256, (250, 32, 32, 3)).astype(np.uint8),
      y_test=np.repeat(np.arange(10), 25)[:, None],
  )
  arrays.update(changed)
  np.savez(folder / 'cifar10.npz', **arrays)
  return arrays


def _stored(clients):
  return {
      client: list(
          clients.create_tf_dataset_for_client(client).as_numpy_iterator()
      )
      for client in clients.client_ids
  }


def test_every_image_reaches_one_client(tmp_path):
  arrays = _write_npz(tmp_path)
  opened = cifar.open_split(
      'cifar10', str(tmp_path), num_clients=20, seed=1
  )
  assert opened.kind == 'subset'
  assert opened.counts == {'train': (20, 200), 'test': (2, 250)}
  train = _stored(opened['train'])
  assert list(train)[:2] == ['00', '01'] and len(train['00']) == 10
  images = {e['image'].tobytes(): e['label'] for c in train.values() for e in c}
  assert images == {
      x.tobytes(): y for x, y in zip(arrays['x_train'], arrays['y_train'])
  }
  # The test images are in their order.
  test = [e for c in _stored(opened['test']).values() for e in c]
  np.testing.assert_array_equal(
      [e['image'] for e in test], arrays['x_test']
  )
  assert test[0]['label'].dtype == np.int64
  assert test[0]['image'].dtype == np.uint8


def test_settings_decide_the_partition(tmp_path):
  _write_npz(tmp_path)

  def hash_of(**options):
    opened = cifar.open_split(
        'cifar10', str(tmp_path), **dict(dict(num_clients=20), **options)
    )
    return opened.provenance['partition_hash']

  hashes = [
      hash_of(),
      hash_of(seed=1),
      hash_of(alpha=1.0),
      hash_of(rule='flsim'),
      hash_of(rule='iid'),
  ]
  assert len(set(hashes)) == 5
  before = os.listdir(tmp_path / 'cache' / 'partitions')
  assert hash_of(seed=1) == hashes[1]
  assert os.listdir(tmp_path / 'cache' / 'partitions') == before
  # Other images are not taken for the ones that were split.
  _write_npz(tmp_path, y_train=np.repeat(np.arange(10), 20)[::-1])
  assert hash_of(seed=1) != hashes[1]


def test_noise_of_clients_and_classes(tmp_path):
  arrays = _write_npz(tmp_path)
  options = dict(rule='flsim', num_clients=4, seed=3)
  noise = noise_lib.Noise(client=0.2, classes=0.1, seed=3)
  plain, noisy = (
      cifar.open_split('cifar10', str(tmp_path), noise=n, **options)
      for n in (noise_lib.Noise(), noise)
  )
  # The same images at the same clients.
  assert (
      plain.provenance['partition_hash'] == noisy.provenance['partition_hash']
  )
  assert '"client_noise": 0.2' in noisy.provenance['partition']
  assert 'noise' not in plain.provenance['partition']
  before, after = (_stored(opened['train']) for opened in (plain, noisy))
  shifts = noise.brightness(10)
  for number, client in enumerate(before):
    gains = noise.strengths(number)
    for one, other in zip(before[client], after[client]):
      assert one['label'] == other['label']
      x = np.clip(one['image'] / 255 * gains, 0, 1)
      x = np.clip(x + shifts[one['label']], 0, 1)
      assert np.abs(255 * x - other['image']).max() <= 0.5 + 1e-6
  # Test images are as they were.
  test = [e for c in _stored(noisy['test']).values() for e in c]
  np.testing.assert_array_equal([e['image'] for e in test], arrays['x_test'])


def test_strengths_of_noise():
  noise = noise_lib.Noise(client=0.2, classes=0.1)
  gains = np.array([noise.strengths(i) for i in range(2000)])
  np.testing.assert_allclose(gains.mean(axis=0), 1, atol=0.02)
  np.testing.assert_allclose(gains.std(axis=0), 0.2, atol=0.01)
  assert abs(np.corrcoef(gains.T)[0, 1]) < 0.1
  shifts = noise.brightness(3000)
  assert abs(shifts.mean()) < 0.01 and abs(shifts.std() - 0.1) < 0.01
  # The first classes' are those of fewer classes.
  np.testing.assert_array_equal(noise.brightness(7), shifts[:7])
  other = noise_lib.Noise(client=0.2, classes=0.1, seed=1)
  assert not np.array_equal(other.strengths(0), gains[0])
  assert not np.array_equal(other.brightness(7), shifts[:7])
  # No client's strengths are drawn as the classes' brightness is.
  draws = (gains - 1) / noise.client
  assert np.abs(draws - shifts[:3] / noise.classes).max(axis=1).min() > 0.01


def test_cifar100_of_the_loaders_file_split_anew(tmp_path):
  rng = np.random.default_rng(0)
  images = rng.integers(0, 256, (60, 32, 32, 3)).astype(np.uint8)
  labels = np.arange(60) % 7

  def rows():
    for client in range(6):
      yield 'train' if client < 4 else 'test', str(client), [
          sqlite_writer.serialized_example(
              coarse_label=labels[i] // 5, image=images[i], label=labels[i]
          )
          for i in range(10 * client, 10 * client + 10)
      ]

  sqlite_writer.write_database(
      str(tmp_path / 'cifar100.sqlite'), rows(), dict(kind='subset')
  )
  opened = cifar.open_split(
      'cifar100', str(tmp_path), rule='iid', num_clients=8, seed=1
  )
  assert opened.kind == 'subset'
  assert opened.counts == {'train': (8, 40), 'test': (1, 20)}
  train = [e for c in _stored(opened['train']).values() for e in c]
  found = {e['image'].tobytes(): int(e['label']) for e in train}
  assert found == {images[i].tobytes(): labels[i] for i in range(40)}
  test = _stored(opened['test'])['0']
  np.testing.assert_array_equal([e['image'] for e in test], images[40:])


@pytest.mark.parametrize(
    'changed, what',
    [
        (dict(x_test=np.zeros((250, 28, 28), np.uint8)), 'x_test must be'),
        (dict(y_train=np.zeros(199)), 'x_train must be uint8'),
        (dict(x_train=np.zeros((200, 32, 32, 3))), 'is float64'),
    ],
)
def test_refuses_other_arrays(tmp_path, changed, what):
  _write_npz(tmp_path, **changed)
  with pytest.raises(sources.DataError, match=what):
    cifar.open_split('cifar10', str(tmp_path), num_clients=20)


def test_refuses_other_files_and_rules(tmp_path):
  (tmp_path / 'cifar10.npz').write_bytes(b'PK')
  with pytest.raises(sources.DataError, match='not an archive of x_train'):
    cifar.open_split('cifar10', str(tmp_path))
  with pytest.raises(ValueError, match="unknown partition 'x', there are hsu"):
    cifar.open_split('cifar10', str(tmp_path), rule='x')


def test_nothing_there(tmp_path):
  with pytest.raises(sources.DataError, match='no cifar10 or cifar10.npz') as e:
    cifar.open_split('cifar10', str(tmp_path))
  assert 'download_and_prepare' in str(e.value) and '\n' not in str(e.value)
  with pytest.raises(sources.DataError, match='no cifar100; make it with'):
    cifar.open_cifar100(str(tmp_path))


def _archive(folder, dataset):
  """The files of the authors' archive, with 100 and 50 made-up images."""
  ten = dataset == 'cifar10'
  inner = folder / ('cifar-10-batches-bin' if ten else 'cifar-100-binary')
  inner.mkdir(parents=True)
  if ten:
    files = {f'data_batch_{i}.bin': 20 for i in range(1, 6)}
    files['test_batch.bin'] = 50
    names = {'batches.meta.txt': 10}
  else:
    files = {'train.bin': 100, 'test.bin': 50}
    names = {'coarse_label_names.txt': 20, 'fine_label_names.txt': 100}
  for name, count in names.items():
    (inner / name).write_text('\n'.join(f'label{i}' for i in range(count)))
  rng = np.random.default_rng(0)
  images = {}
  for name, count in files.items():
    fine = rng.integers(0, 10 if ten else 100, count)
    pixels = rng.integers(0, 256, (count, 3, 32, 32))
    head = [fine] if ten else [fine // 5, fine]
    rows = np.concatenate(
        [np.stack(head, axis=1), pixels.reshape(count, -1)], axis=1
    )
    (inner / name).write_bytes(rows.astype(np.uint8).tobytes())
    for image, label in zip(pixels.astype(np.uint8), fine):
      images[image.transpose(1, 2, 0).tobytes()] = label
  return images


@pytest.mark.parametrize('dataset', ['cifar10', 'cifar100'])
def test_from_tensorflow_datasets(tmp_path, monkeypatch, dataset):
  """The real builders prepare a made-up archive; then all images are found."""
  images = _archive(tmp_path / 'archive', dataset)
  monkeypatch.setattr(
      tfds.download.DownloadManager,
      'download_and_extract',
      lambda self, url: tmp_path / 'archive',
  )
  if dataset == 'cifar10':
    options = dict(num_clients=5)
    open_images = functools.partial(cifar.open_split, 'cifar10')
  else:
    options = dict(num_clients=5, size=20, seed=4)
    open_images = cifar.open_cifar100
  if dataset == 'cifar100':
    with pytest.raises(ValueError, match='need 500, there are 100'):
      open_images(
          str(tmp_path), num_clients=5, size=100, allow_download=True
      )
  opened = open_images(str(tmp_path), allow_download=True, **options)
  assert opened.kind == 'subset'
  assert opened.counts['train'] == (5, 100)
  train = [e for c in _stored(opened['train']).values() for e in c]
  assert len({e['image'].tobytes() for e in train}) == 100
  assert all(images[e['image'].tobytes()] == e['label'] for e in train)
  if dataset == 'cifar100':  # read by TFF's own loader
    assert all(e['coarse_label'] == e['label'] // 5 for e in train)
    assert '"rule": "pachinko"' in opened.provenance['partition']
  # The split that was made needs no download any more.
  again = open_images(str(tmp_path), **options)
  assert again.summary() == opened.summary()


def test_kind_of_images_is_counted_not_named(tmp_path):
  _write_npz(tmp_path, kind='canonical')
  opened = cifar.open_split('cifar10', str(tmp_path), num_clients=20)
  assert opened.kind == 'subset'
  # Pixels of the original's spread, all classes as often.
  spread = np.array([62.99, 62.09, 66.70])
  signs = np.where(np.arange(50_000) % 2, 1, -1)[:, None, None, None]
  image = np.broadcast_to(120 + signs * spread, (50_000, 1, 1, 3))
  full = dict(
      train=dict(image=image, label=np.repeat(np.arange(10), 5000)),
      test=dict(label=np.repeat(np.arange(10), 1000)),
  )
  kind = cifar._kind  # pylint: disable=protected-access
  assert kind('cifar10', full) == 'canonical'
  flat = dict(full, train=dict(full['train'], image=0.9 * image))
  assert kind('cifar10', flat) == 'subset'
  labels = full['train']['label'].copy()
  labels[0] = 1
  other = dict(full, train=dict(full['train'], label=labels))
  assert kind('cifar10', other) == 'subset'
  fine = dict(
      train=dict(label=np.repeat(np.arange(100), 500)),
      test=dict(label=np.repeat(np.arange(100), 100)),
  )
  assert kind('cifar100', fine) == 'canonical'
  assert kind('cifar100', dict(fine, test=fine['train'])) == 'subset'


def test_real_images(monkeypatch):
  # Splitting 60 000 images takes a while: once for all runs of the tests.
  monkeypatch.delenv('TFF_FEDOPT_CACHE')
  data_dir = real_data.directory('cifar10')
  opened = cifar.open_split(
      'cifar10', data_dir, num_clients=500, alpha=0.1
  )
  assert opened.counts == {'train': (500, 50000), 'test': (100, 10000)}
  # The images beside the repository are recompressed; others may be original.
  assert opened.kind in ('subset', 'canonical')
  labels = [e['label'] for e in _stored_one(opened['train'], '000')]
  assert len(labels) == 100 and len(set(labels)) < 8


def _stored_one(clients, client):
  return list(clients.create_tf_dataset_for_client(client).as_numpy_iterator())
