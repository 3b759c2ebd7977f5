"""Figures of a table, PNG and SVG, readable without colour."""

import io
import math
import pathlib

import numpy as np

from tff_fedopt.experiment import files
from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables.report import text as text_lib

_STYLES = (
    ('-', 'o', '0.0'),
    ('--', 's', '0.0'),
    (':', '^', '0.0'),
    ('-', 'D', '0.5'),
    ('--', 'v', '0.5'),
    (':', 'x', '0.5'),
    ('-.', '+', '0.25'),
)


def draw(
    result: results_lib.TableResult, folder: pathlib.Path
) -> list[pathlib.Path]:
  """Draws the figures that belong to the kind of the table, and its own.

  A heat map per panel; metric against column for a sensitivity table; for all
  others curves over the rounds, and for a plain table the rounds each column
  needs to reach what the last column ends with.

  Args:
    result: The table.
    folder: Where the files go; exists.

  Returns:
    The files, PNG and SVG of each figure; none where nothing was measured.
  """
  if not any(cell.values for cell in result.cells):
    return []
  figures = {
      'heatmap': {'heatmap': _heatmap},
      'sensitivity': {'sensitivity': _sensitivity},
      'table': {'curves': _curves, 'target': _target},
      'curves': {'curves': _curves},
      'measured': {'curves': _curves},
  }[result.spec.kind] | result.spec.figures
  paths = []
  for name, function in figures.items():
    figure = function(result)
    if figure is not None:
      paths += _save(figure, result, folder / f'{result.spec.id}_{name}')
  return paths


def _subplots(count, width, height, columns=4):
  import matplotlib

  matplotlib.use('Agg')
  from matplotlib import pyplot

  columns = min(count, columns)
  rows = math.ceil(count / columns)
  figure, axes = pyplot.subplots(
      rows,
      columns,
      figsize=(width * columns, height * rows + 0.6),
      squeeze=False,
      layout='constrained',
  )
  axes = axes.ravel()
  for axis in axes[count:]:
    axis.set_axis_off()
  return figure, axes


def _save(figure, result, stem):
  from matplotlib import pyplot

  figure.suptitle(
      f'{result.spec.title}\n'
      f'data: {", ".join(result.data_kinds)}; profile: {result.options.profile}'
      f'; form: {result.form}',
      fontsize=9,
  )
  paths = []
  for suffix in ('png', 'svg'):
    path = stem.with_name(f'{stem.name}.{suffix}')
    # Without a date the same numbers give the same file.
    metadata = {'Date': None} if suffix == 'svg' else None
    drawn = io.BytesIO()
    figure.savefig(drawn, format=suffix, dpi=120, metadata=metadata)
    files.write_atomically(path, [drawn.getvalue()])
    paths.append(path)
  pyplot.close(figure)
  return paths


def _by_row(result):
  rows = {}
  for cell in result.cells:
    rows.setdefault((cell.cell.panel, cell.cell.row), []).append(cell)
  return rows


def _style(columns):
  return {c: _STYLES[k % len(_STYLES)] for k, c in enumerate(columns)}


def _columns(result):
  return list(dict.fromkeys(cell.cell.column for cell in result.cells))


def _curves(result):
  rows = {
      # One evaluation is no curve.
      key: [c for c in cells if c.curves and len(c.curves[0][0]) > 1]
      for key, cells in _by_row(result).items()
  }
  rows = {key: cells for key, cells in rows.items() if cells}
  if not rows:
    return None
  figure, axes = _subplots(len(rows), 3.4, 2.6)
  styles = _style(_columns(result))
  for axis, ((panel, row), cells) in zip(axes, rows.items()):
    for cell in cells:
      _draw_curve(axis, cell, *styles[cell.cell.column])
    axis.set_title(', '.join(filter(None, (panel, row))), fontsize=9)
    axis.set_xlabel('round', fontsize=8)
    axis.set_ylabel(text_lib.metric_name(cells[0].metric), fontsize=8)
    if getattr(cells[0].metric, 'logarithmic', False):
      axis.set_yscale('log')
    axis.tick_params(labelsize=7)
  # A column may be missing on some axes, where it diverged.
  handles = {}
  for axis in axes:
    handles.update(zip(*reversed(axis.get_legend_handles_labels())))
  figure.legend(
      handles.values(),
      handles.keys(),
      loc='outside lower center',
      # As many as there is room for.
      ncols=min(5, max(1, int(figure.get_figwidth() / 1.8))),
      fontsize=8,
  )
  return figure


