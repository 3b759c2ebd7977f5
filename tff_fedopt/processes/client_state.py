"""What clients remember between rounds: files that they read and write.

As in real cross-device learning the state stays with the client. The files are
read and written inside the client computation, by client id, so nothing crosses
the runtime, and a client that never took part costs nothing.

```
STATE_DIR/manifest.json                       what the directory is for
STATE_DIR/initial_model.RUN.*                 w^0
STATE_DIR/HHHH/BASE64(client id).RUN.ROUND.*  what a client wrote in a round
STATE_DIR/stock.RUN.ROUND                     what must be there at a checkpoint
```

STATE_DIR is held in the server's state, so that one traced process serves runs
in several directories. RUN is a number drawn when that state is initialised,
and part of it, so runs that share a directory do not meet. HHHH is a hash of
the id, so that no folder grows large. A file pair in TensorFlow's checkpoint
format is written under another name and moved into place, its `.index` last.

A client of round t reads the newest version written before t. What an
interrupted round left is therefore ignored, and overwritten when the round is
repeated. Before going on from an earlier server state with other cohorts, what
was written since has to be taken back (`take_back`; `tff_fedopt.run` does). To
go on from both states, copy the directory.
"""

import collections
from collections.abc import Collection, Mapping, Sequence
import json
import os
import pathlib
import re
from typing import Any

import numpy as np
import tensorflow as tf

from tff_fedopt.optimizers import base

INITIAL_VALUES = ('zeros', 'initial_model')

_FANOUT = 4096
_DIGITS = 10  # Of a round's number.
_MANIFEST = 'manifest.json'
_INDEX = '.index'
_DATA = '.data-00000-of-00001'
_VERSION = re.compile(
    r'([A-Za-z0-9_-]*)\.(\d+)\.(\d{%d})%s' % (_DIGITS, re.escape(_INDEX))
)
_STOCK = re.compile(r'stock\.(\d+)\.(\d+)')
# Operations carry this name, which TensorFlow puts into their errors.
_SCOPE = 'client_state'


class ClientStateError(RuntimeError):
  """Clients' state cannot be used; says which file and what to do."""


