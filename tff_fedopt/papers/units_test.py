"""Published numbers and ours are in one unit."""

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


def test_another_unit_is_said_before_anything_runs(tmp_path, monkeypatch):
  path = tmp_path / 'paper.csv'
  text = published.PATH.read_text(encoding='utf-8')
  path.write_text(text.replace('CIFAR-10,FedAvg,accuracy,%,72.8', (
      'CIFAR-10,FedAvg,accuracy,fraction,0.728'
  )), encoding='utf-8')
  monkeypatch.setattr(published, 'PATH', path)
  with pytest.raises(ValueError, match="CIFAR-10, FedAvg .*'fraction'"):
    plan.plan(papers.get('afo_main'), plan.Options())
