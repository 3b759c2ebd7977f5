"""The specs of Local Adaptivity's tables: counts, traces, published keys."""

import math

import pytest

from tff_fedopt import algorithms
from tff_fedopt import papers
from tff_fedopt.experiment import spec as run_spec
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import published
from tff_fedopt.tables import results
from tff_fedopt.tables.report import text


def _plan(name, profile='quick'):
  return plan_lib.plan(papers.get(name), plan_lib.Options(profile=profile))


@pytest.mark.parametrize('profile', ['quick', 'paper'])
def test_grid_has_28_pairs_a_method_and_traces_each_method_once(profile):
  *cells, server_only, both = _plan('la_lr_grid', profile)
  assert len(cells) == 56
  for count in (server_only, both):
    pairs = {
        (
            run.hyperparameters.client_learning_rate,
            run.hyperparameters.server_learning_rate,
        )
        for run in count.runs
    }
    assert len(pairs) == len(count.runs) == 28
    # The runs of a pair of optimizers go one after the other with one trace.
    [_] = {run_spec.group_key(run) for run in count.runs}
    [key] = {
        algorithms.trace_key(run.algorithm, run.hyperparameters)
        for run in count.runs
    }
    optimizer = dict(key[1:])['client_optimizer']
    assert optimizer == ('sgd' if count is server_only else 'adagrad')
  # The count needs no runs of its own.
  assert len(plan_lib.run_specs([[*cells, server_only, both]])) == 56


@pytest.mark.parametrize(
    'name', [n for n in papers.names('local_adaptivity') if n != 'la_toy']
)
def test_every_published_number_has_its_cell(name):
  found = {
      planned.published(name)
      for planned in _plan(name, 'paper')
  }
  missing = [
      (number.row, number.column, number.metric)
      for number in published.load()
      if number.table == name and number not in found
  ]
  assert not missing


def test_corrections_differ_from_their_method_in_the_correction_only():
  rows, servers = {}, {}
  for planned in _plan('la_table2'):
    [run] = planned.runs
    hp = run.hyperparameters
    assert hp.client_optimizer == (
        'sgd' if planned.cell.column == 'server only' else 'adagrad'
    )
    rows.setdefault(planned.cell.row, []).append(hp.correction)
    servers.setdefault(planned.cell.row, set()).add(run.algorithm)
  assert set(map(tuple, rows.values())) == {
      ('none', 'none', 'local', 'global')
  }
  # The best of AFO's server optimizers on each task.
  assert servers == {
      'SO NWP': {'fedadam'},
      'Shakespeare NCP': {'fedadagrad'},
      'SO TP': {'fedadagrad'},
  }


@pytest.mark.parametrize('profile', ['quick', 'small', 'paper'])
def test_clients_count_tokens_where_the_published_code_does(profile):
  weights = {
      (run.task, run.hyperparameters.client_weighting)
      for name in papers.names('local_adaptivity')
      for planned in _plan(name, profile)
      for run in planned.runs
  }
  assert weights == {
      ('stackoverflow_word', 'tokens'),
      ('shakespeare', 'tokens'),
      ('stackoverflow_tag', 'examples'),
      ('cifar100', 'examples'),
  }


def test_client_only_has_a_server_that_averages():
  """Searched over client rates; server rate 1 is what the method is."""
  [cell] = [
      planned
      for planned in _plan('la_table1', 'paper')
      if planned.cell.key == ('', 'SO NWP', 'client-only AdaGrad')
  ]
  rates = [
      (
          round(math.log10(run.hyperparameters.client_learning_rate), 6),
          run.hyperparameters.server_learning_rate,
      )
      for run in cell.runs
  ]
  assert rates == [(-2 + k / 2, 1) for k in range(7)]
  assert {run.algorithm for run in cell.runs} == {'fedavg'}


def test_best_proposed_is_one_of_the_corrected():
  cells = {p.cell.column: p for p in _plan('la_table3')}
  corrections = [
      run.hyperparameters.correction
      for run in cells['best proposed'].runs
  ]
  assert corrections == ['local', 'global'] * 3


def test_synchronised_clients_start_from_the_servers_state():
  cells = {p.cell.key: p for p in _plan('la_sync')}
  [run] = cells['', 'Shakespeare NCP', 'client states synchronised'].runs
  assert run.hyperparameters.client_state == 'sync'
  ratio = cells['', 'communication', 'client states synchronised']
  [baseline] = ratio.baseline
  assert baseline.setting.hyperparameters['client_state'] == 'restart'


def test_printed_settings_are_those_of_the_cells():
  """Of runs with SGD at clients τ is AFO's; ε is of adaptive clients only."""
  table = papers.get('la_table1')
  planned = _plan('la_table1', 'paper')
  cells = tuple(
      results.CellResult(cell, cell.task_metric, 'not run') for cell in planned
  )
  options = plan_lib.Options(profile='paper')
  legend = text.legend(results.TableResult(table, options, cells))
  [line] = [line for line in legend if line.startswith('Adaptive steps')]
  assert 'τ of servers 0.0001, 0.001, 0.01, 0.1;' in line
  assert 'ε of clients 0.001; where theirs start 0.1' in line
  server_only = tuple(c for c in cells if 'server-only' in c.cell.column)
  [line] = [
      line
      for line in text.legend(
          results.TableResult(table, options, server_only)
      )
      if line.startswith('Adaptive steps')
  ]
  assert 'τ of servers 0.0001, 0.01, 0.1;' in line and 'clients' not in line
  for name in papers.names('local_adaptivity'):
    if name not in ('la_toy', 'la_theory'):
      assert '10^' not in ' '.join(papers.get(name).notes)
