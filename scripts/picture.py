"""Draws docs/picture.svg from the stored quick numbers.

    python scripts/picture.py
"""

import pathlib
import sys

import matplotlib
import pandas as pd

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / 'docs' / 'picture.svg'
# Title, table, column of the labels, what to choose, unit on the axis.
PANELS = (
    (
        'Adaptive Federated Optimization:\nserver optimizers, next word',
        'afo_main',
        'column',
        {'row': 'SO NWP'},
        'accuracy, %',
    ),
    (
        'Local Adaptivity:\nadaptive clients, next word',
        'la_table2',
        'column',
        {'row': 'SO NWP'},
        'accuracy, %',
    ),
    (
        'FedVRA:\nunequal local work, characters',
        'vra_compare',
        'column',
        {'metric': 'rounds to loss 3'},
        'rounds to a loss of 3 (fewer is better)',
    ),
    (
        'FedInit:\nCIFAR-10, Dirichlet 0.1, ResNet',
        'init_table4',
        'row',
        {'column': '10%-100 Dir-0.1', 'row': 'ResNet-18-GN'},
        'accuracy, %',
    ),
)


def bars(table: str, labels: str, chosen: dict[str, str]) -> pd.Series:
  """Stored numbers of a table's quick profile, by label.

  Args:
    table: The table's id.
    labels: The column with the labels.
    chosen: Column to what its text must begin with.
  """
  path = ROOT / 'results' / 'reference' / 'quick' / f'{table}.csv'
  rows = pd.read_csv(path)
  for column, start in chosen.items():
    rows = rows[rows[column].str.startswith(start)]
  names = rows[labels].str.removeprefix(chosen.get(labels, '')).str.strip()
  return pd.Series(rows['ours_mean'].to_numpy(), names)


def draw(path: pathlib.Path = OUT) -> None:
  """Writes the picture; the same numbers give the same file."""
  matplotlib.use('svg')
  matplotlib.rcParams['svg.hashsalt'] = 'tff_fedopt'
  matplotlib.rcParams['svg.fonttype'] = 'none'
  from matplotlib import pyplot

  figure, axes = pyplot.subplots(2, 2, figsize=(9, 5), layout='constrained')
  for axis, (title, table, labels, chosen, unit) in zip(axes.flat, PANELS):
    values = bars(table, labels, chosen)[::-1]
    patches = axis.barh(values.index, values, color='#4c72b0')
    axis.bar_label(patches, fmt='%.3g', padding=2, fontsize=7)
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(unit, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.margins(x=0.12)
    axis.spines[['top', 'right']].set_visible(False)
  path.parent.mkdir(exist_ok=True)
  figure.savefig(path, metadata={'Date': None})
  pyplot.close(figure)


if __name__ == '__main__':
  sys.exit(draw())