class Store:
  """Reads and writes the memory of clients, in graphs."""

  def __init__(self, memory: Mapping[str, str]):
    """Takes what is remembered.

    Args:
      memory: Names of the model-sized tuples that clients keep, each with its
        value before a client's first visit, one of `INITIAL_VALUES`.
    """
    self._memory = dict(memory)

  def claim(
      self, state_dir: str | os.PathLike, specs: Sequence[tf.TensorSpec]
  ) -> str:
    """Makes a directory, or refuses one that belongs to something else.

    Args:
      state_dir: The directory; on a file system that all workers share.
      specs: Shapes and dtypes of the model's trainable weights.

    Returns:
      Its absolute path.

    Raises:
      ClientStateError: If it cannot be made, or another model or algorithm
        keeps its state there.
    """
    weights = [f'{s.dtype.name}{s.shape.as_list()}' for s in specs]
    wanted = dict(format=1, memory=self._memory, weights=weights)
    state_dir = os.path.abspath(state_dir)
    path = os.path.join(state_dir, _MANIFEST)
    if re.search(r'[*?\[\]\\]', state_dir):
      raise ClientStateError(
          f'{state_dir} cannot be used for client state: TensorFlow takes'
          r' * ? [ ] \ for patterns; use another state_dir'
      )
    try:
      os.makedirs(state_dir, exist_ok=True)
      if not os.path.exists(path):
        if os.listdir(state_dir):
          raise ClientStateError(
              f'{state_dir} is not empty and holds no client state; use'
              ' another state_dir'
          )
        _write_text(path, json.dumps(wanted))
      found = json.loads(pathlib.Path(path).read_text('utf-8'))
    except OSError as e:
      raise ClientStateError(
          f'{e.filename or state_dir} cannot be used for client state:'
          f' {e.strerror}; free it or use another state_dir'
      ) from e
    except ValueError as e:
      raise ClientStateError(
          f'{path} is damaged; delete {state_dir} to start again'
      ) from e
    for what in ('format', 'memory', 'weights'):
      if not isinstance(found, dict) or found.get(what) != wanted[what]:
        there = found.get(what) if isinstance(found, dict) else found
        raise ClientStateError(
            f'{state_dir} belongs to another model or algorithm ({what}'
            f' {_short(there)} there, {_short(wanted[what])} here); use another'
            ' state_dir'
        )
    return state_dir

  def read(
      self,
      client_id: tf.Tensor,
      state_dir: tf.Tensor,
      round_num: tf.Tensor,
      run: tf.Tensor,
      x: base.Tensors,
  ) -> base.State:
    """A client's memory at the start of a round.

    The first round, where x is w^0, also stores w^0 if anything starts there.

    Args:
      client_id: String scalar tensor.
      state_dir: String scalar tensor, what `claim` returned.
      round_num: Int64 scalar tensor, t: the number of rounds before this one.
      run: Int64 scalar tensor, the run's number.
      x: The server model's trainable weights, a tuple of tensors.

    Returns:
      An ordered dictionary of tuples of tensors like `x`.
    """
    client = _client(client_id, state_dir, run)
    pattern = tf.strings.join([client, '.*' + _INDEX])
    end = -(_DIGITS + len(_INDEX))
    versions = tf.strings.to_number(
        tf.strings.substr(tf.io.matching_files(pattern), end, _DIGITS),
        tf.int64,
    )
    # −1, below every round, stands for none.
    none = tf.constant([-1], tf.int64)
    versions = tf.boolean_mask(versions, versions < round_num)
    newest = tf.reduce_max(tf.concat([none, versions], 0))
    return tf.cond(
        newest >= 0,
        lambda: _restore(_version(client, newest), self._memory, x),
        lambda: self._initial(state_dir, round_num, run, x),
    )

  def write(
      self,
      client_id: tf.Tensor,
      state_dir: tf.Tensor,
      round_num: tf.Tensor,
      run: tf.Tensor,
      memory: base.State,
      where: tf.Tensor,
  ) -> tf.Tensor:
    """Stores a client's memory at the end of a round.

    Args:
      client_id: String scalar tensor.
      state_dir: String scalar tensor, what `claim` returned.
      round_num: Int64 scalar tensor, t.
      run: Int64 scalar tensor, the run's number.
      memory: As `read` returned it.
      where: Boolean scalar tensor; nothing is written if false.

    Returns:
      `where`. What the graph is to give must depend on it, or TensorFlow leaves
      the writing out.
    """
    prefix = _version(_client(client_id, state_dir, run), round_num)
    return tf.cond(
        where,
        lambda: _after(_save(prefix, memory), where),
        lambda: tf.identity(where),
    )

  def _initial(self, state_dir, round_num, run, x):
    """The memory before the first visit."""
    values = dict(zeros=tuple(tf.zeros_like(t) for t in x))
    if 'initial_model' in self._memory.values():
      prefix = tf.strings.join(
          [state_dir, '/initial_model.', tf.strings.as_string(run)]
      )
      values['initial_model'] = tf.cond(
          tf.equal(round_num, 0),
          lambda: _after(_save(prefix, {'x': x}), x),
          lambda: _restore(prefix, ['x'], x)['x'],
      )
    return collections.OrderedDict(
        (name, values[start]) for name, start in self._memory.items()
    )


def collect(
    state_dir: str | os.PathLike,
    round_num: int,
    run: int,
    client_ids: Collection[str] | None = None,
) -> int:
  """Deletes what no round from `round_num` on can read.

  Of each client stays the newest version that was written in one of the first
  `round_num` rounds, and everything newer.

  Args:
    state_dir: The directory.
    round_num: Rounds completed at the oldest server state from which the run
      may go on.
    run: The run's number, from the server's state; see `run_number`.
    client_ids: Only these clients; by default all.

  Returns:
    How many versions were deleted.
  """
  deleted = 0
  state_dir = pathlib.Path(state_dir)
  for folder, names in _versions(
      state_dir, run, range(round_num), client_ids
  ):
    for name in names[:-1]:
      _delete(folder, name)
      deleted += 1
  for path in state_dir.glob(f'stock.{run}.*'):
    match = _STOCK.fullmatch(path.name)
    if match and int(match[2]) < round_num:
      path.unlink(missing_ok=True)
  return deleted


def collect_client_state(state: Any) -> int:
  """Deletes what nobody reads who goes on from a server state, or a later one.

  Args:
    state: The server state of a process.

  Returns:
    How many versions were deleted; 0 where clients keep nothing.
  """
  held, state_dir, run = _held(state), directory(state), run_number(state)
  if held is None or state_dir is None or run is None:
    return 0
  return collect(state_dir, int(held['round']), run)


