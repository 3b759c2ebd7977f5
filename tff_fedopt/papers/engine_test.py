"""The engine, fed with made-up runs: planning, reducing, rendering."""

import dataclasses
import json
import types

import pandas as pd
import pytest

import tasks
from tff_fedopt import papers
from tff_fedopt.papers import claims
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables import session
from tff_fedopt.tables import stamp
from tff_fedopt.tables import store
from tff_fedopt.tables.report import latex
from tff_fedopt.tables.report import markdown
from tff_fedopt.tables.report import plots
from tff_fedopt.tables.report import text as text_lib


def _result(run, folder, value, train=None, status='done', data='synthetic'):
  """A run whose validation metric rises to `value` (in the metric's unit)."""
  name = tasks.info(run.task).metric.name
  scale = tasks.info(run.task).metric.scale
  folder = folder / str(hash(run))
  folder.mkdir(parents=True, exist_ok=True)
  provenance = {'data_kind': data, 'cores': 2}
  (folder / 'provenance.json').write_text(json.dumps(provenance))
  rounds = range(1, run.rounds + 1)
  values = [value / scale] * run.rounds
  values[0] = 0.0
  frame = pd.DataFrame({
      'round': list(rounds),
      f'train/{name}': [(value if train is None else train) / scale]
      * run.rounds,
      f'validation/{name}': values,
  })
  return types.SimpleNamespace(
      spec=run, status=status, frame=frame, run_dir=folder
  )


def _reduced(table, tmp_path, value_of, **options):
  """The table whose runs were made up by `value_of(run) -> keywords`."""
  options = plan_lib.Options(**options)
  planned = plan_lib.plan(table, options)
  results = {
      run: _result(run, tmp_path, **value_of(run))
      for run in plan_lib.run_specs([planned])
  }
  return results_lib.reduce(table, options, planned, results)


def _rows(result):
  """The table as rows."""
  return store.rows(
      result,
      {c.cell.key: stamp.of(c.planned, 'last:8') for c in result.cells},
  )


# Values in percent of the row CIFAR-10, by algorithm.
_VALUES = {
    'fedadagrad': 70.0,
    'fedadam': 79.7,
    'fedyogi': 80.0,
    'fedavgm': 79.5,
    'fedavg': 60.0,
    'scaffold': 50.0,
}


def _main(tmp_path, **options):
  return _reduced(
      papers.get('afo_main'),
      tmp_path,
      lambda run: {'value': _VALUES[run.algorithm]},
      rows=['CIFAR-10'],
      **options,
  )


def test_main_has_42_cells():
  planned = plan_lib.plan(papers.get('afo_main'), plan_lib.Options())
  assert len(planned) == 42
  assert len(plan_lib.run_specs([planned])) == 42


@pytest.mark.parametrize('profile', ['quick', 'small', 'paper'])
@pytest.mark.parametrize('name', papers.names())
def test_every_table_can_be_planned(name, profile):
  """Every algorithm accepts every hyperparameter that a spec gives it."""
  table = papers.get(name)
  for form in ('code', 'paper'):
    options = plan_lib.Options(profile=profile, form=form)
    if form in table.forms:
      assert plan_lib.plan(table, options)
    else:
      with pytest.raises(ValueError, match=f'{name}: there is no form'):
        plan_lib.plan(table, options)


def test_reduction_takes_the_last_rounds_only(tmp_path):
  result = _main(tmp_path, columns=['FedAvg'])
  assert result.cells[0].mean == pytest.approx(60.0)


def test_seeds_give_mean_and_deviation(tmp_path):
  result = _reduced(
      papers.get('afo_main'),
      tmp_path,
      lambda run: {'value': {3: 50.0, 4: 52.0, 5: 57.0}[run.seed]},
      rows=['CIFAR-10'],
      columns=['FedAvg'],
      seeds=[3, 4, 5],
  )
  [cell] = result.cells
  assert cell.mean == pytest.approx(53.0)
  # Sample deviation: sqrt((9 + 1 + 16) / 2).
  assert cell.std == pytest.approx(3.605551)
  assert text_lib.ours(cell) == '53.0 ± 3.6'


def test_bold_is_within_half_a_percent_of_the_best(tmp_path):
  # 0.5 % of 80 is 0.4: 79.7 is bold, 79.5 is not.
  bold = {key[2] for key in text_lib.bold_keys(_main(tmp_path))}
  assert bold == {'FedYogi', 'FedAdam'}


def test_bold_where_lower_is_better(tmp_path):
  result = _reduced(
      papers.get('afo_main'),
      tmp_path,
      lambda run: {'value': 100 - _VALUES[run.algorithm]},
      rows=['EMNIST AE'],
  )
  assert {key[2] for key in text_lib.bold_keys(result)} == {'FedYogi'}


