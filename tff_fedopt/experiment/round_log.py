"""The files that grow with a run: metrics.csv, timing.csv, TensorBoard."""

from collections.abc import Mapping
import os
import pathlib
import re
from typing import Any

import numpy as np
import pandas as pd

from tff_fedopt.experiment import checkpoint
from tff_fedopt.experiment import leaves

# Metrics that are a part of a whole; the files show them in percent.
_FRACTIONS = re.compile(r'accuracy|recall|precision')
_UNITS = {
    'non_finite_clients': 'clients',
    'local_steps': 'steps',
    'num_examples': 'examples',
    'num_batches': 'batches',
    'num_tokens': 'tokens',
    'round_time': 's',
    'evaluation_time': 's',
}


def header(name: str) -> str:
  """Returns the column of a metric: its name, and its unit if it has one."""
  last = name.rsplit('/', 1)[-1]
  unit = '%' if _FRACTIONS.search(last) else _UNITS.get(last)
  return f'{name} [{unit}]' if unit else name


def round_values(metrics: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the scalars among a round's metrics, named by their path.

  What the clients did comes without `client_work`: `train/loss`.

  Args:
    metrics: The metrics of `process.next`, nested.
  """
  return {
      name.removeprefix('client_work/'): value
      for name, value in leaves.by_name(metrics).items()
      if np.ndim(value) == 0 and not isinstance(value, (str, bytes))
  }


class CsvLog:
  """A CSV file that only grows, by one whole row per write."""

  def __init__(self, path, position: int = 0):
    """Opens the file and drops what was written after `position`.

    Args:
      path: The file.
      position: Bytes to keep; 0 begins anew.

    Raises:
      checkpoint.CheckpointError: If the file is shorter.
    """
    path = pathlib.Path(path)
    size = path.stat().st_size if path.exists() else 0
    if size < position:
      raise checkpoint.CheckpointError(
          f'{path} has {size} bytes, but its checkpoint was written at'
          f' {position}; rows are lost, so delete the run directory to start'
          ' again'
      )
    self._file = open(path, 'ab', buffering=0)
    self._file.truncate(position)
    self.position = position
    self._columns = None
    if position:
      with open(path, encoding='utf-8') as f:
        self._columns = f.readline().rstrip('\n').split(',')

  def append(self, values: Mapping[str, Any]) -> None:
    """Writes one row; the first one decides the columns.

    Args:
      values: A number by metric name, or None for an empty cell.

    Raises:
      ValueError: If there is no column for a value.
    """
    row = {header(name): _text(header(name), v) for name, v in values.items()}
    lines = []
    if self._columns is None:
      self._columns = list(row)
      lines.append(self._columns)
    if unknown := [name for name in row if name not in self._columns]:
      raise ValueError(f'{self._file.name} has no column {unknown[0]!r}')
    lines.append([row.get(name, '') for name in self._columns])
    content = ''.join(','.join(line) + '\n' for line in lines).encode('utf-8')
    self._file.write(content)
    self.position += len(content)

  def sync(self) -> None:
    """Makes the rows survive a crash of the machine."""
    os.fsync(self._file.fileno())

  def close(self) -> None:
    self._file.close()


def _text(name, value) -> str:
  if value is None:
    return ''
  value = np.asarray(value)
  if value.dtype.kind in 'biu':
    return str(int(value))
  digits = 9 if value.dtype.itemsize <= 4 else 17
  number = float(value) * 100 if name.endswith('[%]') else float(value)
  return format(number, f'.{digits}g')


def read(path) -> pd.DataFrame:
  """Reads metrics.csv or timing.csv, one row per round.

  Args:
    path: The file.

  Returns:
    Columns named without units; parts of a whole as fractions, not percent.
  """
  frame = pd.read_csv(path, float_precision='round_trip')
  columns = {}
  for name in frame.columns:
    values = frame[name]
    columns[name.split(' [')[0]] = (
        values / 100 if name.endswith('[%]') else values
    )
  return pd.DataFrame(columns)


class TensorBoardLog:
  """Scalars for TensorBoard; a resumed run hides what it does again."""

  def __init__(self, directory, first_round: int):
    """Opens a new event file.

    Args:
      directory: Where TensorBoard looks.
      first_round: Events of earlier files from this round on are ignored.
    """
    # Imported here: loading is slow and reports do not need it.
    from tensorboard.compat.proto import event_pb2
    from tensorboard.compat.proto import summary_pb2
    from tensorboard.summary.writer import event_file_writer

    self._event, self._summary = event_pb2, summary_pb2
    self._writer = event_file_writer.EventFileWriter(str(directory))
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    self._writer.add_event(
        event_pb2.Event(step=first_round, session_log=start)
    )

  def append(
      self, round_num: int, wall_time: float, values: Mapping[str, Any]
  ) -> None:
    """Adds the numbers of one round; None is left out.

    Args:
      round_num: The step.
      wall_time: Seconds since the epoch.
      values: A number by metric name.
    """
    scalars = [
        self._summary.Summary.Value(
            tag=header(name),
            simple_value=float(_text(header(name), value)),
        )
        for name, value in values.items()
        if value is not None
    ]
    self._writer.add_event(
        self._event.Event(
            step=round_num,
            wall_time=wall_time,
            summary=self._summary.Summary(value=scalars),
        )
    )

  def flush(self) -> None:
    self._writer.flush()

  def close(self) -> None:
    self._writer.close()
