"""The grids that tables show or search hold what else the profile uses."""

import math

import pytest

from tasks import task as task_lib
from tff_fedopt import papers
from tff_fedopt.tables import plan as plan_lib


def _rates(run):
  hp = run.hyperparameters
  return (
      round(math.log10(hp.client_learning_rate), 6),
      round(math.log10(hp.server_learning_rate), 6),
  )


def _kind(run):
  """Of which method a run is, whatever its rates and τ."""
  hp = run.hyperparameters
  return (
      run.task,
      run.algorithm,
      hp.client_optimizer,
      getattr(hp, 'correction', ''),
      getattr(hp, 'client_state', ''),
  )


def _cells(paper, profile):
  options = plan_lib.Options(profile=profile)
  return [
      (papers.get(name), cell)
      for name in papers.names(paper)
      for cell in plan_lib.plan(papers.get(name), options)
  ]


@pytest.mark.parametrize('profile', task_lib.PROFILES)
@pytest.mark.parametrize('paper', ['afo', 'local_adaptivity'])
def test_every_pair_of_rates_is_on_the_heat_map_of_its_method(paper, profile):
  maps, used = {}, {}
  for table, cell in _cells(paper, profile):
    for run in cell.runs:
      where = maps if table.kind == 'heatmap' else used
      if len(cell.candidates) == 1 or table.kind == 'heatmap':
        where.setdefault(_kind(run), set()).add(_rates(run))
  assert maps
  for kind in set(maps) & set(used):
    assert not used[kind] - maps[kind], kind
  assert set(maps) & set(used)


def test_what_is_searched_in_paper_holds_what_other_profiles_use():
  """Methods with adaptive clients, by the keys of their cells."""
  searched = {
      (table.id, cell.cell.key): {_rates(run) for run in cell.runs}
      for table, cell in _cells('local_adaptivity', 'paper')
      if len(cell.candidates) > 1
  }
  compared = 0
  for profile in ('quick', 'small'):
    for table, cell in _cells('local_adaptivity', profile):
      key = table.id, cell.cell.key
      if key in searched and table.kind != 'heatmap':
        compared += 1
        assert {_rates(run) for run in cell.runs} <= searched[key], key
  assert compared > 30


def _settings(name, profile):
  return [
      candidate.setting
      for cell in plan_lib.plan(
          papers.get(name), plan_lib.Options(profile=profile)
      )
      for candidate in cell.candidates
  ]


@pytest.mark.parametrize('profile', task_lib.PROFILES)
def test_sweeps_hold_what_the_other_tables_have(profile):
  """Over τ, over FedVRA's steps, over FedInit's β and local epochs."""
  swept = {
      (s.task, s.algorithm, s.hyperparameters['tau'])
      for s in _settings('afo_tau', profile)
  }
  tasks = {task for task, *_ in swept}
  used = {
      (s.task, s.algorithm, s.hyperparameters['tau'])
      for s in _settings('afo_main', profile)
      if s.task in tasks and 'tau' in s.hyperparameters
  }
  assert used and used <= swept

  steps = lambda s: (
      s.task,
      *(s.hyperparameters[n] for n in ('dual_step', 'aggregation_step')),
  )
  swept = {steps(s) for s in _settings('vra_stepsizes', profile)}
  [mapped] = {task for task, *_ in swept}
  used = {
      steps(s)
      for s in _settings('vra_compare', profile)
      if s.algorithm == 'fedvra' and s.task == mapped
  }
  assert used and used <= swept

  start = lambda s: (s.local_epochs, s.hyperparameters['relaxation'])
  swept = {start(s) for s in _settings('init_fig1', profile)}
  used = {
      start(s)
      for s in _settings('init_table4', profile)
      if s.algorithm == 'fedinit'
  }
  assert used and used <= swept
