"""What is in data files, by hash; large files are read once."""

from collections.abc import Iterable, Mapping
import hashlib
import json
import os

from tasks.data import sources


def sha256(path: str) -> str:
  """Returns the SHA-256 of a file's content, in hex.

  It is kept in the user's cache folder, and holds as long as the file's size,
  modification time and inode stay the same.

  Args:
    path: The file.

  Raises:
    DataError: If it cannot be read, or the cache folder cannot be used.
  """
  path = os.path.abspath(path)
  try:
    stat = os.stat(path)
    known = [path, stat.st_size, stat.st_mtime_ns, stat.st_ino]
    name = hashlib.sha256(path.encode()).hexdigest()[:16]
    kept = os.path.join(sources.user_cache_dir(), 'hashes', f'{name}.json')
    try:
      with open(kept, encoding='utf-8') as f:
        *of, digest = json.load(f)
      if of == known:
        return digest
    except (OSError, ValueError):
      pass  # There is none yet, or it is damaged.
    with open(path, 'rb') as f:
      digest = hashlib.sha256()
      while block := f.read(2**20):
        digest.update(block)
    digest = digest.hexdigest()
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    temporary = f'{kept}.{os.getpid()}.tmp'
    with open(temporary, 'w', encoding='utf-8') as f:
      json.dump([*known, digest], f)
    os.replace(temporary, kept)
  except OSError as e:
    raise sources.DataError(f'{path}: {e.strerror}') from e
  return digest


def of_files(paths: Iterable[str]) -> Mapping[str, str]:
  """The hashes of several files, by name within their common folder."""
  paths = [os.path.abspath(path) for path in paths]
  if not paths:
    return {}
  folder = os.path.commonpath([os.path.dirname(path) for path in paths])
  return {os.path.relpath(path, folder): sha256(path) for path in sorted(paths)}