def test_synthetic_numbers_get_no_verdict_and_no_difference(tmp_path):
  text = markdown.render(_main(tmp_path))
  assert '**80.0**' in text and '78.0' in text
  assert 'Data: synthetic. Profile: quick.' in text
  assert 'match' not in text and 'differs' not in text
  assert '+2.0' not in text  # 80.0 − 78.0
  # What stands between, beside each number.
  rows = [line for line in text.splitlines() if 'not comparable: ' in line]
  assert len(rows) == 5
  assert all('synthetic data; rounds 25 of 4000; ' in row for row in rows)
  assert all('client rate, server rate' in row for row in rows)


@pytest.mark.parametrize(
    'row,value,profile,data,changes,verdict',
    [
        ('SO LR', 66.2, 'paper', 'canonical', {}, 'match'),
        ('SO LR', 67.9, 'paper', 'canonical', {}, 'differs'),
        ('SO LR', 66.2, 'paper', 'subset', {}, 'not compared'),
        ('SO LR', 66.2, 'small', 'canonical', {}, 'not compared'),
        ('SO LR', 66.2, 'paper', 'canonical', {'rounds': 400}, 'not compared'),
        ('SO LR', 66.2, 'paper', 'canonical', {'seeds': (4,)}, 'not compared'),
        (
            'SO LR',
            66.2,
            'paper',
            'canonical',
            {'form': 'paper'},
            'not compared',
        ),
        # Its rates are a third party's.
        ('CIFAR-10', 78.3, 'paper', 'canonical', {}, 'not compared'),
    ],
)
def test_verdict_only_for_the_published_setting(
    tmp_path, row, value, profile, data, changes, verdict
):
  result = _reduced(
      papers.get('afo_main'),
      tmp_path,
      lambda run: {'value': value, 'data': data},
      rows=[row],
      columns=['FedYogi'],
      profile=profile,
      **changes,
  )
  assert result.cells[0].verdict == verdict
  text = markdown.render(result)
  assert ('+2.0' if verdict == 'differs' else '+0.3') in text
  assert ('not comparable: ' in text) == (verdict == 'not compared')


def test_missing_runs_are_not_run_and_never_agree(tmp_path):
  table = papers.get('afo_main')
  options = plan_lib.Options(profile='paper', rows=['CIFAR-10'])
  result = results_lib.reduce(table, options, plan_lib.plan(table, options), {})
  assert {cell.verdict for cell in result.cells} == {'not run'}
  assert 'not run' in markdown.render(result)
  assert plots.draw(result, tmp_path) == []


def test_diverged_and_failed_are_shown_as_such(tmp_path):
  status = {'fedavg': 'diverged', 'fedavgm': 'failed'}
  result = _reduced(
      papers.get('afo_main'),
      tmp_path,
      lambda run: {'value': 50.0, 'status': status.get(run.algorithm, 'done')},
      rows=['CIFAR-10'],
  )
  by_column = {cell.cell.column: cell for cell in result.cells}
  assert by_column['FedAvg'].status == 'diverged'
  assert by_column['FedAvg'].mean is None
  assert '| diverged' in markdown.render(result)
  assert by_column['FedAvgM'].status == 'failed'
  assert _rows(result)['ours_mean'][4] == ''


def test_candidate_is_chosen_by_the_training_metric(tmp_path):
  # The second rate trains best; the third would validate best.
  table = papers.get('afo_lr_decay')
  rates = sorted(
      run.hyperparameters.client_learning_rate
      for run in plan_lib.run_specs([
          plan_lib.plan(
              table,
              plan_lib.Options(rows=['Centralized'], columns=['FedAvg']),
          )
      ])
  )
  numbers = {rates[0]: (10, 50), rates[1]: (40, 60), rates[2]: (20, 70)}

  def value_of(run):
    train, value = numbers[run.hyperparameters.client_learning_rate]
    return {'train': train, 'value': value}

  result = _reduced(
      table, tmp_path, value_of, rows=['Centralized'], columns=['FedAvg']
  )
  [cell] = result.cells
  assert cell.mean == pytest.approx(60.0)
  chosen = cell.setting.hyperparameters['client_learning_rate']
  assert chosen == rates[1]


def test_spec_sha_changes_with_settings_and_candidates():
  table = papers.get('afo_main')
  one = dict(rows=['SO LR'], columns=['FedAvg'])
  [a], [b], [c] = (
      plan_lib.plan(table, plan_lib.Options(**one, **more))
      for more in ({}, {}, {'rounds': 7})
  )
  more = dataclasses.replace(a, candidates=a.candidates + c.candidates)
  a, b, c, more = (stamp.of(cell, 'last:8') for cell in (a, b, c, more))
  assert a.spec_sha == b.spec_sha
  assert stamp.differences(a, c) == ['stored with rounds 40, now 7']
  assert stamp.differences(a, more) == ['candidates: 1 stored, 2 now']
  assert len({s.spec_sha for s in (a, c, more)}) == 3


