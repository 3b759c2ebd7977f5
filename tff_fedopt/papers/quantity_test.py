"""Cells that show something else than the task's metric, with numbers."""

import json
import math
import types

import pandas as pd
import pytest

from tff_fedopt.experiment import reductions
from tff_fedopt.papers import scales
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import reduce
from tff_fedopt.tables import reference
from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables import session
from tff_fedopt.tables import spec
from tff_fedopt.tables import stamp
from tff_fedopt.tables import store
from tff_fedopt.tables.report import markdown
from tff_fedopt.tables.report import plots

_EVERY = scales.in_every_profile


def _table(cells, **changes):
  return spec.TableSpec(**{
      'id': 'a_table',
      'title': 'A table',
      'paper': 'X',
      'citation': 'Nobody, Nothing',
      'shows': 'nothing',
      'kind': 'table',
      'form': 'code',
      'row_header': 'Row',
      'column_header': 'Column',
      'build': lambda profile, form: cells,
      'reduction': _EVERY(reductions.Last(1)),
      'seeds': _EVERY((0,)),
      'estimates': _EVERY('no time'),
      **changes,
  })


def _setting(rate):
  return spec.Setting(
      task='emnist_character',
      algorithm='fedavg',
      hyperparameters={'client_learning_rate': rate},
      source='guessed: here',
      rounds=4,
      cohort_size=2,
  )


# Accuracy by round for each rate.
_RUNS = {
    0.1: [0.1, 0.2, 0.4, 0.5],
    0.2: [0.3, 0.5, 0.5, 0.6],
    0.3: [0.1, 0.1, 0.1, 0.1],
}


def _result(run, folder, status='done'):
  folder = folder / str(hash(run))
  folder.mkdir(parents=True, exist_ok=True)
  provenance = {'data_kind': 'synthetic', 'bytes_up': 800, 'bytes_down': 400}
  (folder / 'provenance.json').write_text(json.dumps(provenance))
  values = _RUNS[run.hyperparameters.client_learning_rate]
  numbers = range(1, len(values) + 1)
  return types.SimpleNamespace(
      spec=run,
      status=status,
      error='',
      run_dir=folder,
      frame=pd.DataFrame({
          'round': numbers,
          'train/accuracy': values,
          'validation/accuracy': values,
          'spread': [0.5, 0.25, 0.125, 0.0625],
      }),
      timing=pd.DataFrame({
          'round': numbers,
          'round_time': [8.0, 1.0, 2.0, 3.0],
          'evaluation_time': [1.0] * 4,
      }),
  )


def _reduced(tmp_path, *cells, statuses=None, **changes):
  table, options = _table(cells, **changes), plan_lib.Options()
  planned = plan_lib.plan(table, options)
  results = {}
  for run in plan_lib.run_specs([planned]):
    rate = run.hyperparameters.client_learning_rate
    status = (statuses or {}).get(rate, 'done')
    results[run] = _result(run, tmp_path, status)
  return results_lib.reduce(table, options, planned, results)


def _number(tmp_path, rate, *, baseline=(), **quantity):
  cell = spec.Cell(
      'r',
      'c',
      [_setting(r) for r in (rate if isinstance(rate, tuple) else (rate,))],
      quantity=spec.Quantity('q', **quantity),
      baseline=[_setting(r) for r in baseline],
  )
  [result] = _reduced(tmp_path, cell).cells
  return result.mean


_TO_HALF = {
    'reduction': reductions.RoundsTo(0.5), 'higher_is_better': False
}
_SPEEDUP = {'reduction': reductions.RoundsTo(0.5), 'relation': 'speedup'}
_SECONDS = {
    'reduction': reductions.SecondsTo(0.5), 'higher_is_better': False
}


