"""Embedded synthetic data: small, learnable, made once, in the canonical form.

    data_dir = synthetic.ensure('emnist')
    opened = sources.open_clients('emnist', data_dir)

The files have the names, schema, features and splits of the real ones, so all
code runs on them unchanged. They imitate the heterogeneity of the real data
(writers, a label hierarchy dealt by Pachinko allocation, role dialects, topical
users with a Zipf vocabulary) and say of themselves that they are synthetic.
"""

from collections.abc import Callable, Mapping
import json
import os
import types
from typing import NamedTuple

import numpy as np

from tasks import code_hash
from tasks.data import partition
from tasks.data import sources
from tasks.data import sqlite_writer
from tasks.synthetic import images as images_lib
from tasks.synthetic import posts
from tasks.synthetic import speech

SEED = 20200229


def names() -> list[str]:
  """The data sets that can be made."""
  return list(_GENERATORS)


def code(dataset: str) -> Mapping[str, str]:
  """The code that makes a data set: names of files to hashes.

  Raises:
    ValueError: If the data set is unknown.
  """
  files: dict[str, str] = {}
  for module in (__name__, sqlite_writer.__name__):
    files.update(code_hash.of_module(module, alone=True))
  for module in _generator(dataset).modules:
    files.update(code_hash.of_module(module.__name__))
  return files


def folder() -> str:
  """Where the files go, outside the repository; see `sources.user_cache_dir`.

  Other code makes other files.
  """
  every = {k: v for dataset in _GENERATORS for k, v in code(dataset).items()}
  name = f'synthetic-{code_hash.together(every)}'
  return os.path.join(sources.user_cache_dir(), name)


def _write_clients(path: str, dataset: str, clients) -> None:
  """Writes (split, client, dicts of features) as a database."""
  rows = (
      (split, client, [sqlite_writer.serialized_example(**e) for e in examples])
      for split, client, examples in clients
  )
  generator = code_hash.together(code(dataset))
  provenance = dict(kind='synthetic', generator=generator, seed=f'{SEED}')
  sqlite_writer.write_database(path, rows, provenance)


def _write_text(path: str, text: str) -> None:
  def build(unfinished):
    with open(unfinished, 'w', encoding='utf-8') as f:
      f.write(text)

  sqlite_writer.build_once(path, build)


def _emnist(path: str) -> None:
  _write_clients(path, 'emnist', images_lib.characters(SEED))


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

  _write_clients(path, 'cifar100', clients())


def _shakespeare(path: str) -> None:
  _write_clients(path, 'shakespeare', speech.roles(SEED))


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
  _write_clients(path, 'stackoverflow', clients)


class _Generator(NamedTuple):
  """How a data set is made: its main file, by what, and what that uses."""

  filename: str
  write: Callable[[str], None]
  modules: tuple[types.ModuleType, ...]


_GENERATORS = {
    'cifar10': _Generator('cifar10.npz', _cifar10, (images_lib,)),
    'cifar100': _Generator(
        sources.DATASETS['cifar100'].filename,
        _cifar100,
        (images_lib, partition),
    ),
    'emnist': _Generator(
        sources.DATASETS['emnist'].filename, _emnist, (images_lib,)
    ),
    'shakespeare': _Generator(
        sources.DATASETS['shakespeare'].filename,
        _shakespeare,
        (speech,),
    ),
    'stackoverflow': _Generator(
        sources.DATASETS['stackoverflow'].filename,
        _stackoverflow,
        (posts,),
    ),
}


def _generator(dataset):
  if dataset not in _GENERATORS:
    raise ValueError(
        f'unknown data set {dataset!r}, there are {", ".join(_GENERATORS)}'
    )
  return _GENERATORS[dataset]


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
  made = _generator(dataset)
  data_dir = data_dir or folder()
  sqlite_writer.build_once(os.path.join(data_dir, made.filename), made.write)
  return data_dir
