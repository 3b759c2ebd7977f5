"""The numbers of a table as a frame of text, one row a number, and its CSV."""

from collections.abc import Mapping, Sequence
import pathlib

import pandas as pd

from tff_fedopt.experiment import files
from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables import stamp as stamp_lib

FIELDS = (
    'table',
    'panel',
    'row',
    'column',
    'metric',
    'split',
    'unit',
    'reduction',
    'paper_value',
    'paper_std',
    'paper_source',
    'ours_mean',
    'ours_std',
    'status',
    'seeds',
    'rounds',
    'profile',
    'data',
    'form',
    'setting',
    'setting_source',
    'spec_sha',
    'task_sha',
    'commit',
    'tff',
    'tf',
    'python',
    'engine',
    'cores',
    'date',
    'wall_seconds',
    'tolerance',
    'verdict',
)
KEY = ('panel', 'row', 'column')


def write(path: pathlib.Path, frame: pd.DataFrame) -> None:
  """Writes rows as CSV, whole or not at all.

  Args:
    path: The CSV file; its folder is made where missing.
    frame: Text, the columns `FIELDS`.
  """
  text = frame.to_csv(index=False, lineterminator='\n')
  files.write_atomically(path, [text.encode('utf-8')])


def read(path: pathlib.Path) -> pd.DataFrame:
  """Reads rows, all as text.

  Raises:
    ValueError: If the columns are not `FIELDS`.
  """
  frame = pd.read_csv(path, dtype=str, keep_default_na=False)
  if tuple(frame.columns) != FIELDS:
    raise ValueError(f'{path}: columns must be {",".join(FIELDS)}')
  return frame


def keys(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
  """Returns (panel, row, column) of every row."""
  return list(frame[list(KEY)].itertuples(index=False, name=None))


def merge(
    old: pd.DataFrame,
    new: pd.DataFrame,
    order: Sequence[tuple[str, str, str]],
) -> pd.DataFrame:
  """Replaces the old rows of cells that have a new one.

  Args:
    old: Stored rows.
    new: Rows of some of the cells.
    order: (panel, row, column) of every cell of the table today; rows of cells
      that the table no longer has are dropped.

  Returns:
    The rows, in that order.
  """
  both = pd.concat([old, new]).drop_duplicates(list(KEY), keep='last')
  both.index = keys(both)
  found = [key for key in order if key in set(both.index)]
  return both.loc[found].reset_index(drop=True)


def rows(
    result: results_lib.TableResult,
    stamps: Mapping[tuple[str, str, str], stamp_lib.Stamp],
) -> pd.DataFrame:
  """Returns a table as rows.

  Args:
    result: The table.
    stamps: What its cells belong to, by their key.

  Returns:
    Text, the columns `FIELDS`; `tolerance` is empty, as it belongs to stored
    references only.
  """
  return pd.DataFrame(
      [_row(result, cell, stamps[cell.cell.key]) for cell in result.cells],
      columns=list(FIELDS),
  )


def _row(result, cell_result, stamp):
  cell, options, paper = cell_result.cell, result.options, cell_result.paper
  planned, quantity = cell_result.planned, cell.quantity
  split, setting, source = 'validation', '', ''
  if quantity and (cell.measure or quantity.column):
    split = quantity.column.rpartition('/')[0]
  form = result.form
  if cell.measure:
    setting = _setting_text(cell.measure.arguments)
    source = cell.measure.source
  elif cell_result.setting:
    setting = _setting_text(cell_result.setting.hyperparameters)
    source = cell_result.setting.source
    # A figure may show both forms.
    form = cell_result.setting.hyperparameters.get('form', form)
  provenance = cell_result.provenance
  values = {
      'table': result.spec.id,
      'panel': cell.panel,
      'row': cell.row,
      'column': cell.column,
      'metric': cell_result.metric.name,
      'split': split,
      'unit': cell_result.metric.unit,
      'reduction': _reduction(result, cell),
      'paper_value': paper and paper.value,
      'paper_std': paper and paper.std,
      'paper_source': paper and paper.source,
      'ours_mean': cell_result.mean,
      'ours_std': cell_result.std,
      'status': cell_result.status,
      'seeds': ' '.join(map(str, planned.seeds)),
      'rounds': planned.runs[0].rounds if planned.runs else None,
      'profile': options.profile,
      'form': form,
      'setting': setting,
      'setting_source': source,
      'spec_sha': stamp.spec_sha,
      'task_sha': stamp.task_sha,
      'verdict': cell_result.verdict,
      **{name: provenance.get(name) for name in _PROVENANCE_FIELDS},
      'data': provenance.get('data_kind'),
  }
  return {name: _text(values.get(name)) for name in FIELDS}


_PROVENANCE_FIELDS = (
    'commit',
    'tff',
    'tf',
    'python',
    'engine',
    'cores',
    'date',
    'wall_seconds',
)


def _reduction(result, cell):
  if cell.measure:
    return ''
  given = cell.quantity and cell.quantity.reduction
  return str(given or result.spec.reduction[result.options.profile])


def _setting_text(values):
  return ' '.join(
      f'{name}={_text(value)}' for name, value in sorted(values.items())
  )


def _text(value):
  if value is None:
    return ''
  return f'{value:.6g}' if isinstance(value, float) else str(value)
