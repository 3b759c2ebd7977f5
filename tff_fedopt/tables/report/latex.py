"""A table as LaTeX."""

from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables.report import text as text_lib


def render(result: results_lib.TableResult) -> str:
  """Renders the grid of each panel as a LaTeX table (package booktabs)."""
  bold = text_lib.bold_keys(result)

  def text(cell):
    value = _escape(text_lib.ours(cell))
    return f'\\textbf{{{value}}}' if cell.cell.key in bold else value

  lines = ['% Needs \\usepackage{booktabs}.']
  for panel in result.panels:
    header, *rows = text_lib.grid(result, panel, text)
    title = f'{result.spec.title}{": " if panel else ""}{panel}'
    lines += [
        '\\begin{table}',
        '\\centering',
        f'\\caption{{{_escape(title)}. {_escape(text_lib.legend(result)[0])}}}',
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
    text_lib.MINUS: '$-$',
    '–': '--',
    '×': '$\\times$',
    text_lib.NEVER: '$\\infty$',
    'η': '$\\eta$',
    '≥': '$\\geq$',
}


def _escape(text):
  return ''.join(_LATEX.get(character, character) for character in text)
