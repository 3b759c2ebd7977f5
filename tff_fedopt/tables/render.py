"""Tables as Markdown, LaTeX and CSV text."""

import math
from typing import Optional

from tff_fedopt.tables import engine

_MINUS = '−'
# Of a target that was not reached.
_NEVER = '∞'


def number(value: Optional[float], metric, sign: str = '') -> str:
  """Formats a value with the decimals of the papers; '–' where there is none.

  Args:
    value: In the unit of the metric.
    metric: A `tasks.task.Metric` or a `spec.Quantity`.
    sign: '+' to show the sign of positive values, too.
  """
  if value is None or math.isnan(value):
    return '–'
  if math.isinf(value):
    return _NEVER
  decimals = getattr(metric, 'decimals', None)
  if decimals is None:
    # Errors, shown in thousandths, are small numbers.
    decimals = 2 if metric.scale >= 1000 else 1
  return f'{value:{sign}.{decimals}f}'.replace('-', _MINUS)


def metric_name(metric) -> str:
  """Returns a metric with its unit, if it has one."""
  return f'{metric.label} ({metric.unit})' if metric.unit else metric.label


def ours(cell: engine.CellResult, short: bool = False) -> str:
  """Formats our number: mean, ± deviation over seeds; else what happened."""
  if cell.status != 'done':
    return cell.status
  text = number(cell.mean, cell.metric)
  if cell.std is not None and not short:
    text += f' ± {number(cell.std, cell.metric)}'
  return text


def difference(result: engine.TableResult, cell: engine.CellResult) -> str:
  """Formats ours − published; '–' for synthetic data, where it says nothing."""
  if cell.mean is None or cell.paper is None:
    return '–'
  if cell.provenance.get('data_kind') == 'synthetic':
    return '–'
  return number(cell.mean - cell.paper.value, cell.metric, sign='+')


def bold_keys(result: engine.TableResult) -> set[tuple[str, str, str]]:
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


def legend(result: engine.TableResult) -> list[str]:
  """Returns what a reader must know: data, profile, rounds, seeds, form."""
  options = result.options
  kinds = set(result.data_kinds)
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
    validated = sorted({run.validation_examples or 0 for run in runs})
    facts.append(
        'Validation: '
        + ', '.join(f'the first {n} examples' if n else 'all' for n in validated)
        + '.'
    )
  facts += [f'Seeds: {", ".join(map(str, seeds))}.', f'Form: {result.form}.']
  if runs:
    facts.append(
        f'Reduction: {result.spec.reduction[options.profile]} (rounds, of the'
        ' validation metric).'
    )
  lines = [' '.join(facts)]
  lines += [f'{name}: {rule}.' for name, rule in _rules(result).items()]
  if result.spec.bold_within is not None:
    lines.append(
        f'Bold: within {100 * result.spec.bold_within:g} % of the best of the'
        ' row.'
    )
  reproduces = {'computed'}
  if options.profile == 'paper':
    reproduces.add('canonical')
  if not kinds or kinds - reproduces:
    lines.append(
        'These numbers are not a reproduction of the published ones: only the'
        ' paper profile on the canonical data is, and only there a verdict is'
        ' given.'
    )
  return lines + list(result.spec.notes)


def _rules(result):
  """Quantity to the rule that made it, where that is not the table's."""
  rules = {}
  for quantity in (cell.cell.quantity for cell in result.cells):
    if quantity is None:
      continue
    parts = [part for part in (quantity.column, quantity.reduction) if part]
    if quantity.relation:
      parts.append(_RELATIONS[quantity.relation])
    if quantity.at_least is not None:
      parts.append(f'candidates with {quantity.at_least:g} or more')
    if parts:
      rules[metric_name(quantity)] = ', '.join(parts)
  return rules


