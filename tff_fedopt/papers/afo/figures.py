"""Figures of AFO's that no kind of table has."""

from typing import Any

from tff_fedopt.tables import rate_grids


def relation(result: Any) -> Any:
  """Draws the best server rate over the client rate, an axis for each task.

  Args:
    result: A `results.TableResult` of `afo_rate_relation`.

  Returns:
    A figure; None if no grid was run.
  """
  from matplotlib import figure as figure_lib

  lines = {}
  for cell in result.cells:
    quantity = cell.cell.quantity
    if quantity is None or quantity.of_grid != rate_grids.BestServer():
      continue
    if cell.mean is not None:
      task = cell.cell.panel.rpartition(', ')[0]
      points = lines.setdefault(task, {}).setdefault(cell.cell.row, [])
      points.append((float(cell.cell.column), cell.mean))
  if not lines:
    return None
  figure = figure_lib.Figure(
      figsize=(3.4 * len(lines), 3.2), layout='constrained'
  )
  styles = (
      ('-', 'o', '0.0'),
      ('--', 's', '0.0'),
      (':', '^', '0.0'),
      ('-', 'D', '0.5'),
      ('--', 'v', '0.5'),
  )
  [axes] = figure.subplots(1, len(lines), squeeze=False)
  for axis, (task, methods) in zip(axes, lines.items()):
    for (method, points), (line, marker, grey) in zip(methods.items(), styles):
      axis.plot(
          *zip(*sorted(points)),
          linestyle=line,
          marker=marker,
          markersize=4,
          color=grey,
          label=method,
      )
    axis.set_title(task, fontsize=9)
    axis.set_xlabel('log10 client rate', fontsize=8)
    axis.set_ylabel('best log10 server rate', fontsize=8)
    axis.tick_params(labelsize=7)
  axes[0].legend(fontsize=7)
  return figure
