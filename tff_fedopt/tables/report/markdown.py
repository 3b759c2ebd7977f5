"""A table as Markdown."""

from collections.abc import Sequence

from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables.report import text as text_lib


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


def render(
    result: results_lib.TableResult,
    reference_lines: Sequence[str] | None = None,
    claims: Sequence[str] = (),
) -> str:
  """Renders a table: our numbers as a grid, then each beside the published.

  Args:
    result: The table.
    reference_lines: What `compare.against_reference` found, None where there
      is no stored reference.
    claims: What was found of the claims that it decides, a line each.

  Returns:
    Markdown text.
  """
  spec = result.spec
  bold = text_lib.bold_keys(result)

  def text(cell):
    value = text_lib.ours(cell)
    return f'**{value}**' if cell.cell.key in bold else value

  lines = [f'## {spec.id}: {spec.title}', '', f'{spec.citation}.', '']
  for panel in result.panels:
    if panel:
      lines += [f'### {panel}', '']
    lines += [*_lines(list(text_lib.grid(result, panel, text))), '']
  lines += [f'- {line}' for line in text_lib.legend(result)]
  lines.append(f'- {_reference_line(reference_lines)}')
  if any(cell.paper for cell in result.cells):
    lines += ['', *_lines(list(_beside_published(result)))]
  if claims:
    lines += ['', '### Claims', '', *(f'- {claim}' for claim in claims)]
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
        text_lib.metric_name(cell.metric),
        text_lib.number(cell.paper.value, cell.metric) if cell.paper else '–',
        text_lib.ours(cell),
        text_lib.difference(result, cell),
        len(cell.planned.seeds),
        text_lib.verdict(cell),
    ]
