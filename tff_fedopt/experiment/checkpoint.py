"""Checkpoints: whole or not there, and never taken for something else."""

import dataclasses
import hashlib
import io
import json
import pathlib
import re
from typing import Any

import numpy as np

from tff_fedopt.experiment import files
from tff_fedopt.experiment import leaves as leaves_lib

_KIND = b'tff_fedopt checkpoint '
_MAGIC = _KIND + b'1\n'
_NAME = 'round_{:08d}.ckpt'
_PATTERN = re.compile(r'round_(\d{8,})\.ckpt')


class CheckpointError(RuntimeError):
  """A checkpoint cannot be used; the message names it and what to do."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """What a run needs to go on.

  Attributes:
    round: Rounds completed.
    state: The server's state.
    positions: Sizes in bytes of the run's append-only files.
    fingerprint: The run's fingerprint.
  """

  round: int
  state: Any
  positions: dict[str, int]
  fingerprint: str


class Store:
  """The newest checkpoints of one run, one file each.

  File: a magic line, the SHA-256 of the rest in hex and a newline, then a NumPy
  archive of the state's leaves and a JSON `meta`. It is written under another
  name and moved into place.
  """

  def __init__(self, directory, keep: int = 2):
    """Uses a directory, which need not exist yet.

    Args:
      directory: Where the files are.
      keep: How many of them stay.

    Raises:
      ValueError: If `keep` is below 1.
    """
    if keep < 1:
      raise ValueError(f'{keep} checkpoints to keep; expected 1 or more')
    self._directory = pathlib.Path(directory)
    self._keep = keep

  def rounds(self) -> list[int]:
    """Returns the rounds that have a checkpoint, in order."""
    names = (_PATTERN.fullmatch(p.name) for p in self._directory.glob('*'))
    return sorted(int(match[1]) for match in names if match)

  def path(self, round_num: int) -> pathlib.Path:
    return self._directory / _NAME.format(round_num)

  def save(self, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint, then deletes those beyond the newest `keep`."""
    leaves = _arrays(checkpoint.state)
    meta = {
        'round': checkpoint.round,
        'positions': checkpoint.positions,
        'fingerprint': checkpoint.fingerprint,
        'leaves': list(leaves),
    }
    payload = io.BytesIO()
    np.savez(
        payload,
        meta=np.array(json.dumps(meta)),
        **{f'leaf_{i}': leaf for i, leaf in enumerate(leaves.values())},
    )
    view = payload.getbuffer()
    checksum = hashlib.sha256(view).hexdigest().encode()
    files.write_atomically(
        self.path(checkpoint.round), [_MAGIC, checksum, b'\n', view]
    )
    self.prune(self._keep)

  def prune(self, keep: int) -> None:
    """Deletes all but the newest `keep` checkpoints."""
    rounds = self.rounds()
    for old in rounds[: len(rounds) - keep]:
      self.path(old).unlink(missing_ok=True)

  def load(self, template: Any, fingerprint: str) -> Checkpoint | None:
    """Returns the newest checkpoint, or None if there is none.

    Args:
      template: A state of the process, such as its first: names, shapes and
        dtypes must be those of the stored state.
      fingerprint: The fingerprint of the run that wants to go on.

    Raises:
      CheckpointError: If the file is damaged, or belongs to another run or
        another process.
    """
    rounds = self.rounds()
    if not rounds:
      return None
    path = self.path(rounds[-1])
    meta, leaves = _read(path)
    if meta['fingerprint'] != fingerprint:
      raise CheckpointError(
          f'{path} belongs to another run; use another run directory'
      )
    expected = _arrays(template)
    for name in sorted(expected.keys() | leaves.keys()):
      wanted, found = _describe(expected.get(name)), _describe(leaves.get(name))
      if wanted != found:
        raise CheckpointError(
            f'{path} does not fit the process: {name} is {found}, expected'
            f' {wanted}; another version wrote it, so delete the run directory'
            ' to start again'
        )
    return Checkpoint(
        round=meta['round'],
        state=leaves_lib.map_leaves(lambda name, _: leaves[name], template),
        positions=meta['positions'],
        fingerprint=meta['fingerprint'],
    )


def _read(path):
  content = path.read_bytes()
  first, _, _ = content.partition(b'\n')
  version = first[len(_KIND) :]
  if first.startswith(_KIND) and version.isdigit() and first + b'\n' != _MAGIC:
    raise CheckpointError(
        f'{path} is in format {version.decode()}, which another version of this'
        ' program wrote; go on with that version, or delete the run directory'
        ' to start again'
    )
  start = len(_MAGIC) + 65
  checksum = content[len(_MAGIC) : start - 1]
  if (
      content[: len(_MAGIC)] != _MAGIC
      or hashlib.sha256(memoryview(content)[start:]).hexdigest().encode()
      != checksum
  ):
    raise CheckpointError(
        f'{path} is damaged; delete it to continue from the one before, or'
        ' from round 1 if there is none'
    )
  with np.load(io.BytesIO(content[start:]), allow_pickle=False) as archive:
    meta = json.loads(str(archive['meta']))
    leaves = {
        name: archive[f'leaf_{i}'] for i, name in enumerate(meta['leaves'])
    }
  return meta, leaves


def _arrays(state) -> dict[str, np.ndarray]:
  leaves = leaves_lib.by_name(state)
  return {name: np.asarray(leaf) for name, leaf in leaves.items()}


def _describe(leaf) -> str:
  if leaf is None:
    return 'missing'
  # Text has no fixed length.
  kind = 'text' if leaf.dtype.kind in 'SU' else leaf.dtype
  return f'{kind}{list(leaf.shape)}'
