"""Where rules find their numbers: what is published, and tables of ours."""

from collections.abc import Sequence
import csv
import math
import pathlib
import re

from tff_fedopt.tables import claims
from tff_fedopt.tables import published as published_lib

NOISE = published_lib.RESULTS / 'noise.csv'
TRIVIAL = published_lib.RESULTS / 'trivial.csv'

_PANEL_METRICS = {
    'factor': 'time factor over FedAvg',
    'seconds': 'wall clock per round',
}


def of_published(path: pathlib.Path | None = None) -> claims.Lookup:
  """Looks numbers up in `results/paper.csv`."""
  found = {}
  for number in published_lib.load(path or published_lib.PATH):
    key = (number.table, number.row, number.column)
    found.setdefault(key, {})[number.metric] = number

  def lookup(cell):
    row, column = cell.printed or (cell.row, cell.column)
    table = cell.printed_table or cell.table
    metrics = found.get((table, row, column), {})
    metric = _PANEL_METRICS.get(cell.panel, cell.panel)
    number = metrics.get(metric) or next(iter(metrics.values()), None)
    if number is None or (len(metrics) > 1 and metric not in metrics):
      raise claims.Missing(f'not published: {cell}')
    return claims.Number(number.value, number.std)

  return lookup


def of_tables(
    folder: pathlib.Path, profile: str, trivial: pathlib.Path = TRIVIAL
) -> claims.Lookup:
  """Looks numbers up in the CSV files of tables.

  Args:
    folder: Has `TABLE.csv`: of stored references, or a run's `--out_dir`.
    profile: Rows of other profiles are not used.
    trivial: What a row must reach to count as having learnt.
  """
  needed = {
      (row['table'], row['row']): float(row['needed'])
      for row in read(trivial)
      if row['profile'] in ('', profile)
  }
  tables = {}

  def rows(table):
    if table not in tables:
      path = folder / f'{table}.csv'
      tables[table] = {
          (r['panel'], r['row'], r['column']): r
          for r in (read(path) if path.exists() else ())
          if r['profile'] == profile
      }
    return tables[table]

  def lookup(cell):
    own = rows(cell.table)
    row = own.get((cell.panel, cell.row, cell.column))
    if row is None or row['status'] != 'done' or not row['ours_mean']:
      raise claims.Missing(f'{cell.table}: {cell}')
    value = float(row['ours_mean'])
    if math.isnan(value):
      raise claims.Missing(f'{cell.table}: {cell} is no number')
    level = needed.get((cell.table, cell.row))
    if level is not None:
      values = [
          float(r['ours_mean'])
          for (panel, label, _), r in own.items()
          if (panel, label) == (cell.panel, cell.row) and r['ours_mean']
      ]
      top = min(values) if cell.lower_is_better else max(values)
      if top > level if cell.lower_is_better else top < level:
        raise claims.NothingLearnt(f'{cell.row} {top:g}, needed {level:g}')
    return claims.Number(
        value,
        float(row['ours_std']) if row['ours_std'] else None,
        max(1, len(row['seeds'].split())),
        int(row['rounds']) if row['rounds'] else None,
        at_border(row['setting'], row['setting_source']),
    )

  return lookup


# An axis of a grid of decimal exponents, such as `client -1, -0.5, 0`.
_AXIS = re.compile(r'\b(client|server) (-?[\d.]+(?:, -?[\d.]+)*)')

_SYMBOLS = {'rate': 'client_learning_rate', 'μ': 'mu'}
_VALUES = re.compile(r'\((rate|μ) (-?[\d.]+(?:, -?[\d.]+)*)\)')


def at_border(setting: str, source: str) -> bool:
  """Whether a chosen setting lies on the border of the grid it is from.

  Args:
    setting: `name=value` of each hyperparameter, separated by spaces.
    source: Where it is from, which names the grid of rates if there is one.
  """
  if source == 'part of the grid':
    return True  # The grid is not named, so nothing excludes it.
  if not source.startswith('ours-tuned'):
    return False
  values = dict(part.split('=', 1) for part in setting.split() if '=' in part)
  for axis, text in _AXIS.findall(source):
    exponents = [float(text_) for text_ in text.split(', ')]
    rate = values.get(f'{axis}_learning_rate')
    # One value is a choice of ours, no grid.
    if rate is None or len(exponents) < 2 or float(rate) <= 0:
      continue
    chosen = math.log10(float(rate))
    ends = (min(exponents), max(exponents))
    if any(abs(chosen - end) < 1e-3 for end in ends):
      return True
  # Some grids are of one hyperparameter, and name its values.
  for symbol, text in _VALUES.findall(source):
    tried = [float(text_) for text_ in text.split(', ')]
    value = values.get(_SYMBOLS[symbol])
    if value and len(tried) > 1 and float(value) in (min(tried), max(tried)):
      return True
  return False


def read(path: pathlib.Path) -> Sequence[dict[str, str]]:
  """Reads a CSV file as text."""
  with open(path, newline='', encoding='utf-8') as f:
    return list(csv.DictReader(f))


def noise(path: pathlib.Path = NOISE) -> dict[str, float]:
  """Reads how far runs with other seeds differ, by the names of rules."""
  return {row['name']: float(row['half_width']) for row in read(path)}
