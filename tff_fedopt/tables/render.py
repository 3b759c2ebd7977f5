"""Tables as Markdown, LaTeX and CSV text."""

from typing import Optional

from tff_fedopt.tables import engine

_MINUS = '−'


def number(value: Optional[float], metric, sign: str = '') -> str:
  """Formats a value with the decimals of the papers; '–' where there is none.

  Args:
    value: In the unit of the metric.
    metric: A `tasks.task.Metric`.
    sign: '+' to show the sign of positive values, too.
  """
  if value is None:
    return '–'
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
      rows.setdefault((cell.cell.panel, cell.cell.row), []).append(cell)
  bold = set()
  for cells in rows.values():
    higher = cells[0].metric.higher_is_better
    best = (max if higher else min)(cell.mean for cell in cells)
    bold |= {
        cell.cell.key
        for cell in cells
        # Decimal fractions are not exact in binary.
        if abs(cell.mean - best) <= (within + 1e-9) * abs(best)
    }
  return bold


def legend(result: engine.TableResult) -> list[str]:
  """Returns what a reader must know: data, profile, rounds, seeds, form."""
  options = result.options
  kinds = ', '.join(result.data_kinds) or 'none (nothing ran)'
  runs = [
      run
      for cell in result.cells
      for candidate in cell.planned.candidates
      for run in candidate.runs
  ]
  rounds = sorted({run.rounds for run in runs})
  seeds = sorted({run.seed for run in runs})
  rounds_text = ', '.join(str(r) for r in rounds)
  if options.rounds:
    rounds_text += ' (set by --rounds, not those of the profile)'
  lines = [
      f'Data: {kinds}. Profile: {options.profile}. Rounds: {rounds_text}.'
      f' Seeds: {", ".join(str(s) for s in seeds)}. Form: {result.form}.'
      f' Reduction: {result.spec.reduction[options.profile]}'
      ' (rounds, of the validation metric).',
  ]
  if result.spec.bold_within is not None:
    lines.append(
        f'Bold: within {100 * result.spec.bold_within:g} % of the best of the'
        ' row.'
    )
  if options.profile != 'paper' or set(result.data_kinds) - {'canonical'}:
    lines.append(
        'These numbers are not a reproduction of the published ones: only the'
        ' paper profile on the canonical data is, and only there a verdict is'
        ' given.'
    )
  return lines + list(result.spec.notes)


def _row_label(result, panel, row):
  metric = next(
      c.metric
      for c in result.cells
      if (c.cell.panel, c.cell.row) == (panel, row)
  )
  if result.spec.kind == 'heatmap':
    return row
  return f'{row}, {metric_name(metric)}'


def _grid(result, panel, text):
  """Header and rows of one panel; `text` formats a cell."""
  cells = [c for c in result.cells if c.cell.panel == panel]
  columns = list(dict.fromkeys(c.cell.column for c in cells))
  rows = list(dict.fromkeys(c.cell.row for c in cells))
  found = {(c.cell.row, c.cell.column): c for c in cells}
  spec = result.spec
  corner = (
      spec.row_header
      if spec.kind == 'table'
      else f'{spec.row_header} \\ {spec.column_header}'
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
        len(cell.planned.candidates[0].runs),
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
}


def _escape(text):
  return ''.join(_LATEX.get(character, character) for character in text)
