"""Numbers, labels and legends of a table as text, for every kind of report."""

import math

from tff_fedopt.tables import compare
from tff_fedopt.tables import results as results_lib

MINUS = '−'
# Of a target that was not reached.
NEVER = '∞'


def number(value: float | None, metric, sign: str = '') -> str:
  """Formats a value with the decimals of the papers; '–' where there is none.

  Args:
    value: In the unit of the metric.
    metric: A `tasks.task.Metric` or a `spec.Quantity`.
    sign: '+' to show the sign of positive values, too.
  """
  if value is None or math.isnan(value):
    return '–'
  if math.isinf(value):
    return NEVER
  return f'{value:{sign}.{metric.decimals}f}'.replace('-', MINUS)


def metric_name(metric) -> str:
  """Returns a metric with its unit, if it has one."""
  return f'{metric.label} ({metric.unit})' if metric.unit else metric.label


def ours(cell: results_lib.CellResult, short: bool = False) -> str:
  """Formats our number: mean, ± deviation over seeds; else what happened."""
  if cell.status != 'done':
    return cell.status
  text = number(cell.mean, cell.metric)
  if cell.std is not None and not short:
    text += f' ± {number(cell.std, cell.metric)}'
  return text


def verdict(cell: results_lib.CellResult) -> str:
  """The verdict; what stands between, where there could be one."""
  if cell.verdict == compare.NOT_COMPARED and cell.paper and cell.obstacles:
    return f'not comparable: {"; ".join(cell.obstacles)}'
  return cell.verdict


def difference(
    result: results_lib.TableResult, cell: results_lib.CellResult
) -> str:
  """Formats ours − published; '–' for synthetic data, where it says nothing."""
  if cell.mean is None or cell.paper is None:
    return '–'
  if cell.provenance.get('data_kind') == 'synthetic':
    return '–'
  return number(cell.mean - cell.paper.value, cell.metric, sign='+')


def bold_keys(result: results_lib.TableResult) -> set[tuple[str, str, str]]:
  """Returns the cells in bold: within `bold_within` of the best of the row."""
  within = result.spec.bold_within
  if within is None:
    return set()
  rows = {}
  for cell in result.cells:
    if cell.mean is not None:
      key = (cell.cell.panel, cell.cell.row, cell.metric.label)
      rows.setdefault(key, []).append(cell)
  bold = set()
  for cells in rows.values():
    higher = cells[0].metric.higher_is_better
    best = (max if higher else min)(cell.mean for cell in cells)
    bold |= {
        cell.cell.key
        for cell in cells
        # Decimal fractions are not exact in binary.
        if math.isfinite(best)
        and abs(cell.mean - best) <= (within + 1e-9) * abs(best)
    }
  return bold


def legend(result: results_lib.TableResult) -> list[str]:
  """Returns what a reader must know: data, profile, rounds, seeds, form."""
  options = result.options
  runs = [run for cell in result.cells for run in cell.planned.runs]
  seeds = sorted({s for cell in result.cells for s in cell.planned.seeds})
  facts = [
      f'Data: {", ".join(result.data_kinds) or "none (nothing ran)"}.',
      f'Profile: {options.profile}.',
  ]
  if runs:
    rounds_text = ', '.join(map(str, sorted({run.rounds for run in runs})))
    if options.rounds:
      rounds_text += ' (set by --rounds, not those of the profile)'
    facts.append(f'Rounds: {rounds_text}.')
    validated = sorted(
        {(run.validation_examples or 0, run.validation_seed) for run in runs}
    )
    facts.append(
        'Validation: '
        + ', '.join(
            f'{n} examples, drawn with seed {seed}' if n else 'all'
            for n, seed in validated
        )
        + '.'
    )
  facts += [f'Seeds: {", ".join(map(str, seeds))}.', f'Form: {result.form}.']
  if runs:
    facts.append(
        f'Reduction: {result.spec.reduction[options.profile]} (rounds, of the'
        ' validation metric).'
    )
  lines = [' '.join(facts)]
  if adaptivity := _adaptivity(result):
    lines.append(f'Adaptive steps: {adaptivity}.')
  lines += [f'{name}: {rule}.' for name, rule in _rules(result).items()]
  if result.spec.bold_within is not None:
    lines.append(
        f'Bold: within {100 * result.spec.bold_within:g} % of the best of the'
        ' row.'
    )
  if any(cell.obstacles for cell in result.cells):
    lines.append(
        'A verdict is given where nothing stands between a number and the'
        ' published one: the profile is paper, the data are canonical, and no'
        ' setting is guessed, tuned here or overridden. Elsewhere the verdict'
        ' says what does; where each setting is from: tables --settings'
        f' {result.spec.id} --profile={options.profile}.'
    )
  return lines + list(result.spec.notes)


# Of adaptive optimizers, what no rate makes up for.
_ADAPTIVITY = {
    'tau': 'τ of servers',
    'initial_accumulator': 'where their accumulators start',
    'beta2': 'their second-moment decay',
    'client_epsilon': 'ε of clients',
    'client_initial_accumulator': 'where theirs start',
    'client_beta2': 'theirs',
}


def _adaptivity(result):
  """What the cells have of it, each value once."""
  found = {}
  for cell in result.cells:
    for setting in (*cell.cell.candidates, *cell.cell.baseline):
      for name in _ADAPTIVITY.keys() & setting.hyperparameters.keys():
        found.setdefault(name, set()).add(setting.hyperparameters[name])
  return '; '.join(
      f'{words} {", ".join(f"{value:.3g}" for value in sorted(found[name]))}'
      for name, words in _ADAPTIVITY.items()
      if name in found
  )


def _rules(result):
  """Quantity to the rule that made it, where that is not the table's."""
  rules = {}
  for quantity in (cell.cell.quantity for cell in result.cells):
    if quantity is None:
      continue
    parts = [
        str(part) for part in (quantity.column, quantity.reduction) if part
    ]
    if quantity.relation:
      parts.append(_RELATIONS[quantity.relation])
    if quantity.at_least is not None:
      parts.append(f'candidates with {quantity.at_least:g} or more')
    if quantity.of_grid is not None:
      parts.append(str(quantity.of_grid))
    if parts:
      rules[metric_name(quantity)] = ', '.join(parts)
  return rules


_RELATIONS = {
    'ratio': 'over that of the baseline',
    'speedup': 'that of the baseline over this',
    'gain': 'relative to that of the baseline',
    'difference': 'less that of the baseline',
}


def _row_label(result, panel, row):
  names = {
      metric_name(c.metric)
      for c in result.cells
      if (c.cell.panel, c.cell.row) == (panel, row)
  }
  if result.spec.kind == 'heatmap' or len(names) > 1:
    return row
  return f'{row}, {names.pop()}'


def grid(result, panel, text):
  """Header and rows of one panel; `text` formats a cell."""
  cells = [c for c in result.cells if c.cell.panel == panel]
  columns = list(dict.fromkeys(c.cell.column for c in cells))
  rows = list(dict.fromkeys(c.cell.row for c in cells))
  found = {(c.cell.row, c.cell.column): c for c in cells}
  spec = result.spec
  corner = (
      f'{spec.row_header} \\ {spec.column_header}'
      if spec.kind in ('heatmap', 'sensitivity')
      else spec.row_header
  )
  yield [corner, *columns]
  for row in rows:
    yield [
        _row_label(result, panel, row),
        *(
            text(found[row, column]) if (row, column) in found else ''
            for column in columns
        ),
    ]
