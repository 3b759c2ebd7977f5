"""Opens the data files of TFF's own loaders, after checking them.

The loaders are used as they are; nothing of TensorFlow is imported before the
checks are done.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import os
from typing import Any

from tasks.data import file_check

DataError = file_check.DataError
Found = file_check.Found


@dataclasses.dataclass(frozen=True)
class _Dataset:
  """What is known of a data set beforehand.

  Attributes:
    filename: As the loader calls it.
    splits: Split -> its name in the file.
    features: Feature -> field of tf.train.Feature that holds it.
    published: Split -> (clients, examples) of the file that Google hosts.
    size: Roughly what it takes on disk.
  """

  filename: str
  splits: Mapping[str, str]
  features: Mapping[str, str]
  published: Mapping[str, tuple[int, int]]
  size: str


_INT, _FLOAT, _BYTES = 'int64_list', 'float_list', 'bytes_list'

DATASETS = {
    'cifar100': _Dataset(
        'cifar100.sqlite',
        dict(train='train', test='test'),
        dict(coarse_label=_INT, image=_INT, label=_INT),
        dict(train=(500, 50_000), test=(100, 10_000)),
        '0.3 GB',
    ),
    'emnist': _Dataset(
        'emnist_all.sqlite',
        dict(train='all_train', test='all_test'),
        dict(label=_INT, pixels=_FLOAT),
        dict(train=(3_400, 671_585), test=(3_400, 77_483)),
        '5 GB',
    ),
    'shakespeare': _Dataset(
        'shakespeare.sqlite',
        dict(train='train', test='test'),
        dict(snippets=_BYTES),
        dict(train=(715, 16_068), test=(715, 2_356)),
        '10 MB',
    ),
    'stackoverflow': _Dataset(
        'stackoverflow.sqlite',
        dict(train='train', heldout='heldout', test='test'),
        dict(
            creation_date=_BYTES,
            score=_INT,
            tags=_BYTES,
            title=_BYTES,
            tokens=_BYTES,
            type=_BYTES,
        ),
        dict(
            train=(342_477, 135_818_730),
            heldout=(38_758, 16_491_230),
            test=(204_088, 16_586_035),
        ),
        '100 GB',
    ),
}


def default_data_dir() -> str:
  """Where TFF's loaders keep their files."""
  return os.path.join(os.path.expanduser('~'), '.tff')


def user_cache_dir() -> str:
  """Where files made here go: TFF_FEDOPT_CACHE, or the user's cache folder.

  Raises:
    DataError: If that cannot be a folder.
  """
  base = os.environ.get('XDG_CACHE_HOME') or os.path.join(
      os.path.expanduser('~'), '.cache'
  )
  path = os.environ.get('TFF_FEDOPT_CACHE') or os.path.join(base, 'tff_fedopt')
  existing = os.path.abspath(path)
  while not os.path.exists(existing):
    existing = os.path.dirname(existing)
  made = existing == os.path.abspath(path)
  if not os.path.isdir(existing) or not (made or os.access(existing, os.W_OK)):
    raise DataError(
        f'{path} cannot keep the files that are made here ({existing} is not a'
        ' folder that can be written); set TFF_FEDOPT_CACHE to one that can'
    )
  return path


@dataclasses.dataclass(frozen=True)
class Opened(Found):
  """A checked file with the client data of its splits; `opened['train']`.

  Attributes:
    clients: Split -> `tff.simulation.datasets.ClientData`, as loaded by TFF.
  """

  clients: Mapping[str, Any]

  def __getitem__(self, split: str) -> Any:
    return self.clients[split]


def fetch_command(dataset: str, data_dir: str) -> str:
  """The command that downloads a data set, for error messages."""
  return f'bash scripts/download.sh {dataset} --data_dir {data_dir}'


def opened(found: Found, clients: Mapping[str, Any]) -> Opened:
  """Puts the client data of its splits to a file that was found."""
  fields = {
      field.name: getattr(found, field.name)
      for field in dataclasses.fields(found)
  }
  return Opened(**fields, clients=clients)