def take_back(state: Any) -> int:
  """Deletes what clients wrote in the rounds after a server state.

  Args:
    state: The server state of a process, from which its run goes on.

  Returns:
    How many versions were deleted; 0 where clients keep nothing.
  """
  held, state_dir, run = _held(state), directory(state), run_number(state)
  if held is None or state_dir is None or run is None:
    return 0
  deleted = 0
  later = range(int(held['round']), 10**_DIGITS)
  for folder, names in _versions(pathlib.Path(state_dir), run, later):
    for name in names:
      _delete(folder, name)
      deleted += 1
  return deleted


def take_stock(
    state_dir: str | os.PathLike, round_num: int, run: int
) -> None:
  """Writes down which files a run needs to go on from a checkpoint.

  A file that is lost afterwards would look like a client's first visit.

  Args:
    state_dir: The directory.
    round_num: Rounds completed at the checkpoint.
    run: The run's number.

  Raises:
    ClientStateError: If it cannot be written.
  """
  state_dir = pathlib.Path(state_dir)
  needed = [
      f'{folder.name}/{names[-1]}\n'
      for folder, names in _versions(state_dir, run, range(round_num))
  ]
  path = state_dir / f'stock.{run}.{round_num}'
  try:
    _write_text(path, ''.join(sorted(needed)))
  except OSError as e:
    raise ClientStateError(
        f'{path} cannot be written: {e.strerror}; make it possible and resume,'
        ' nothing is lost'
    ) from e


def require(
    state_dir: str | os.PathLike,
    run: int,
    round_num: int | None = None,
) -> None:
  """Refuses to go on with a run whose clients' memory is gone.

  Args:
    state_dir: The directory.
    run: The run's number, from a server state after one round or more.
    round_num: Rounds completed at a checkpoint at which stock was taken; None
      if there is none.

  Raises:
    ClientStateError: If nothing of the run is there, or not all of the stock.
  """
  folder = pathlib.Path(state_dir)
  patterns = (f'*/*.{run}.*{_INDEX}', f'initial_model.{run}{_INDEX}')
  if not any(next(folder.glob(pattern), None) for pattern in patterns):
    raise ClientStateError(
        f'{state_dir} holds nothing that clients remember from the rounds'
        ' before; put it back, or delete the run directory to start again'
    )
  if round_num is None:
    return
  stock = folder / f'stock.{run}.{round_num}'
  try:
    names = stock.read_text('utf-8').splitlines()
  except OSError:
    names = [stock.name]
  for name in names:
    missing = [p for p in _pair(folder / name) if not p.exists()]
    if missing:
      raise ClientStateError(
          f'{missing[0]} is missing, and without it clients would forget what'
          ' they have learned; put it back, or delete the run directory to'
          ' start again'
      )


def run_number(state: Any) -> int | None:
  """The run's number in a server state; None where clients keep nothing."""
  held = _held(state)
  return int(held['run']) if held else None


def directory(state: Any) -> str | None:
  """The directory in a server state; None where clients keep nothing."""
  held = _held(state)
  if not held:
    return None
  # TFF gives text as bytes, a checkpoint gives an array of them.
  return os.fsdecode(np.asarray(held['state_dir']).item())


def _write_text(path, text):
  """Writes a file that is whole or not there; several processes may at once."""
  temporary = f'{os.fspath(path)}.{os.getpid()}.tmp'
  with open(temporary, 'w', encoding='utf-8') as f:
    f.write(text)
    f.flush()
    os.fsync(f.fileno())
  os.replace(temporary, path)


def _held(state):
  """What a server state says of clients' memory, if anything."""
  held = getattr(state, 'client_work', None)
  return held if isinstance(held, Mapping) and 'run' in held else None


def translate(
    error: BaseException, state_dir: str | os.PathLike
) -> ClientStateError | None:
  """A clear error for what a worker says when client state fails.

  Args:
    error: What `process.next` raised.
    state_dir: The directory of the run's client state.

  Returns:
    A one-line error, or None if the error is not about client state.
  """
  text = str(error)
  state_dir = os.path.abspath(state_dir)
  if state_dir not in text and f'{_SCOPE}/' not in text:
    return None
  file = re.search(re.escape(state_dir) + r'''[^\s:;,'"\]}]*''', text)
  where = file[0] if file else _unreadable(state_dir)
  where = re.sub(r'\.tempstate\d+$', '', where)
  damaged = (
      'is damaged or from another program; restore it from a copy, or start the'
      ' run again in a new directory'
  )
  for pattern, what in (
      ('No space left|Disk quota', 'cannot be written: the disk is full; free'
       ' space and resume, nothing is lost'),
      ('Permission denied|Read-only', 'cannot be opened: permission denied;'
       ' give the workers access and resume'),
      ('File name too long', 'cannot be written: the client id is too long for'
       ' a file name; use shorter ids'),
      ('not found in checkpoint|incompatible|not compatible|Checksum|DataLoss'
       '|data loss|sstable|truncated|corrupt|dtype|Read less bytes', damaged),
      ('No such file|Failed to find any matching files|Unable to open', 'is'
       ' missing; resume with the state_dir that the run began with'),
  ):
    if re.search(pattern, text, re.IGNORECASE):
      return ClientStateError(f'{where} {what}')
  reason = text.strip().splitlines()[0][:200]
  return ClientStateError(f'{where} cannot be used: {reason}')


