"""Reads the Stack Overflow word and tag counts from a data folder.

TFF's own readers accept only the archive that Google hosts, by its hash, and
download it otherwise. These read the unpacked files where TFF leaves them,
`DATA_DIR/datasets/stackoverflow.{word,tag}_count`.
"""

import itertools
import json
import os

from tasks.data import sources

WORDS, TAGS = 'stackoverflow.word_count', 'stackoverflow.tag_count'


def below(*names: str) -> list[str]:
  """Where count files are below the folder of the data file."""
  return [os.path.join('datasets', name) for name in names]


def path_of(data_dir: str | None, name: str) -> str:
  """Where the count file must be, in the folder of the data file."""
  data_dir = os.path.expanduser(data_dir or sources.default_data_dir())
  path = os.path.join(data_dir, *below(name))
  if not os.path.isfile(path):
    fetch = sources.fetch_command('stackoverflow', data_dir)
    raise sources.DataError(
        f'{path}: no such file; unpack {name}.tar.bz2 there, or fetch it with'
        f' "{fetch}"'
    )
  return path


def require(data_dir: str | None, *names: str) -> None:
  """Checks that the data file and count files are there; names all missing.

  Args:
    data_dir: Folder of the data file; None for TFF's own cache.
    *names: Of `WORDS` and `TAGS`, those that are needed.

  Raises:
    DataError: If more than one is missing; what opens a file tells the rest.
  """
  known = sources.known_dataset('stackoverflow')
  data_dir = os.path.expanduser(data_dir or sources.default_data_dir())
  files = (known.filename, *below(*names))
  missing = [
      path
      for path in (os.path.join(data_dir, name) for name in files)
      if not os.path.isfile(path)
  ]
  if len(missing) > 1:
    raise sources.DataError(
        f'{", ".join(missing)}: no such files; fetch them (about {known.size})'
        f' with "{sources.fetch_command("stackoverflow", data_dir)}", or point'
        ' --data_dir at the folder that has them'
    )


def _head(names: list[str], size: int, path: str, what: str) -> list[str]:
  if size < 1:
    raise ValueError(f'the number of {what} must be positive, got {size}')
  if len(names) < size:
    raise sources.DataError(
        f'{path}: has {len(names)} {what}, {size} are needed; use another file'
        f' or a vocabulary of at most {len(names)}'
    )
  return names[:size]


def words(data_dir: str | None, size: int = 10_000) -> list[str]:
  """Returns the most frequent words: the head of the file, in its order.

  Args:
    data_dir: Folder that holds `datasets/stackoverflow.word_count`, one
      'word count' per line; None for TFF's own cache.
    size: Number of words.

  Returns:
    `size` words.

  Raises:
    DataError: If the file is missing, malformed or has fewer words.
  """
  path = path_of(data_dir, WORDS)
  names = []
  with open(path, encoding='utf-8') as f:
    for number, line in enumerate(itertools.islice(f, size), 1):
      fields = line.split()
      if len(fields) != 2 or not fields[1].isdigit():
        raise sources.DataError(
            f'{path}: line {number} is not "word count": {line.strip()!r:.60};'
            f' delete {path} and fetch it again'
        )
      names.append(fields[0])
  return _head(names, size, path, 'words')


def tags(data_dir: str | None, size: int = 500) -> list[str]:
  """Returns the most frequent tags, ties in the order of the file.

  Args:
    data_dir: Folder that holds `datasets/stackoverflow.tag_count`, a JSON
      object of counts; None for TFF's own cache.
    size: Number of tags.

  Returns:
    `size` tags.

  Raises:
    DataError: If the file is missing, malformed or has fewer tags.
  """
  path = path_of(data_dir, TAGS)
  try:
    with open(path, encoding='utf-8') as f:
      counts = [(str(tag), int(n)) for tag, n in json.load(f).items()]
  except (ValueError, AttributeError, TypeError) as e:
    raise sources.DataError(
        f'{path}: not a JSON object of counts ({e}); delete it and fetch it'
        ' again'
    ) from e
  names = [tag for tag, _ in sorted(counts, key=lambda item: -item[1])]
  return _head(names, size, path, 'tags')