def _draw_curve(axis, cell, line, marker, grey):
  """Draws the mean over seeds, and a band of a deviation around it."""
  rounds = cell.curves[0][0]
  values = np.asarray([curve[1] for curve in cell.curves])
  axis.plot(
      rounds,
      values.mean(axis=0),
      linestyle=line,
      marker=marker,
      markevery=max(1, len(rounds) // 6),
      markersize=4,
      color=grey,
      label=cell.cell.column,
  )
  if len(values) > 1:
    spread = values.std(axis=0, ddof=1)
    axis.fill_between(
        rounds,
        values.mean(axis=0) - spread,
        values.mean(axis=0) + spread,
        color=grey,
        alpha=0.15,
        linewidth=0,
    )


def rounds_to_target(cells) -> dict[str, float]:
  """Returns column to the first round at the last column's final number.

  Args:
    cells: The cells of one row; the last one sets the target.

  Returns:
    A round, or inf where the target was not reached; empty without a target.
  """
  target = cells[-1].mean
  if target is None:
    return {}
  higher = cells[-1].metric.higher_is_better
  found = {}
  for cell in cells:
    if cell.curves:
      rounds = cell.curves[0][0]
      values = np.mean([curve[1] for curve in cell.curves], axis=0)
      there = values >= target if higher else values <= target
      found[cell.cell.column] = (
          float(np.asarray(rounds)[there].min()) if there.any() else math.inf
      )
  return found


def _target(result):
  rows = {
      row: [cell for cell in cells if cell.cell.quantity is None]
      for (_, row), cells in _by_row(result).items()
  }
  rows = {
      row: (cells, rounds_to_target(cells))
      for row, cells in rows.items()
      if cells
  }
  rows = {row: value for row, value in rows.items() if value[1]}
  if not rows:
    return None
  figure, axes = _subplots(len(rows), 2.6, 2.2)
  for axis, (row, (cells, found)) in zip(axes, rows.items()):
    labels = list(found)
    reached = [found[c] if math.isfinite(found[c]) else 0 for c in labels]
    axis.barh(labels, reached, color='0.6', edgecolor='0.0')
    for k, label in enumerate(labels):
      text = f'{found[label]:g}' if math.isfinite(found[label]) else 'never'
      axis.annotate(text, (reached[k], k), fontsize=7, va='center')
    axis.invert_yaxis()
    axis.set_xlim(0, 1.2 * max(*reached, 1))
    target = text_lib.number(cells[-1].mean, cells[-1].metric)
    axis.set_title(f'{row}: rounds to {target}', fontsize=8)
    axis.tick_params(labelsize=7)
  return figure


def _sensitivity(result):
  figure, axes = _subplots(len(result.panels), 3.6, 2.8)
  styles = _style(dict.fromkeys(row for _, row in _by_row(result)))
  for axis, panel in zip(axes, result.panels):
    # Panels may vary different things.
    columns = list(
        dict.fromkeys(
            c.cell.column for c in result.cells if c.cell.panel == panel
        )
    )
    for (its_panel, row), cells in _by_row(result).items():
      if its_panel != panel:
        continue
      line, marker, grey = styles[row]
      points = {c.cell.column: c.mean for c in cells if c.mean is not None}
      axis.plot(
          [columns.index(c) for c in points],
          list(points.values()),
          linestyle=line,
          marker=marker,
          color=grey,
          label=row,
      )
      axis.set_ylabel(text_lib.metric_name(cells[0].metric), fontsize=8)
    axis.set_xticks(range(len(columns)), columns, fontsize=8)
    axis.set_xlabel(result.spec.column_header, fontsize=8)
    axis.set_title(panel, fontsize=9)
    axis.legend(fontsize=7)
  return figure


def _heatmap(result):
  # A number of all the candidates together is no point of a map.
  panels = tuple(
      dict.fromkeys(
          c.cell.panel for c in result.cells if len(c.cell.candidates) == 1
      )
  )
  if not panels:
    return None
  figure, axes = _subplots(len(panels), 3.2, 2.9, columns=5)
  for axis, panel in zip(axes, panels):
    cells = [c for c in result.cells if c.cell.panel == panel]
    rows = list(dict.fromkeys(c.cell.row for c in cells))
    columns = list(dict.fromkeys(c.cell.column for c in cells))
    values = np.full((len(rows), len(columns)), np.nan)
    for cell in cells:
      if cell.mean is not None:
        place = rows.index(cell.cell.row), columns.index(cell.cell.column)
        values[place] = cell.mean
    # Dark is good whichever way the metric points.
    shade = values if cells[0].metric.higher_is_better else -values
    axis.imshow(shade, cmap='Greys', aspect='auto')
    known = shade[np.isfinite(shade)]
    middle = (known.min() + known.max()) / 2 if len(known) else 0
    for cell in cells:
      y, x = rows.index(cell.cell.row), columns.index(cell.cell.column)
      axis.text(
          x,
          y,
          text_lib.ours(cell, short=True),
          ha='center',
          va='center',
          fontsize=7,
          # A cell without a number is white: NaN > middle is false.
          color='white' if shade[y, x] > middle else 'black',
      )
    axis.set_xticks(range(len(columns)), columns, fontsize=7)
    axis.set_yticks(range(len(rows)), rows, fontsize=7)
    axis.set_xlabel(result.spec.column_header, fontsize=8)
    axis.set_ylabel(result.spec.row_header, fontsize=8)
    axis.set_title(
        f'{panel}, {text_lib.metric_name(cells[0].metric)}', fontsize=8
    )
  return figure
