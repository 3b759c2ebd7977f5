"""Federated CIFAR from arrays: split, written as SQLite, opened through TFF.

CIFAR-10 has no TFF loader; its images come from TensorFlow Datasets or from a
`cifar10.npz` (x_train, y_train, x_test, y_test), and are split here. CIFAR-100
from TensorFlow Datasets goes through our own Pachinko allocation into the file
that TFF's CIFAR-100 loader reads; for the other splits its images are taken out
of that loader's file, or from TensorFlow Datasets too.
"""

import collections
from collections.abc import Iterator, Mapping
import dataclasses
import hashlib
import json
import os
from typing import Any

import numpy as np

from tasks import code_hash
from tasks.data import content
from tasks.data import file_check
from tasks.data import noise
from tasks.data import partition
from tasks.data import sources
from tasks.data import sqlite_writer

RULES = {'hsu': partition.hsu, 'flsim': partition.flsim, 'iid': partition.iid}

# Standard deviation of the pixels of CIFAR-10's training images by channel. It
# tells recompressed copies from the original, which have lower contrast.
_CIFAR10_STD = (62.99, 62.09, 66.70)


@dataclasses.dataclass(frozen=True)
class _Source:
  """Images before they are split.

  Attributes:
    key: Changes when the images may have changed.
    read: () -> (split -> arrays by feature name, kind of data).
  """

  key: str
  read: Any


