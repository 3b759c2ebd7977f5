"""The numbers of a table as rows of text, for `record.write`."""

from tff_fedopt.tables import record
from tff_fedopt.tables import results as results_lib


def records(result: results_lib.TableResult) -> list[dict[str, str]]:
  """Returns the table as rows, every field of `record.FIELDS`.

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
  return {name: _text(values.get(name)) for name in record.FIELDS}


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