@pytest.mark.parametrize(
    'rate,baseline,quantity,expected',
    [
        (0.1, (), {}, 50.0),  # The task's own, in percent.
        (0.1, (), _TO_HALF, 4.0),
        (0.3, (), _TO_HALF, math.inf),
        (0.2, (), _SECONDS, 9.0),
        (0.3, (), _SECONDS, math.inf),
        (
            0.1,
            (),
            {'column': 'round_time', 'reduction': reductions.Median()},
            2.5,
        ),
        (
            0.1,
            (),
            {'column': reduce.WHOLE, 'reduction': reductions.Mean()},
            (9 + 2 + 3 + 4) / 4,  # Each evaluated, for a second.
        ),
        (0.1, (0.2,), {'relation': 'difference'}, -10.0),
        (0.1, (), {'column': 'bytes_up', 'scale': 0.001}, 0.8),
        (0.1, (), {'column': 'spread'}, 0.0625),
        (
            0.1,
            (),
            {
                'column': 'spread',
                'target_is_below': True,
                'reduction': reductions.RoundsTo(0.2),
                'higher_is_better': False,
            },
            3.0,
        ),
        (
            0.1,
            (),
            {'reduction': reductions.Best(), 'higher_is_better': False},
            10.0,
        ),
        (0.2, (0.1,), {'relation': 'ratio'}, 1.2),
        (0.2, (0.1,), {'relation': 'gain'}, 20.0),
        (0.2, (0.1,), _SPEEDUP, 2.0),
        (0.2, (0.3,), _SPEEDUP, math.inf),
        (0.3, (0.1,), _SPEEDUP, 0.0),
        (0.3, (0.3,), _SPEEDUP, math.nan),
        # The best of the baseline is 60.
        (0.1, (0.3, 0.2, 0.1), {'relation': 'ratio'}, 50 / 60),
        ((0.1, 0.2, 0.3), (), {'at_least': 50.0}, 2.0),
        ((0.1, 0.2, 0.3), (), {'at_least': 50.1}, 1.0),
    ],
)
def test_number(tmp_path, rate, baseline, quantity, expected):
  number = _number(tmp_path, rate, baseline=baseline, **quantity)
  assert number == pytest.approx(expected, nan_ok=True)


def test_a_diverged_candidate_does_not_count_and_a_failed_one_is_seen(tmp_path):
  cell = spec.Cell(
      'r',
      'c',
      [_setting(rate) for rate in _RUNS],
      quantity=spec.Quantity('pairs', at_least=50.0),
  )
  [result] = _reduced(tmp_path, cell, statuses={0.2: 'diverged'}).cells
  assert (result.status, result.values) == ('done', (1.0,))
  [result] = _reduced(tmp_path, cell, statuses={0.2: 'failed'}).cells
  assert (result.status, result.values) == ('failed', ())


def test_published_number_is_found_by_its_metric():
  def find(name, unit):
    quantity = name and spec.Quantity(name, unit)
    cell = spec.Cell('5%-200', 'FedAdam', [_setting(0.1)], quantity=quantity)
    return plan_lib.PlannedCell(cell).published('init_table7')

  assert find('time factor over FedAvg', 'x').value == 1.1
  assert find('wall clock per round', 's').value == 17.5
  assert find('shoe size', 's') is None
  # Without a metric the first one of the cell is meant, in its unit.
  with pytest.raises(ValueError, match='wall clock per round'):
    find(None, '')


def test_what_is_not_reached_is_never_and_curves_are_drawn(tmp_path):
  to_half = spec.Quantity('rounds to 50 %', 'rounds', decimals=0, **_TO_HALF)
  spread = spec.Quantity('spread', column='spread', logarithmic=True)
  cells = [
      spec.Cell('slow', f'rate {rate}', [_setting(rate)], quantity=quantity)
      if quantity is to_half
      else spec.Cell(
          'wide', f'rate {rate}', [_setting(rate)], quantity=quantity
      )
      for quantity in (to_half, spread)
      for rate in (0.2, 0.3)
  ]
  result = _reduced(
      tmp_path, *cells, kind='curves', bold_within=0.0, seeds=_EVERY((1, 2))
  )
  text = markdown.render(result)
  assert '| slow, rounds to 50 % (rounds) | **2 ± 0** ' in text
  assert '| ∞ ' in text
  assert 'rounds to 50 % (rounds): rounds_to:0.5.' in text
  assert 'spread: spread.' in text
  assert [len(cell.curves) for cell in result.cells] == [0, 0, 2, 2]
  assert {p.name for p in plots.draw(result, tmp_path)} == {
      'a_table_curves.png', 'a_table_curves.svg'
  }


def _half_life(seed, base, broken=False, lost=False):
  if broken:
    raise RuntimeError('it broke')
  value = math.nan if lost else base / 2 + seed
  return spec.Measured(value, ((1, 2), (base, base / 2)))


def _measured_cell(column, base, **arguments):
  return spec.Cell(
      'r',
      column,
      quantity=spec.Quantity('half', 'm'),
      measure=spec.Measure(
          _half_life, {'base': base, **arguments}, 'guessed: here'
      ),
  )


def _make(cells, folder, **options):
  table = _table(cells, kind='measured', seeds=_EVERY((0, 1)))
  chosen = plan_lib.Options()
  work = [(table, chosen, plan_lib.plan(table, chosen))]
  return session.make(work, out_dir=folder, **options)


