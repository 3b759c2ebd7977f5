"""Downloads hosted data sets with TFF's own loaders, safely.

The loader writes into a folder of its own; a file comes to its place only after
the checks, so an interrupted download is never taken for a data set.
"""

import os
import shutil

from tasks.data import counts
from tasks.data import file_check
from tasks.data import sources
from tasks.data import sqlite_writer


def download(dataset: str, data_dir: str | None = None) -> str:
  """Downloads a data set unless it is there.

  Args:
    dataset: A key of `sources.DATASETS`.
    data_dir: Folder to put it in; None for TFF's own cache.

  Returns:
    The file.

  Raises:
    DataError: If it cannot be fetched or what comes is not usable.
  """
  known = sources.known_dataset(dataset)
  data_dir = os.path.expanduser(data_dir or sources.default_data_dir())

  def fetch(unfinished):
    folder = os.path.join(data_dir, f'.{dataset}.download')
    shutil.rmtree(folder, ignore_errors=True)
    try:
      sources.load(dataset, folder)
      fetched = os.path.join(folder, known.filename)
      file_check.check_file(fetched, dataset, known.splits)
      os.replace(fetched, unfinished)
    except Exception as e:  # network, decompression, SQLite: many classes
      raise sources.DataError(
          f'could not download {dataset} ({e}); check the network and run'
          f' again, or put {known.filename} in {data_dir} by other means'
      ) from e
    finally:
      shutil.rmtree(folder, ignore_errors=True)

  path = os.path.join(data_dir, known.filename)
  sqlite_writer.build_once(path, fetch)
  if dataset == 'stackoverflow':
    _download_counts(data_dir)
  return path


def _download_counts(data_dir: str) -> None:
  """Downloads the count files that are missing; TFF checks their hashes."""
  import tensorflow_federated as tff  # pylint: disable=g-import-not-at-top

  source = tff.simulation.datasets.stackoverflow
  for name, fetch in (
      (counts.WORDS, source.load_word_counts),
      (counts.TAGS, source.load_tag_counts),
  ):
    if os.path.exists(os.path.join(data_dir, 'datasets', name)):
      continue
    try:
      fetch(cache_dir=data_dir)
    except Exception as e:  # Keras raises a bare Exception when it cannot fetch
      raise sources.DataError(
          f'could not download {name} ({e}); check the network and run again,'
          f' or unpack {name}.tar.bz2 in {data_dir}/datasets by other means'
      ) from e