_RELATIONS = {
    'ratio': 'over that of the baseline',
    'speedup': 'that of the baseline over this',
    'gain': 'relative to that of the baseline',
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


def _grid(result, panel, text):
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


def _lines(rows):
  """Markdown of a table whose first row is its header, columns aligned."""
  rows = [[str(cell) for cell in row] for row in rows]
  widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
  header, *body = [
      '| ' + ' | '.join(c.ljust(w) for c, w in zip(row, widths)) + ' |'
      for row in rows
  ]
  rule = '|' + '|'.join('-' * (w + 2) for w in widths) + '|'
  return [header, rule, *body]


def markdown(result: engine.TableResult, reference_lines=None) -> str:
  """Renders a table: our numbers as a grid, then each beside the published.

  Args:
    result: The table.
    reference_lines: What `compare.against_reference` found, None where there
      is no stored reference.

  Returns:
    Markdown text.
  """
  spec = result.spec
  bold = bold_keys(result)

  def text(cell):
    value = ours(cell)
    return f'**{value}**' if cell.cell.key in bold else value

  lines = [f'## {spec.id}: {spec.title}', '', f'{spec.citation}.', '']
  for panel in result.panels:
    if panel:
      lines += [f'### {panel}', '']
    lines += [*_lines(list(_grid(result, panel, text))), '']
  lines += [f'- {line}' for line in legend(result)]
  lines.append(f'- {_reference_line(reference_lines)}')
  if any(cell.paper for cell in result.cells):
    lines += ['', *_lines(list(_beside_published(result)))]
  return '\n'.join(lines) + '\n'


def _reference_line(reference_lines):
  if reference_lines is None:
    return 'No stored reference of this profile, form and length.'
  if not reference_lines:
    return 'All numbers agree with the stored reference.'
  return 'Differs from the stored reference: ' + '; '.join(reference_lines)


def _beside_published(result):
  yield [
      result.spec.row_header,
      result.spec.column_header,
      'Metric',
      'Published',
      'Ours',
      'Difference',
      'Seeds',
      'Verdict',
  ]
  for cell in result.cells:
    yield [
        cell.cell.row,
        cell.cell.column,
        metric_name(cell.metric),
        number(cell.paper.value, cell.metric) if cell.paper else '–',
        ours(cell),
        difference(result, cell),
        len(cell.planned.seeds),
        cell.verdict,
    ]


def latex(result: engine.TableResult) -> str:
  """Renders the grid of each panel as a LaTeX table (package booktabs)."""
  bold = bold_keys(result)

  def text(cell):
    value = _escape(ours(cell))
    return f'\\textbf{{{value}}}' if cell.cell.key in bold else value

  lines = ['% Needs \\usepackage{booktabs}.']
  for panel in result.panels:
    header, *rows = _grid(result, panel, text)
    title = f'{result.spec.title}{": " if panel else ""}{panel}'
    lines += [
        '\\begin{table}',
        '\\centering',
        f'\\caption{{{_escape(title)}. {_escape(legend(result)[0])}}}',
        f'\\begin{{tabular}}{{l{"r" * (len(header) - 1)}}}',
        '\\toprule',
        ' & '.join(_escape(cell) for cell in header) + ' \\\\',
        '\\midrule',
        *(' & '.join([_escape(r[0]), *r[1:]]) + ' \\\\' for r in rows),
        '\\bottomrule',
        '\\end{tabular}',
        '\\end{table}',
        '',
    ]
  return '\n'.join(lines)


_LATEX = {
    '\\': '\\textbackslash{}',
    '%': '\\%',
    '_': '\\_',
    '&': '\\&',
    '#': '\\#',
    '^': '\\^{}',
    'τ': '$\\tau$',
    '±': '$\\pm$',
    _MINUS: '$-$',
    '–': '--',
    '×': '$\\times$',
    _NEVER: '$\\infty$',
    'η': '$\\eta$',
    '≥': '$\\geq$',
}


def _escape(text):
  return ''.join(_LATEX.get(character, character) for character in text)