def test_measured_table_from_the_command_to_the_files(tmp_path, capsys):
  cells = [_measured_cell('a', 5.0), _measured_cell('b', 7.0)]
  assert _make(cells, tmp_path) == 0
  text = capsys.readouterr().out
  assert '| r, half (m) | 3.0 ± 0.7 | 4.0 ± 0.7 |' in text
  assert 'Data: computed. Profile: quick. Seeds: 0, 1. Form: code.' in text
  assert 'not a reproduction' not in text
  assert (tmp_path / 'a_table_curves.png').exists()
  rows = store.read(tmp_path / 'a_table.csv')
  first, second = rows.to_dict('records')
  assert (first['ours_mean'], first['unit'], first['data']) == (
      '3', 'm', 'computed'
  )
  assert first['setting'] == 'base=5' and first[
      'setting_source'
  ] == 'guessed: here'
  assert first['spec_sha'] != second['spec_sha']
  # What is there is not computed again.
  times = lambda: [
      path.stat().st_mtime_ns for path in (tmp_path / 'measured').iterdir()
  ]
  before = times()
  assert len(before) == 4
  assert _make(cells, tmp_path, resume=True) == 0
  assert times() == before
  assert _make(cells, tmp_path) == 0
  assert min(times()) > max(before)


def test_measurement_that_fails_is_seen(tmp_path, capsys):
  cells = [_measured_cell('a', 5.0), _measured_cell('b', 7.0, broken=True)]
  assert _make(cells, tmp_path) == 1
  output = capsys.readouterr()
  assert 'failed' in output.out and 'it broke' in output.err
  assert _make([_measured_cell('a', 5.0, lost=True)], tmp_path / 'nan') == 0
  assert 'diverged' in capsys.readouterr().out


def test_stored_tolerances(tmp_path):
  seconds = spec.Quantity('time', 's', tolerance=math.inf)
  cells = [
      _measured_cell('a', 5.0),
      spec.Cell('r', 'b', [_setting(0.1)], quantity=seconds),
  ]
  table = _table(cells)
  empty = dict.fromkeys(store.FIELDS, '')
  shared = {**empty, 'table': 'a_table', 'row': 'r', 'ours_mean': '50'}
  stored = store.read(
      reference.store(
          table,
          'quick',
          None,
          pd.DataFrame([
              {**shared, 'column': 'a', 'unit': 'm', 'data': 'computed'},
              {**shared, 'column': 'b', 'unit': 's', 'data': 'synthetic'},
          ]),
          {},
          folder=tmp_path,
      )
  )
  assert list(stored['tolerance']) == ['0.05', 'inf']


@pytest.mark.parametrize(
    'arguments,message',
    [
        ({}, 'candidates or a measure'),
        (
            {
                'candidates': [_setting(0.1)],
                'measure': spec.Measure(_half_life, {}, 'guessed: here'),
            },
            'not both',
        ),
        (
            {'measure': spec.Measure(_half_life, {}, 'guessed: here')},
            'needs a quantity',
        ),
        (
            {
                'candidates': [_setting(0.1)],
                'quantity': spec.Quantity('q', relation='ratio'),
            },
            'baseline goes with a relation',
        ),
    ],
)
def test_impossible_cells_are_refused(arguments, message):
  with pytest.raises(ValueError, match=f'r / c: .*{message}'):
    spec.Cell('r', 'c', **arguments)


@pytest.mark.parametrize(
    'arguments',
    [
        {'relation': 'over'},
        {'reduction': reductions.RoundsTo(1)},
        {'reduction': 'median'},
    ],
)
def test_impossible_quantities_are_refused(arguments):
  message = "q: (relation 'over'|less time|reduction 'median'; expected)"
  with pytest.raises(ValueError, match=message):
    spec.Quantity('q', **arguments)


def test_record_names_column_rule_and_quantity(tmp_path):
  cell = spec.Cell(
      'r',
      'c',
      [_setting(0.1)],
      quantity=spec.Quantity(
          'round', 's', column='round_time', reduction=reductions.Median()
      ),
  )
  result = _reduced(tmp_path, cell)
  stamps = {
      c.cell.key: stamp.of(c.planned, 'last:1') for c in result.cells
  }
  [values] = store.rows(result, stamps).to_dict('records')
  expected = {
      'metric': 'round', 'split': '', 'reduction': 'median', 'unit': 's'
  }
  assert expected.items() <= values.items()