def _unreadable(state_dir):
  """The first file that cannot be read, for errors that do not name theirs."""
  for index in sorted(pathlib.Path(state_dir).glob(f'**/*{_INDEX}')):
    prefix = str(index)[: -len(_INDEX)]
    try:
      reader = tf.train.load_checkpoint(prefix)
      for name in reader.get_variable_to_shape_map():
        reader.get_tensor(name)
    # TensorFlow has a type for each way to be damaged.
    except Exception:  # pylint: disable=broad-except
      return prefix
  return f'a file in {state_dir}'


def _client(client_id, state_dir, run):
  """The part of a client's files' names that no round changes."""
  digits = tf.strings.as_string(
      tf.strings.to_hash_bucket_fast(client_id, _FANOUT), width=4, fill='0'
  )
  return tf.strings.join([
      state_dir,
      '/',
      digits,
      '/',
      tf.io.encode_base64(client_id),
      '.',
      tf.strings.as_string(run),
  ])


def _version(client, round_num):
  number = tf.strings.as_string(round_num, width=_DIGITS, fill='0')
  return tf.strings.join([client, '.', number])


def _save(prefix, memory):
  keys, values = [], []
  for name, tensors in memory.items():
    keys += _keys(name, tensors)
    values += list(tensors)
  with tf.name_scope(_SCOPE):
    return tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=keys,
        shape_and_slices=[''] * len(keys),
        tensors=values,
    )


def _restore(prefix, names, x):
  keys = [key for name in names for key in _keys(name, x)]
  with tf.name_scope(_SCOPE):
    tensors = tf.raw_ops.RestoreV2(
        prefix=prefix,
        tensor_names=keys,
        shape_and_slices=[''] * len(keys),
        dtypes=[t.dtype for _ in names for t in x],
    )
    flat = iter(tensors)
    return collections.OrderedDict(
        (name, tuple(tf.ensure_shape(next(flat), t.shape) for t in x))
        for name in names
    )


def _keys(name, tensors):
  return [f'{name}/{j}' for j in range(len(tensors))]


def _after(operation, value):
  with tf.control_dependencies([operation]):
    return tf.nest.map_structure(tf.identity, value)


def _pair(index):
  """The paths of a version's two files, given that of its index."""
  return index, index.with_name(index.name[: -len(_INDEX)] + _DATA)


def _delete(folder, name):
  """Deletes a version; its index first, without which it does not exist."""
  for path in _pair(folder / name):
    path.unlink(missing_ok=True)


def _versions(state_dir, run, rounds, client_ids=None):
  """Folder and index names, in order, of what each client wrote in `rounds`."""
  for folder, stem in _places(state_dir, client_ids):
    versions = collections.defaultdict(list)
    for entry in os.scandir(folder) if folder.is_dir() else ():
      match = _VERSION.fullmatch(entry.name)
      if match and int(match[2]) == run and stem in (None, match[1]):
        if int(match[3]) in rounds:
          versions[match[1]].append(entry.name)
    for names in versions.values():
      yield folder, sorted(names)


def _places(state_dir, client_ids):
  """Pairs of a folder, and the one client in it that is meant or None."""
  if client_ids is None:
    if state_dir.is_dir():
      for folder in state_dir.iterdir():
        if folder.is_dir():
          yield folder, None
    return
  with tf.device('cpu'):
    for client_id in client_ids:
      bucket = tf.strings.to_hash_bucket_fast(client_id, _FANOUT)
      name = tf.io.encode_base64(client_id).numpy().decode()
      yield state_dir / f'{int(bucket):04d}', name


def _short(value):
  text = str(value)
  return text if len(text) <= 60 else text[:57] + '...'
