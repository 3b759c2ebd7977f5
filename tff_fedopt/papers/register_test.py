"""Tables from outside."""

import dataclasses

import pytest

from tff_fedopt import papers


@pytest.fixture(name='registry', autouse=True)
def _registry(monkeypatch):
  """Takes back what a test registers."""
  monkeypatch.setattr(papers, '_SPECS', dict(papers._SPECS))


def _mine(name='mine_main'):
  return dataclasses.replace(papers.get('afo_main'), id=name, paper='mine')


def test_a_registered_table_is_like_the_others():
  mine = papers.register(_mine())
  assert papers.get('mine_main') is mine
  assert papers.names('mine') == ('mine_main',)
  assert papers.names()[-1] == 'mine_main'
  papers.register(mine)  # Imported twice, it is the same.


def test_papers_have_the_names_of_their_folders():
  found = {papers.get(name).paper for name in papers.names()}
  assert found == {'afo', 'fedinit', 'fedvra', 'local_adaptivity'}


@pytest.mark.parametrize(
    'table, message',
    [
        (_mine('la_toy'), "there is a table 'la_toy' already"),
        ('mine_main', "not a table: 'mine_main'; expected a tff_fedopt.tables"),
    ],
)
def test_another_is_refused_in_one_line(table, message):
  with pytest.raises(ValueError, match=message) as e:
    papers.register(table)
  assert '\n' not in str(e.value)
