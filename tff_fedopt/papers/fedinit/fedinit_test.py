"""FedInit's tables: what is run, and what costs measure."""

import numpy as np
import pytest

from tff_fedopt import algorithms
from tff_fedopt import papers
from tff_fedopt.papers.fedinit import costs
from tff_fedopt.papers.fedinit import settings
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import published

_NAMES = papers.names('fedinit')


def _plan(name, profile):
  options = plan_lib.Options(
      profile=profile, data_dir=None if profile == 'quick' else '/data'
  )
  return plan_lib.plan(papers.get(name), options)


def test_all_tables_are_there():
  assert _NAMES == tuple(
      f'init_{name}'
      for name in (
          'table4', 'table5', 'table6', 'table7', 'table8', 'table9',
          'fig1', 'fig2', 'toy', 'theory',
      )
  )


@pytest.mark.parametrize('name', _NAMES)
def test_every_published_number_has_a_cell(name):
  cells = {
      (c.row, c.column, c.quantity.name if c.quantity else 'test accuracy')
      for c in (planned.cell for planned in _plan(name, 'paper'))
  }
  for number in published.load():
    if number.table == name:
      assert (number.row, number.column, number.metric) in cells


@pytest.mark.parametrize('profile', ['quick', 'small'])
@pytest.mark.parametrize('name', _NAMES)
def test_smaller_profiles_are_parts_of_the_table(name, profile):
  """Tables have no other rows and columns, figures no other rows."""
  figure = name.startswith('init_fig')
  labels = lambda p: {
      (c.cell.row, '' if figure else c.cell.column.split(' ')[0])
      for c in _plan(name, p)
  }
  assert labels(profile) and labels(profile) <= labels('paper')
  longest = lambda p: max(
      (run.rounds for run in plan_lib.run_specs([_plan(name, p)])), default=0
  )
  # What is computed is the same in every profile.
  computed = name in ('init_table9', 'init_theory', 'init_toy')
  assert longest(profile) < longest('paper') or computed


def test_published_setting():
  by_key = {
      (p.cell.row, p.cell.column): p.candidates[0].runs
      for p in _plan('init_table4', 'paper')
  }
  runs = by_key['ResNet-18-GN FedInit', '5%-200 Dir-0.6']
  assert [run.seed for run in runs] == [20, 21, 22]
  run = runs[0]
  assert (run.rounds, run.cohort_size, run.cohorts) == (500, 10, 'bernoulli')
  assert (run.batch_size, run.local_epochs) == (25, 5)
  assert run.task_options['clients'] == 200
  assert run.task_options['alpha'] == 0.6
  assert run.task_options['network'] == 'resnet18_strided'
  assert run.hyperparameters == algorithms.validate(
      'fedinit',
      {
          'form': 'code',
          'client_learning_rate': 0.1,
          'client_learning_rate_schedule': 'exponential:0.998:1',
          'client_weighting': 'uniform',
          'weight_decay': 0.001,
          'max_gradient_norm': 10,
          'relaxation': 0.1,
      },
  )
  dyn = by_key['VGG-11 FedDyn', '10%-100 Dir-0.1'][0]
  assert dyn.batch_size == 50
  assert dyn.hyperparameters.client_learning_rate_schedule.rate == 0.9995
  (hundred,) = {run.rounds for p in _plan('init_table5', 'paper')
                for run in p.runs}
  assert hundred == 800


def test_tables_share_runs():
  """Table 6 runs nothing of Table 4 again, Tables 7 and 8 nothing of either."""
  runs = {
      name: set(plan_lib.run_specs([_plan(name, 'paper')]))
      for name in ('init_table4', 'init_table6', 'init_table7', 'init_table8')
  }
  assert len(runs['init_table6'] - runs['init_table4']) == 5 * 4 * 3
  assert runs['init_table7'] <= runs['init_table4']
  assert runs['init_table8'] <= runs['init_table4']


def test_times_beside_the_published_ones_are_of_whole_rounds():
  """As the authors' clock; those without evaluation stand apart."""
  table = papers.get('init_table7')
  published, own = {}, {}
  for planned in _plan('init_table7', 'paper'):
    quantity = planned.cell.quantity
    where = published if planned.published('init_table7') else own
    where.setdefault(planned.cell.panel, set()).add(
        (quantity.column, str(quantity.reduction))
    )
    assert {run.task_options['alpha'] for run in planned.runs} == {0.1}
    assert {run.evaluate_every for run in planned.runs} == {1}
  whole, training = ('whole_round_time', 'mean'), ('round_time', 'median')
  assert published == {'seconds': {whole}, 'factor': {whole}}
  assert own == {
      'seconds of training': {training}, 'factor of training': {training}
  }
  assert any('Dir-0.1 for both shares' in note for note in table.notes)


@pytest.mark.parametrize('profile', ['quick', 'small', 'paper'])
def test_targets_are_looked_for_in_the_smoothed_curve(profile):
  """The filter is that of the other tables."""
  window = papers.get('init_table4').reduction[profile].window
  assert window > 1
  for planned in _plan('init_table8', profile):
    reduction = planned.cell.quantity.reduction
    assert reduction.window == window
    assert str(reduction).endswith(f':smooth:{window}')


def test_every_setting_is_accepted():
  for method in settings.METHODS:
    for form in ('paper', 'code'):
      algorithm, values = settings.hyperparameters(method, form)
      assert algorithms.validate(algorithm, values).form == form


_COSTS = {
    # method: (down, up, kept), in models
    'SCAFFOLD': (2, 2, 1),
    'FedCM': (2, 1, None),
    'FedInit': (1, 1, 1),
}


@pytest.mark.parametrize('method', _COSTS)
def test_costs_are_those_of_the_algorithm_box(method):
  down, up, kept = _COSTS[method]
  measure = lambda which: costs.communication(0, method, which).value
  np.testing.assert_allclose(
      [measure('down'), measure('up'), measure('larger')],
      [down, up, max(down, up)],
      rtol=0.01,
  )
  if kept is not None:
    assert costs.storage(0, method).value == pytest.approx(kept)