def files(
    dataset: str, data_dir: str | None, beside: Sequence[str] = ()
) -> list[str]:
  """The files that a data set is read from; says so if there are none.

  Args:
    dataset: A key of `DATASETS`.
    data_dir: Their folder; None for TFF's own cache.
    beside: Names of further files that are read, below the folder.

  Returns:
    Their paths.

  Raises:
    DataError: If one is missing.
  """
  known = known_dataset(dataset)
  data_dir = os.path.expanduser(data_dir or default_data_dir())
  paths = [os.path.join(data_dir, name) for name in (known.filename, *beside)]
  missing = [path for path in paths if not os.path.isfile(path)]
  if missing:
    raise DataError(
        f'{", ".join(missing)}: no such file; fetch {dataset} (about'
        f' {known.size}) with "{fetch_command(dataset, data_dir)}", or point'
        ' --data_dir at the folder that has it'
    )
  return paths


def find(dataset: str, data_dir: str | None = None) -> Found:
  """Finds and checks the file of a data set; imports no TensorFlow.

  Args:
    dataset: A key of `DATASETS`.
    data_dir: Folder of the file; None for TFF's own cache.

  Returns:
    What was found.

  Raises:
    DataError: If the file is missing or unusable.
  """
  known = known_dataset(dataset)
  data_dir = os.path.expanduser(data_dir or default_data_dir())
  path = os.path.join(data_dir, known.filename)
  if not os.path.exists(path):
    raise DataError(
        f'{path}: no such file; fetch it (about {known.size}) with'
        f' "{fetch_command(dataset, data_dir)}", or point --data_dir at the'
        f' folder that has {known.filename}'
    )
  return file_check.check_file(
      path,
      dataset,
      known.splits,
      published=known.published,
      repair=_repair(dataset, path),
  )


def _repair(dataset: str, path: str) -> str:
  fetch = fetch_command(dataset, os.path.dirname(path))
  return (
      f'delete {path} and fetch it again with "{fetch}", or point --data_dir at'
      ' another folder'
  )


def known_dataset(dataset: str) -> _Dataset:
  """Looks up a data set by name."""
  if dataset not in DATASETS:
    raise ValueError(
        f'unknown data set {dataset!r}, there are {", ".join(DATASETS)}'
    )
  return DATASETS[dataset]


def load(dataset: str, data_dir: str) -> Any:
  """Calls the canonical loader; returns the client data of its splits."""
  import tensorflow_federated as tff  # pylint: disable=g-import-not-at-top

  datasets = tff.simulation.datasets
  if dataset == 'emnist':
    return datasets.emnist.load_data(only_digits=False, cache_dir=data_dir)
  return getattr(datasets, dataset).load_data(cache_dir=data_dir)


def _check_features(found: Found) -> None:
  """Checks that the first example holds the features that the loader parses."""
  import tensorflow as tf  # pylint: disable=g-import-not-at-top

  known = DATASETS[found.dataset]
  with file_check.connect(found.path) as db:
    (serialized,) = db.execute(
        'SELECT serialized_example_proto FROM examples LIMIT 1'
    ).fetchone()
  try:
    features = tf.train.Example.FromString(serialized).features.feature
    lacking = [
        f'{name} ({field})'
        for name, field in known.features.items()
        if name not in features or features[name].WhichOneof('kind') != field
    ]
  except Exception:  # the decode error's class depends on the protobuf
    lacking = ['the form of tf.train.Example']
  if lacking:
    raise DataError(
        f'{found.path}: its examples lack {", ".join(lacking)};'
        f' {_repair(found.dataset, found.path)}'
    )


def open_clients(dataset: str, data_dir: str | None = None) -> Opened:
  """Opens a federated data set through TFF's loader, after checking its file.

  Example:
    opened = open_clients('shakespeare', '/data/tff')
    opened['train'].client_ids, opened.counts['train'], opened.kind

  Args:
    dataset: A key of `DATASETS`.
    data_dir: Folder of the file; None for TFF's own cache.

  Returns:
    The client data of every split, and what is known of the file.

  Raises:
    DataError: If the file is missing or unusable.
  """
  found = find(dataset, data_dir)
  _check_features(found)
  splits = load(dataset, os.path.dirname(found.path))
  return opened(found, dict(zip(DATASETS[dataset].splits, splits)))
