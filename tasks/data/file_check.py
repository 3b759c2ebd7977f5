"""Checks a client data file before a loader sees it.

TFF's downloader writes into the final name and takes any file of that name for
a finished one, so files cut short or damaged do occur. The checks need neither
TensorFlow nor a full read.
"""

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import os
import sqlite3
from typing import Any

import numpy as np


class DataError(ValueError):
  """A data file is missing or unusable; the message says how to repair it."""


@dataclasses.dataclass(frozen=True)
class Found:
  """A data file that passed the checks.

  Attributes:
    dataset: A key of `DATASETS`, or what the writer of the file calls it.
    path: The file.
    kind: 'synthetic', 'canonical' (clients and examples of every split are as
      published) or 'subset'.
    split_names: Split -> its name in the file.
    counts: Split -> (clients, examples).
    provenance: What the file says about itself; empty for hosted files.
  """

  dataset: str
  path: str
  kind: str
  split_names: Mapping[str, str]
  counts: Mapping[str, tuple[int, int]]
  provenance: Mapping[str, str]

  def sizes(self, split: str) -> np.ndarray:
    """Returns int64 [clients], examples per client in order of client id."""
    with connect(self.path) as db:
      rows = db.execute(
          'SELECT SUM(num_examples) FROM client_metadata WHERE split_name = ?'
          ' GROUP BY client_id ORDER BY client_id',
          (self.split_names[split],),
      )
      return np.fromiter((n for (n,) in rows), np.int64)

  def summary(self) -> dict[str, Any]:
    """Returns what is known of the data, as JSON values."""
    return dict(
        dataset=self.dataset,
        kind=self.kind,
        counts={split: list(counts) for split, counts in self.counts.items()},
        provenance=dict(self.provenance),
    )


@contextlib.contextmanager
def connect(path: str) -> Iterator[sqlite3.Connection]:
  """A read-only connection, closed at the end."""
  uri = 'file:' + path.replace('?', '%3f').replace('#', '%23') + '?mode=ro'
  with contextlib.closing(sqlite3.connect(uri, uri=True)) as db:
    yield db


def _check_header(path: str) -> None:
  """Finds files of another type and files cut short, without reading them."""
  size = os.path.getsize(path)
  with open(path, 'rb') as f:
    header = f.read(100)
  if header[:16] != b'SQLite format 3\0':
    raise DataError('not an SQLite file')
  if len(header) < 100:
    raise DataError(f'cut short: {size} bytes')
  number = lambda at, length: int.from_bytes(header[at : at + length], 'big')
  page_size = number(16, 2)
  page_size = 65536 if page_size == 1 else page_size
  # The page count is valid when these two counters agree (SQLite file format).
  if number(24, 4) == number(92, 4) and size < page_size * number(28, 4):
    raise DataError(f'cut short: {size} of {page_size * number(28, 4)} bytes')


def _check_rows(db: sqlite3.Connection, split_name: str) -> None:
  """Compares the row counts of two clients with the metadata."""
  query = (
      'SELECT client_id, SUM(num_examples) FROM client_metadata WHERE'
      ' split_name = ? GROUP BY client_id ORDER BY client_id %s LIMIT 1'
  )
  for order in ('ASC', 'DESC'):
    client, wanted = db.execute(query % order, (split_name,)).fetchone()
    ((got,),) = db.execute(
        'SELECT COUNT(*) FROM examples WHERE client_id = ? AND split_name = ?',
        (client, split_name),
    )
    if got != wanted:
      raise DataError(
          f'client {client!r} of split {split_name!r} has {got} examples where'
          f' its metadata says {wanted}',
      )


def _check_tables(
    db: sqlite3.Connection, split_names: Mapping[str, str]
) -> dict[str, tuple[int, int]]:
  """Checks schema and totals; returns split -> (clients, examples)."""
  for table, wanted in (
      ('examples', ('split_name', 'client_id', 'serialized_example_proto')),
      ('client_metadata', ('client_id', 'split_name', 'num_examples')),
  ):
    columns = {row[1] for row in db.execute(f'PRAGMA table_info({table})')}
    missing = sorted(set(wanted) - columns)
    if missing:
      raise DataError(f'table {table} lacks {", ".join(missing)}')
  totals = {
      name: (clients, examples)
      for name, clients, examples in db.execute(
          'SELECT split_name, COUNT(DISTINCT client_id), SUM(num_examples) FROM'
          ' client_metadata GROUP BY split_name'
      )
  }
  missing = sorted(set(split_names.values()) - set(totals))
  if missing:
    raise DataError(f'no clients in split {", ".join(missing)}')
  # Row ids count up, so the largest is no smaller than the number of rows.
  ((last_row,),) = db.execute('SELECT MAX(rowid) FROM examples')
  announced = sum(examples for _, examples in totals.values())
  if (last_row or 0) < announced:
    raise DataError(
        f'has {last_row or 0} of the {announced} examples it announces'
    )
  return {split: totals[name] for split, name in split_names.items()}


def _check_content(
    db: sqlite3.Connection, split_names: Mapping[str, str]
) -> dict[str, tuple[int, int]]:
  """Checks what the database holds; returns split -> (clients, examples)."""
  counts = _check_tables(db, split_names)
  db.execute(
      'SELECT serialized_example_proto FROM examples ORDER BY rowid DESC'
      ' LIMIT 1'
  ).fetchone()
  for _, index, *_ in db.execute('PRAGMA index_list(examples)').fetchall():
    first = db.execute(f'PRAGMA index_info("{index}")').fetchone()
    # Without such an index, looking up one client means reading everything.
    if first and first[2] == 'client_id':
      for name in split_names.values():
        _check_rows(db, name)
      break
  return counts


def check_file(
    path: str,
    dataset: str,
    split_names: Mapping[str, str],
    *,
    published: Mapping[str, tuple[int, int]] | None = None,
    repair: str = 'delete it and run again',
) -> Found:
  """Checks a data file in well under a second, whatever its size.

  Looks at: header, length against page count, tables and columns, splits,
  numbers of clients and examples, the last example, and two clients of every
  split. It does not read the whole file.

  Args:
    path: The file.
    dataset: What to call the data.
    split_names: Split -> its name in the file.
    published: Split -> (clients, examples) of the published file.
    repair: What to do about a bad file, for the error message.

  Returns:
    What was found.

  Raises:
    DataError: If the file is missing or unusable.
  """
  provenance = {}
  try:
    _check_header(path)
    with connect(path) as db:
      counts = _check_content(db, split_names)
      if db.execute('PRAGMA table_info(provenance)').fetchall():
        provenance = dict(db.execute('SELECT name, value FROM provenance'))
  except (sqlite3.Error, OSError, DataError) as e:
    what = e if isinstance(e, DataError) else f'damaged or unreadable ({e})'
    raise DataError(f'{path}: {what}; {repair}') from e
  kind = provenance.get('kind')
  # What is hosted is known by its counts, whatever a file says of itself.
  if kind is None or (kind == 'canonical' and published is not None):
    kind = 'canonical' if counts == published else 'subset'
  return Found(dataset, path, kind, dict(split_names), counts, provenance)
