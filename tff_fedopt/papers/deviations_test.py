"""DEVIATIONS.md of each paper: every row says where in the code it is."""

import importlib
import re

import pytest

from tff_fedopt import papers
from tff_fedopt.tables import published

_PAPERS = sorted({papers.get(name).paper for name in papers.names()})
_WHERE = 'where in our code'


def _rows(paper):
  """Cells of the rows of all tables, their header first of each table."""
  path = published.RESULTS / paper / 'DEVIATIONS.md'
  tables, before = [], ''
  for line in path.read_text(encoding='utf-8').splitlines():
    if line.startswith('|') and not line.startswith('|---'):
      if not before.startswith('|'):
        tables.append([])
      tables[-1].append([cell.strip() for cell in line.strip('|').split(' |')])
    before = line
  return tables


def find(symbol):
  """Returns what a dotted name says, below tff_fedopt or tasks."""
  top = '' if symbol.startswith('tasks.') else 'tff_fedopt.'
  parts = (top + symbol).split('.')
  for length in range(len(parts), 0, -1):
    try:
      found = importlib.import_module('.'.join(parts[:length]))
    except ModuleNotFoundError:
      continue
    for name in parts[length:]:
      found = getattr(found, name)
    return found
  raise ImportError(symbol)


@pytest.mark.parametrize('paper', _PAPERS)
def test_every_row_names_code_that_there_is(paper):
  tables = _rows(paper)
  assert tables
  for header, *rows in tables:
    assert header[-1] == _WHERE, header
    assert len(header) > 2 and rows
    for row in rows:
      assert len(row) == len(header), row[0]
      symbols = re.findall(r'`([^`]+)`', row[-1])
      assert symbols, f'{row[0]}: no symbol'
      assert row[-1] == ', '.join(f'`{s}`' for s in symbols), row[0]
      for symbol in symbols:
        find(symbol)


@pytest.mark.parametrize(
    'symbol', ['papers.afo.settings.tune', 'tasks.cifar11', 'nowhere.at_all']
)
def test_code_that_there_is_not_is_found_out(symbol):
  with pytest.raises((AttributeError, ImportError)):
    find(symbol)
