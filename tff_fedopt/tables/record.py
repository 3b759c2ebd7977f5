"""The stored form of a table: one CSV row a number, with its provenance."""

from collections.abc import Mapping, Sequence
import csv
import io
import pathlib

from tff_fedopt.experiment import files
from tff_fedopt.tables import results as results_lib

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
    'cores',
    'date',
    'wall_seconds',
    'tolerance',
    'verdict',
)
# What a run's provenance says under the same names.
_PROVENANCE_FIELDS = (
    'task_sha',
    'commit',
    'tff',
    'tf',
    'python',
    'cores',
    'date',
    'wall_seconds',
)


def of(result: results_lib.TableResult) -> list[dict[str, str]]:
  """Returns the records of a table with its numbers, every field of `FIELDS`.

  `tolerance` is left empty: it belongs to stored references only.
  """
  return [_record(result, cell) for cell in result.cells]


def _record(result, cell_result):
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
      'spec_sha': cell_result.planned.spec_sha,
      'verdict': cell_result.verdict,
      **{name: provenance.get(name) for name in _PROVENANCE_FIELDS},
      'data': provenance.get('data_kind'),
  }
  return {name: _text(values.get(name)) for name in FIELDS}


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


def write(path: pathlib.Path, records: Sequence[Mapping[str, str]]) -> None:
  """Writes records under a temporary name, then moves them into place.

  Args:
    path: The CSV file; its folder is made where missing.
    records: Field to text, every field of `FIELDS`.
  """
  text = io.StringIO(newline='')
  writer = csv.DictWriter(text, FIELDS, lineterminator='\n')
  writer.writeheader()
  writer.writerows(records)
  files.write_text(path, text.getvalue())


def read(path: pathlib.Path) -> list[dict[str, str]]:
  """Reads records.

  Raises:
    ValueError: If the columns are not `FIELDS`.
  """
  with open(path, newline='', encoding='utf-8') as f:
    reader = csv.DictReader(f)
    if tuple(reader.fieldnames or ()) != FIELDS:
      raise ValueError(f'{path}: columns must be {",".join(FIELDS)}')
    return list(reader)


def merge(
    old: Sequence[Mapping[str, str]],
    new: Sequence[Mapping[str, str]],
    order: Sequence[tuple[str, str, str]],
) -> list[Mapping[str, str]]:
  """Replaces the old records of cells that have a new one.

  Args:
    old: Stored records.
    new: Records of some of the cells.
    order: (panel, row, column) of every cell of the table today; records of
      cells that the table no longer has are dropped.

  Returns:
    The records, in that order.
  """
  found = {key(record): record for record in (*old, *new)}
  return [found[cell] for cell in order if cell in found]


def key(record: Mapping[str, str]) -> tuple[str, str, str]:
  return (record['panel'], record['row'], record['column'])


def number(text: str) -> float | None:
  return float(text) if text else None