def test_records_survive_a_round_trip(tmp_path):
  rows = _rows(_main(tmp_path))
  store.write(tmp_path / 'table.csv', rows)
  assert store.read(tmp_path / 'table.csv').equals(rows)
  first = rows.iloc[0]
  assert first['ours_mean'] == '70' and first['paper_value'] == '72.1'
  assert first['data'] == 'synthetic' and first['cores'] == '2'


def test_merge_replaces_cells_and_drops_old_ones():
  def row(column, value):
    return {'panel': '', 'row': 'r', 'column': column, 'ours_mean': value}

  merged = store.merge(
      pd.DataFrame([row('a', '1'), row('b', '2'), row('gone', '3')]),
      pd.DataFrame([row('b', '5')]),
      [('', 'r', 'b'), ('', 'r', 'a'), ('', 'r', 'c')],
  )
  assert list(merged['column']) == ['b', 'a']
  assert list(merged['ours_mean']) == ['5', '1']


def test_unknown_row_is_refused_by_name():
  with pytest.raises(ValueError, match="unknown row 'MNIST'; one of .*SO LR"):
    plan_lib.plan(papers.get('afo_main'), plan_lib.Options(rows=['MNIST']))


def test_latex_escapes(tmp_path):
  text = latex.render(_main(tmp_path))
  assert '\\textbf{80.0}' in text
  for line in text.splitlines()[1:]:
    assert '%' not in line.replace('\\%', ''), line


def test_rounds_to_target_is_the_last_columns_final_number(tmp_path):
  cells = _main(tmp_path).cells
  # FedAvg ends at 60; in the made-up runs all jump there in round 2.
  assert plots.rounds_to_target(cells)['FedAvg'] == 2.0


@pytest.mark.parametrize('name,rows,files', [
    ('afo_main', ['CIFAR-10', 'SO LR'], ['curves', 'target']),
    ('afo_lr_grid', [], ['heatmap']),
    ('afo_tau', [], ['sensitivity']),
])
def test_make_writes_every_output(tmp_path, capsys, name, rows, files):
  table = papers.get(name)
  options = plan_lib.Options(rows=rows)
  planned = plan_lib.plan(table, options)

  def run_all(specs, out_dir, jobs, resume):
    return [_result(run, out_dir, 50.0) for run in specs]

  code = session.make(
      [(table, options, planned)], out_dir=tmp_path, run_all=run_all
  )
  assert code == 0
  assert table.title in capsys.readouterr().out
  written = {p.name for p in tmp_path.iterdir() if p.is_file()}
  assert written == {f'{name}.{s}' for s in ('md', 'csv', 'tex')} | {
      f'{name}_{f}.{s}' for f in files for s in ('png', 'svg')
  }


def test_claims_that_a_table_decides_stand_below_it(tmp_path, capsys):
  table = papers.get('afo_main')
  options = plan_lib.Options(rows=['SO LR'])
  planned = plan_lib.plan(table, options)

  def run_all(specs, out_dir, jobs, resume):
    values = {'fedadagrad': 90.0}
    return [_result(r, out_dir, values.get(r.algorithm, 20.0)) for r in specs]

  code = session.make(
      [(table, options, planned)],
      out_dir=tmp_path,
      run_all=run_all,
      judge=claims.of_tables,
  )
  assert code == 0
  printed = capsys.readouterr().out
  text = (tmp_path / 'afo_main.md').read_text()
  tex = (tmp_path / 'afo_main.tex').read_text()
  [line] = [one for one in text.splitlines() if one.startswith('- afo-04:')]
  assert line.endswith('| reproduced')
  assert line in printed
  assert 'more: not run' in text
  assert '\\label{tab:afo_main}' in tex and 'afo-04: ' in tex
  assert printed.splitlines()[-1].split(':')[0].endswith('of 1 paper')
  # Whoever runs another number of rounds is told nothing of the claims.
  short = plan_lib.Options(rows=['SO LR'], rounds=3)
  session.make(
      [(table, short, plan_lib.plan(table, short))],
      out_dir=tmp_path,
      run_all=run_all,
      judge=claims.of_tables,
  )
  assert 'Claims' not in (tmp_path / 'afo_main.md').read_text()


def test_a_failed_run_is_exit_code_1(tmp_path):
  table = papers.get('afo_main')
  options = plan_lib.Options(rows=['CIFAR-10'])
  planned = plan_lib.plan(table, options)

  def run_all(specs, out_dir, jobs, resume):
    failed = {'fedavg': 'failed'}
    return [
        _result(r, out_dir, 50.0, status=failed.get(r.algorithm, 'done'))
        for r in specs
    ]

  work = [(table, options, planned)]
  assert session.make(work, out_dir=tmp_path, run_all=run_all) == 1
