"""Files that are whole or not there."""

from collections.abc import Iterable
import json
import os
import pathlib
from typing import Any

Path = str | os.PathLike


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
  """Writes a file under a temporary name, then moves it into place.

  After a crash, also of the machine, the file is the old one or the new one.

  Only one process at a time may write a file.

  Args:
    path: The file; its folder is made if missing.
    chunks: The contents.
  """
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  # One name per file: what a killed process left is overwritten by the next.
  temporary = path.with_name(path.name + '.tmp')
  with open(temporary, 'wb') as f:
    for chunk in chunks:
      f.write(chunk)
    f.flush()
    os.fsync(f.fileno())
  os.replace(temporary, path)


def write_text(path: Path, text: str) -> None:
  """Writes text as UTF-8, atomically."""
  write_atomically(path, [text.encode('utf-8')])


def write_json(path: Path, values: Any) -> None:
  """Writes JSON for people and programs, atomically."""
  text = json.dumps(values, indent=2, ensure_ascii=False, sort_keys=True)
  write_atomically(path, [text.encode('utf-8'), b'\n'])
