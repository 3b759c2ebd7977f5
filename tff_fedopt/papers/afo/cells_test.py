"""What AFO's tables plan."""

import dataclasses
import types

import pytest

from tff_fedopt import papers
from tff_fedopt.experiment import reductions
from tff_fedopt.papers.afo import figures
from tff_fedopt.papers.afo import settings
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import rate_grids

_PROFILES = ('quick', 'small', 'paper')


def _planned(name, profile='quick'):
  return plan_lib.plan(papers.get(name), plan_lib.Options(profile=profile))


def _pairs(cell):
  return {
      rate_grids.log_rates(candidate.setting.hyperparameters)
      for candidate in cell.candidates
  }


@pytest.mark.parametrize('profile', _PROFILES)
def test_test_sets_are_whole_and_seen_once(profile):
  tuned = {cell.cell.key: cell for cell in _planned('afo_main', profile)}
  cells = _planned('afo_test', profile)
  assert {c.cell.row for c in cells} == {'SO NWP', 'SO LR'}
  assert {c.cell.column for c in cells} == set(settings.METHODS)
  for cell in cells:
    [run] = cell.runs
    assert run.evaluate_every == run.rounds
    assert run.validation_examples is None
    assert run.task_options['validation_examples'] == 16_586_035
    assert cell.cell.quantity.reduction == reductions.Last(1)
    # Trained as for the main table.
    [main] = tuned[cell.cell.key].runs
    assert run.hyperparameters == main.hyperparameters
    assert (run.rounds, run.cohort_size) == (main.rounds, main.cohort_size)


@pytest.mark.parametrize('profile', _PROFILES)
def test_relation_measures_whole_grids(profile):
  grids = {}
  for cell in _planned('afo_rate_relation', profile):
    of_grid = cell.cell.quantity and cell.cell.quantity.of_grid
    if of_grid is None:
      [pair] = _pairs(cell)
      task, method = cell.cell.panel.split(', ')
      grids.setdefault((task, method), set()).add(pair)
      assert (f'{pair[1]:g}', f'{pair[0]:g}') == cell.cell.key[1:]
    elif of_grid == rate_grids.BestServer():
      assert {f'{client:g}' for client, _ in _pairs(cell)} == {cell.cell.column}
    else:
      task = cell.cell.panel.split(', ')[0]
      assert _pairs(cell) == grids[task, cell.cell.row]
  assert {method for _, method in grids} == set(settings.METHODS)
  if profile == 'paper':
    assert {task for task, _ in grids} == set(settings.TASKS)
    # The heat maps have these runs already.
    maps = plan_lib.run_specs([_planned('afo_lr_grid', profile)])
    relation = plan_lib.run_specs([_planned('afo_rate_relation', profile)])
    assert set(relation) == set(maps)


@pytest.mark.parametrize('profile', _PROFILES)
def test_curves_are_of_every_task_method_and_seed(profile):
  main, cells = (_planned(name, profile) for name in ('afo_main', 'afo_curves'))
  for panel in ('Validation', 'Training'):
    keys = [c.cell.key[1:] for c in cells if c.cell.panel == panel]
    assert keys == [c.cell.key[1:] for c in main]
  assert all(len(c.seeds) > 1 for c in cells)
  shared = set(plan_lib.run_specs([main])) & set(plan_lib.run_specs([cells]))
  assert bool(shared) == (profile != 'small' or 1 in cells[0].seeds)
  speedups = [c for c in cells if c.cell.panel == 'Speed-up']
  assert speedups and all(len(c.baseline) == 1 for c in speedups)
  if profile == 'paper':
    # 0.8 of the published numbers of FedAvg.
    for cell in speedups:
      [avg] = [
          c for c in main if c.cell.key == ('', cell.cell.row, 'FedAvg')
      ]
      target = cell.cell.quantity.reduction.target
      assert 100 * target == pytest.approx(
          0.8 * avg.published('afo_main').value
      )


@pytest.mark.parametrize('profile', _PROFILES)
def test_schedules_differ_in_the_schedule_alone(profile):
  by_row = {}
  for cell in _planned('afo_schedules', profile):
    by_row.setdefault(cell.cell.row, {})[cell.cell.column] = cell
  for cells in by_row.values():
    assert list(cells) == ['Constant', 'InvSqrt', 'ExpDecay']
    constant, sqrt, exponential = (
        [run.hyperparameters for run in cell.runs] for cell in cells.values()
    )
    rounds = cells['Constant'].runs[0].rounds
    assert str(constant[0].client_learning_rate_schedule) == 'constant'
    assert str(exponential[0].client_learning_rate_schedule) == (
        f'exponential:0.1:{rounds // 3}'
    )
    plain = dataclasses.replace(
        exponential[0],
        client_learning_rate_schedule=constant[0].client_learning_rate_schedule,
    )
    assert plain == constant[0]
    first = [hp.client_learning_rate for hp in sqrt]
    rate = constant[0].client_learning_rate
    assert first == pytest.approx([rate, rate * 10**0.5, rate * 10])
    assert {str(hp.client_learning_rate_schedule) for hp in sqrt} == {
        'inverse_sqrt:1:1'
    }


def test_relation_is_drawn_of_what_was_run():
  cells = [c.cell for c in _planned('afo_rate_relation')]
  results = [
      types.SimpleNamespace(cell=cell, mean=float(cell.column))
      for cell in cells
      if cell.panel == 'SO LR, best server rate'
  ]
  others = [
      types.SimpleNamespace(cell=cell, mean=1.0)
      for cell in cells
      if cell.panel != 'SO LR, best server rate'
  ]
  draw = lambda found: figures.relation(types.SimpleNamespace(cells=found))
  [axis] = draw([*others, *results]).axes
  assert axis.get_title() == 'SO LR'
  lines = {line.get_label(): line for line in axis.get_lines()}
  assert set(lines) == set(settings.METHODS)
  for line in lines.values():
    assert list(line.get_xdata()) == list(line.get_ydata()) == [-1, 0, 1, 2, 3]
  results[2].mean = None  # All of its pairs diverged.
  [axis] = draw(results).axes
  assert list(axis.get_lines()[0].get_xdata()) == [-1, 0, 2, 3]
  assert draw(others) is None
