"""Tables and tasks from outside."""

import dataclasses

import pytest

from tff_fedopt import papers
from tff_fedopt.experiment import sweep
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables import spec as spec_lib
from tff_fedopt.testing import own_task


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


def test_a_task_from_outside_is_trained_for_a_table(tmp_path, monkeypatch):
  task = own_task.install(tmp_path, monkeypatch)
  setting = spec_lib.Setting(
      task,
      'fedavg',
      {'client_learning_rate': 0.1},
      'guessed: ours',
      rounds=4,
      cohort_size=3,
      participation='examples',
  )
  cell = spec_lib.Cell('blobs', 'FedAvg', [setting])
  mine = dataclasses.replace(_mine(), build=lambda profile, form: [cell])
  options = plan_lib.Options()
  planned = plan_lib.plan(mine, options)
  runs = sweep.run_all(plan_lib.run_specs([planned]), tmp_path / 'runs')
  [number] = results_lib.reduce(
      mine, options, planned, {run.spec: run for run in runs}
  ).cells
  assert (number.status, number.metric.unit) == ('done', '%')
  assert 80 < number.mean <= 100
  assert number.provenance['data_kind'] == 'own'
  [run] = number.planned.runs
  assert run.participation.kind == 'examples'
