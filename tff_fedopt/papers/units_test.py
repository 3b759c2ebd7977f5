"""Published numbers and ours are in one unit."""

import collections

import pytest

from tff_fedopt import papers
from tff_fedopt.tables import plan
from tff_fedopt.tables import published


@pytest.mark.parametrize('profile', ['quick', 'paper'])
def test_every_published_number_of_a_cell_is_in_our_unit(profile):
  found = {
      cell.published(name)
      for name in papers.names()
      for cell in plan.plan(papers.get(name), plan.Options(profile=profile))
  }
  assert len(found - {None}) > 100


def test_every_published_number_is_that_of_exactly_one_cell():
  found = collections.Counter()
  for name in papers.names():
    for cell in papers.get(name).cells('paper'):
      number = plan.PlannedCell(cell, tuple(map(_candidate, cell.candidates)))
      found[number.published(name)] += 1
  del found[None]
  lost = [n for n in published.load() if n not in found]
  assert not [(n.table, n.row, n.column, n.metric) for n in lost]
  assert set(found.values()) == {1}


@pytest.mark.parametrize('profile', ['quick', 'small'])
def test_a_cell_of_a_published_place_finds_its_number(profile):
  """What the paper profile compares, others show beside theirs."""
  places = {(n.table, n.row, n.column) for n in published.load()}
  for name in papers.names():
    for cell in papers.get(name).cells(profile):
      if (name, cell.row, cell.column) in places and not cell.panel:
        planned = plan.PlannedCell(
            cell, tuple(map(_candidate, cell.candidates))
        )
        assert planned.published(name), cell.key


def _candidate(setting):
  return plan.Candidate(setting, ())


def test_another_unit_is_said_before_anything_runs(tmp_path, monkeypatch):
  path = tmp_path / 'paper.csv'
  text = published.PATH.read_text(encoding='utf-8')
  path.write_text(text.replace('CIFAR-10,FedAvg,accuracy,%,72.8', (
      'CIFAR-10,FedAvg,accuracy,fraction,0.728'
  )), encoding='utf-8')
  monkeypatch.setattr(published, 'PATH', path)
  with pytest.raises(ValueError, match="CIFAR-10, FedAvg .*'fraction'"):
    plan.plan(papers.get('afo_main'), plan.Options())
