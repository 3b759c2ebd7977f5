"""A table as LaTeX."""

from collections.abc import Sequence

from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables.report import text as text_lib


def render(
    result: results_lib.TableResult, claims: Sequence[str] = ()
) -> str:
  """Renders the grid of each panel as a LaTeX table (package booktabs).

  Args:
    result: The table.
    claims: What was found of the claims that it decides, a line each; they
      stand as notes below the last panel.

  Returns:
    LaTeX without a preamble.
  """
  bold = text_lib.bold_keys(result)

  def text(cell):
    value = _escape(text_lib.ours(cell))
    return f'\\textbf{{{value}}}' if cell.cell.key in bold else value

  lines = ['% Needs \\usepackage{booktabs}.']
  for number, panel in enumerate(result.panels):
    header, *rows = text_lib.grid(result, panel, text)
    title = f'{result.spec.title}{": " if panel else ""}{panel}'
    lines += [
        '\\begin{table}',
        '\\centering',
        f'\\caption{{{_escape(title)}. {_escape(text_lib.legend(result)[0])}}}',
        f'\\label{{tab:{result.spec.id}{f"-{number}" if number else ""}}}',
        f'\\begin{{tabular}}{{l{"r" * (len(header) - 1)}}}',
        '\\toprule',
        ' & '.join(_escape(cell) for cell in header) + ' \\\\',
        '\\midrule',
        *(' & '.join([_escape(r[0]), *r[1:]]) + ' \\\\' for r in rows),
        '\\bottomrule',
        '\\end{tabular}',
        *(_notes(claims) if number == len(result.panels) - 1 else ()),
        '\\end{table}',
        '',
    ]
  return '\n'.join(lines)


def _notes(lines):
  return [
      line
      for text in lines
      for line in ('', f'\\par{{\\footnotesize {_escape(text)}\\par}}')
  ][1:]


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
    'β': '$\\beta$',
    'Δ': '$\\Delta$',
    '²': '$^2$',
    '<': '$<$',
    '>': '$>$',
    '|': '$|$',
    '≥': '$\\geq$',
}


def _escape(text):
  return ''.join(_LATEX.get(character, character) for character in text)
