"""Embedded synthetic data: small, learnable, made once, in the canonical form.

    data_dir = synthetic.ensure('emnist')
    opened = sources.open_clients('emnist', data_dir)

The files have the names, schema, features and splits of the real ones, so all
code runs on them unchanged. They imitate the heterogeneity of the real data
(writers, a label hierarchy dealt by Pachinko allocation, role dialects, topical
users with a Zipf vocabulary) and say of themselves that they are synthetic.
"""

import json
import os

import numpy as np

from tasks.data import partition
from tasks.data import sources
from tasks.data import sqlite_writer
from tasks.synthetic import images as images_lib
from tasks.synthetic import posts
from tasks.synthetic import speech

# Change it whenever a generator changes what it makes.
VERSION = 1
SEED = 20200229


def folder() -> str:
  """Where the files go, outside the repository; see `sources.user_cache_dir`."""
  return os.path.join(sources.user_cache_dir(), f'synthetic-{VERSION}')


def _write_clients(path: str, clients) -> None:
  """Writes (split, client, dicts of features) as a database."""
  rows = (
      (split, client, [sqlite_writer.serialized_example(**e) for e in examples])
      for split, client, examples in clients
  )
  provenance = dict(kind='synthetic', generator=f'{VERSION}', seed=f'{SEED}')
  sqlite_writer.write_database(path, rows, provenance)


def _write_text(path: str, text: str) -> None:
  def build(unfinished):
    with open(unfinished, 'w', encoding='utf-8') as f:
      f.write(text)

  sqlite_writer.build_once(path, build)


def _emnist(path: str) -> None:
  _write_clients(path, images_lib.characters(SEED))


def _cifar10(path: str) -> None:
  rng = np.random.default_rng(SEED)
  labels = {
      'train': rng.permutation(np.repeat(np.arange(10), 500)),
      'test': rng.permutation(np.repeat(np.arange(10), 100)),
  }
  arrays = {}
  for split, y in labels.items():
    arrays[f'x_{split}'] = images_lib.photographs(y, y, 1.2, SEED, rng)
    arrays[f'y_{split}'] = y
  with open(path, 'wb') as f:
    np.savez(f, kind=np.array('synthetic'), **arrays)


def _cifar100(path: str) -> None:
  rng = np.random.default_rng(SEED)

  def clients():
    for split, per_class in (('train', 100), ('test', 20)):
      fine = rng.permutation(np.repeat(np.arange(100), per_class))
      coarse = fine // 5
      images = images_lib.photographs(fine, coarse, 0.5, SEED, rng)
      dealt = partition.pachinko(
          fine, coarse, num_clients=per_class, size=100, seed=SEED
      )
      for client, indices in enumerate(dealt):
        yield split, f'{client}', [
            dict(coarse_label=coarse[i], image=images[i], label=fine[i])
            for i in indices
        ]

  _write_clients(path, clients())


def _shakespeare(path: str) -> None:
  _write_clients(path, speech.roles(SEED))


def _stackoverflow(path: str) -> None:
  """Writes the database, after the count files, so that they come together."""
  clients = list(posts.users(SEED))
  words, tags = posts.counts(clients)
  datasets = os.path.join(os.path.dirname(path), 'datasets')
  _write_text(
      os.path.join(datasets, 'stackoverflow.word_count'),
      ''.join(f'{word} {n}\n' for word, n in words),
  )
  _write_text(
      os.path.join(datasets, 'stackoverflow.tag_count'), json.dumps(dict(tags))
  )
  _write_clients(path, clients)


_GENERATORS = {
    'cifar10': ('cifar10.npz', _cifar10),
    'cifar100': (sources.DATASETS['cifar100'].filename, _cifar100),
    'emnist': (sources.DATASETS['emnist'].filename, _emnist),
    'shakespeare': (sources.DATASETS['shakespeare'].filename, _shakespeare),
    'stackoverflow': (sources.DATASETS['stackoverflow'].filename, _stackoverflow),
}


def ensure(dataset: str, data_dir: str | None = None) -> str:
  """Makes the synthetic files of a data set unless they are there.

  Safe when two processes start at once; a finished file appears all at once.

  Args:
    dataset: 'cifar10', 'cifar100', 'emnist', 'shakespeare' or 'stackoverflow'.
    data_dir: Where to put them; None for `folder()`.

  Returns:
    The folder, a value for `data_dir` of the functions that open data.

  Raises:
    ValueError: If the data set is unknown.
  """
  if dataset not in _GENERATORS:
    raise ValueError(
        f'unknown data set {dataset!r}, there are {", ".join(_GENERATORS)}'
    )
  data_dir = data_dir or folder()
  filename, generate = _GENERATORS[dataset]
  sqlite_writer.build_once(os.path.join(data_dir, filename), generate)
  return data_dir