def _kind(dataset: str, splits: Mapping[str, Any]) -> str:
  """What images are, by counts of all of them and the pixels of CIFAR-10's."""
  classes = {'cifar10': 10, 'cifar100': 100}[dataset]
  for split, total in (('train', 50_000), ('test', 10_000)):
    counts = np.bincount(splits[split]['label'], minlength=classes)
    if counts.tolist() != [total // classes] * classes:
      return 'subset'
  if dataset == 'cifar10':
    pixels = splits['train']['image'].reshape(-1, 3)
    if not np.allclose(pixels.std(axis=0), _CIFAR10_STD, atol=0.1):
      return 'subset'
  return 'canonical'


def _tfds(dataset: str, data_dir: str, allow_download: bool) -> _Source:
  """The images of TensorFlow Datasets."""
  import tensorflow_datasets as tfds  # pylint: disable=g-import-not-at-top

  builder = tfds.builder(dataset, data_dir=data_dir)
  if allow_download:
    # From the authors' site, checked by hash, not from a prepared copy.
    config = tfds.download.DownloadConfig(try_download_gcs=False)
    builder.download_and_prepare(download_config=config)

  def read():
    splits = {}
    for split in ('train', 'test'):
      try:
        data = builder.as_dataset(split=split, batch_size=-1)
      except AssertionError as e:  # what tfds raises when nothing is prepared
        raise _nothing(dataset, data_dir) from e
      names = ('image', 'label', 'coarse_label')
      splits[split] = {k: data[k].numpy() for k in names if k in data}
    return splits, _kind(dataset, splits)

  # Of another content, another partition.
  key = _content_key(_tfds_files(dataset, data_dir))
  return _Source(f'{builder.info.full_name} {key}', read)


def _tfds_files(dataset: str, data_dir: str) -> list[str]:
  """The files of a data set that TensorFlow Datasets has prepared."""
  return [
      os.path.join(folder, name)
      for folder, _, names in os.walk(os.path.join(data_dir, dataset))
      for name in names
  ]


def _content_key(paths: list[str]) -> str:
  return json.dumps(content.of_files(paths), sort_keys=True)


def files(
    dataset: str, data_dir: str | None, federated: bool = True
) -> list[str]:
  """The files that the images are read from; says so if there are none.

  Args:
    dataset: 'cifar10' or 'cifar100'.
    data_dir: Their folder; None for TFF's own cache.
    federated: Whether the file of TFF's CIFAR-100 loader will do.

  Returns:
    Their paths.

  Raises:
    DataError: If there are none.
  """
  data_dir = os.path.expanduser(data_dir or sources.default_data_dir())
  path = os.path.join(data_dir, _IN_ONE_FILE[dataset][0])
  if os.path.exists(path) and (federated or dataset == 'cifar10'):
    return [path]
  found = _tfds_files(dataset, data_dir)
  if not found:
    raise _nothing(dataset, data_dir)
  return found


def _nothing(dataset: str, data_dir: str) -> sources.DataError:
  npz = ' or cifar10.npz' if dataset == 'cifar10' else ''
  return sources.DataError(
      f'{data_dir}: no {dataset}{npz}; make it with "python -c \'import'
      f' tensorflow_datasets as tfds; tfds.builder("{dataset}",'
      f' data_dir="{data_dir}").download_and_prepare()\'", or point'
      ' --data_dir at the folder that has it'
  )


def _npz(path: str) -> _Source:
  """The images of a `cifar10.npz`."""

  def read():
    try:
      with np.load(path) as npz:
        splits = {
            split: dict(
                image=npz[f'x_{split}'],
                label=npz[f'y_{split}'].reshape(-1).astype(np.int64),
            )
            for split in ('train', 'test')
        }
        kind = str(npz['kind']) if 'kind' in npz.files else None
    except Exception as e:  # zip, pickle and key errors alike mean a bad file
      raise sources.DataError(
          f'{path}: not an archive of x_train, y_train, x_test, y_test ({e});'
          f' delete it and make it again'
      ) from e
    for split, arrays in splits.items():
      image, label = arrays['image'], arrays['label']
      if (
          image.shape[1:] != (32, 32, 3)
          or image.dtype != np.uint8
          or len(image) != len(label)
      ):
        raise sources.DataError(
            f'{path}: x_{split} must be uint8 [{len(label)}, 32, 32, 3], is'
            f' {image.dtype} {list(image.shape)}; delete it and make it again'
        )
    if kind in (None, 'canonical'):
      kind = _kind('cifar10', splits)
    return splits, kind

  return _Source(_content_key([path]), read)


def _federated(path: str) -> _Source:
  """The images in the file of TFF's CIFAR-100 loader, client after client."""

  def read():
    opened = sources.open_clients('cifar100', os.path.dirname(path))
    splits = {}
    for split in ('train', 'test'):
      parts = [
          batch
          for client in opened[split].client_ids
          for batch in opened[split]
          .create_tf_dataset_for_client(client)
          .batch(1000)
          .as_numpy_iterator()
      ]
      splits[split] = {
          name: np.concatenate([part[name] for part in parts])
          for name in ('image', 'label')
      }
    return splits, opened.kind

  return _Source(_content_key([path]), read)


_IN_ONE_FILE = {
    'cifar10': ('cifar10.npz', _npz),
    'cifar100': (sources.DATASETS['cifar100'].filename, _federated),
}


def _client_rows(
    split: str,
    arrays: Mapping[str, np.ndarray],
    dealt: np.ndarray,
    noise: noise.Noise,
) -> Iterator[tuple[str, str, list[bytes]]]:
  """What the SQLite writer wants, for one split."""
  width = len(str(len(dealt) - 1))
  for client, indices in enumerate(dealt):
    own = {name: array[indices] for name, array in arrays.items()}
    if split == 'train':
      own['image'] = noise.disturbed(own['image'], own['label'], client)
    examples = [
        sqlite_writer.serialized_example(
            **{name: array[i] for name, array in own.items()}
        )
        for i in range(len(indices))
    ]
    yield split, f'{client:0{width}d}', examples


def _write(
    path: str,
    source: _Source,
    deal,
    settings: Mapping[str, Any],
    noise: noise.Noise = noise.Noise(),
) -> None:
  """Splits the images and writes the file unless it is there."""

  def build(unfinished):
    splits, kind = source.read()
    dealt = {split: deal(split, arrays) for split, arrays in splits.items()}
    rows = (
        row
        for split, arrays in splits.items()
        for row in _client_rows(split, arrays, dealt[split], noise)
    )
    sqlite_writer.write_database(
        unfinished,
        rows,
        dict(
            kind=kind,
            partition=json.dumps(settings, sort_keys=True),
            partition_hash=partition.partition_hash(dealt['train']),
        ),
    )

  sqlite_writer.build_once(path, build)


def _folder(source: _Source, settings: Mapping[str, Any]) -> str:
  """Where a partition is kept: one folder for images, settings and code."""
  code = code_hash.together(code_hash.of_module(__name__))
  key = json.dumps([source.key, settings, code], sort_keys=True)
  name = hashlib.sha256(key.encode()).hexdigest()[:16]
  return os.path.join(sources.user_cache_dir(), 'partitions', name)


def open_split(
    dataset: str,
    data_dir: str | None = None,
    *,
    rule: str = 'hsu',
    num_clients: int = 500,
    alpha: float = 0.1,
    seed: int = 0,
    noise: noise.Noise = noise.Noise(),
    allow_download: bool = False,
) -> sources.Opened:
  """Opens CIFAR-10 or CIFAR-100, split among clients by (fine) label alone.

  The split is made once and kept in the user's cache folder. The test split is
  all test images in stored order, in clients of 100.

  Example:
    opened = open_split('cifar10', '/data/tfds', rule='hsu', alpha=0.1, seed=1)
    opened['train'].client_ids  # '000' ... '499'

  Args:
    dataset: 'cifar10' or 'cifar100'.
    data_dir: Folder of `cifar10.npz`, of the file of TFF's CIFAR-100 loader, or
      of TensorFlow Datasets; None for TFF's own cache.
    rule: A key of `RULES`.
    num_clients: Training clients.
    alpha: Concentration of the Dirichlet rules; 'iid' ignores it.
    seed: Seed of the partition.
    noise: What is done to training images.
    allow_download: Whether TensorFlow Datasets may download the images.

  Returns:
    Splits 'train' and 'test'; examples are OrderedDict(image=uint8 [32, 32, 3],
    label=int64 []).

  Raises:
    DataError: If there are no usable images.
    ValueError: If the rule is unknown or the partition impossible.
  """
  if rule not in RULES:
    raise ValueError(
        f'unknown partition {rule!r}, there are {", ".join(RULES)}'
    )
  source = _source(dataset, data_dir, allow_download)
  settings = dict(dataset=dataset, rule=rule, clients=num_clients, seed=seed)
  options = {} if rule == 'iid' else dict(alpha=alpha)
  settings.update(options, **noise.settings())

  def deal(split, arrays):
    if split == 'test':
      num = len(arrays['label'])
      return np.array_split(np.arange(num), max(1, num // 100))
    return RULES[rule](
        arrays['label'], num_clients=num_clients, seed=seed, **options
    )

  path = os.path.join(_folder(source, settings), f'{dataset}.sqlite')
  _write(path, source, deal, settings, noise)
  split_names = dict(train='train', test='test')
  found = file_check.check_file(path, dataset, split_names)
  return sources.opened(found, _open_images(path))


def _source(
    dataset: str, data_dir: str | None, allow_download: bool
) -> _Source:
  """The images of a folder: in one file, or of TensorFlow Datasets."""
  data_dir = os.path.expanduser(data_dir or sources.default_data_dir())
  name, read = _IN_ONE_FILE[dataset]
  path = os.path.join(data_dir, name)
  if os.path.exists(path):
    return read(path)
  return _tfds(dataset, data_dir, allow_download)


def _open_images(path: str):
  """Client data of images and labels, one per split."""
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  import tensorflow_federated as tff  # pylint: disable=g-import-not-at-top

  spec = dict(
      image=tf.io.FixedLenFeature([32, 32, 3], tf.int64),
      label=tf.io.FixedLenFeature([], tf.int64),
  )

  def parse(serialized):
    parsed = tf.io.parse_example(serialized, spec)
    return collections.OrderedDict(
        image=tf.cast(parsed['image'], tf.uint8), label=parsed['label']
    )

  return {
      split: tff.simulation.datasets.SqlClientData(path, split).preprocess(
          lambda dataset: dataset.map(parse)
      )
      for split in ('train', 'test')
  }


def open_cifar100(
    data_dir: str | None = None,
    *,
    num_clients: int = 500,
    size: int = 100,
    alpha: float = 0.1,
    beta: float = 10.0,
    seed: int = 0,
    allow_download: bool = False,
) -> sources.Opened:
  """Opens CIFAR-100 of TensorFlow Datasets, split by Pachinko allocation.

  The same partition rule as TFF's fixed file, with a seed of your own. The test
  split is allocated likewise, to a fifth of the clients.

  Args:
    data_dir: Folder of TensorFlow Datasets; None for TFF's own cache.
    num_clients: Training clients.
    size: Examples per client.
    alpha: Concentration over the 20 coarse labels.
    beta: Concentration over the 5 fine labels of each.
    seed: Seed of the partition.
    allow_download: Whether TensorFlow Datasets may download the images.

  Returns:
    What `sources.open_clients('cifar100')` returns.

  Raises:
    DataError: If there are no usable images.
    ValueError: If the partition is impossible.
  """
  data_dir = os.path.expanduser(data_dir or sources.default_data_dir())
  source = _tfds('cifar100', data_dir, allow_download)
  settings = dict(
      dataset='cifar100',
      rule='pachinko',
      clients=num_clients,
      size=size,
      alpha=alpha,
      beta=beta,
      seed=seed,
  )

  def deal(split, arrays):
    return partition.pachinko(
        arrays['label'],
        arrays['coarse_label'],
        num_clients=num_clients if split == 'train' else num_clients // 5,
        size=size,
        alpha=alpha,
        beta=beta,
        seed=seed,
    )

  folder = _folder(source, settings)
  _write(os.path.join(folder, 'cifar100.sqlite'), source, deal, settings)
  return sources.open_clients('cifar100', folder)
