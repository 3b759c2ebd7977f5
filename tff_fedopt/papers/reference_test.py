"""Stored references: written, merged, compared."""

import dataclasses

import pandas as pd
import pytest

from tff_fedopt import papers
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import reference
from tff_fedopt.tables import stamp
from tff_fedopt.tables import store


def _record(column, value, **changes):
  record_ = {name: '' for name in store.FIELDS}
  record_.update(
      table='afo_main',
      row='SO LR',
      column=column,
      unit='%',
      status='done',
      ours_mean=value,
      **changes,
  )
  return record_


def _store(tmp_path, *records):
  table = papers.get('afo_main')
  return reference.store(
      table, 'quick', None, pd.DataFrame(records), {}, folder=tmp_path
  )


def test_stored_cells_are_replaced_others_kept(tmp_path):
  _store(tmp_path, _record('FedAdam', '60'), _record('FedAvg', '30'))
  path = _store(tmp_path, _record('FedAdam', '61'))
  stored = store.read(path)
  assert path == tmp_path / 'quick' / 'afo_main.csv'
  assert list(stored['column']) == ['FedAdam', 'FedAvg']
  assert list(stored['ours_mean']) == ['61', '30']


def test_tolerance_is_stored_in_the_units_of_the_number(tmp_path):
  stored = store.read(_store(tmp_path, _record('FedAdam', '60')))
  assert float(stored['tolerance'][0]) == pytest.approx(
      reference.tolerance(60.0, '%')
  )


def test_a_diverged_cell_is_stored_without_a_number(tmp_path):
  diverged = {**_record('FedAdam', ''), 'status': 'diverged'}
  [stored] = store.read(_store(tmp_path, diverged)).to_dict('records')
  assert stored['status'] == 'diverged' and stored['tolerance'] == ''


def _stamped(*columns, **options):
  """Stamps of cells of the row SO LR, as of today."""
  table = papers.get('afo_main')
  planned = plan_lib.plan(
      table, plan_lib.Options(rows=['SO LR'], columns=columns, **options)
  )
  return {p.cell.key: stamp.of(p, table.reduction['quick']) for p in planned}


def _store_stamped(tmp_path, stamps, values):
  rows = [
      _record(
          column,
          values[column],
          spec_sha=stamps['', 'SO LR', column].spec_sha,
          task_sha=stamps['', 'SO LR', column].task_sha,
      )
      for column in values
  ]
  table = papers.get('afo_main')
  reference.store(
      table, 'quick', None, pd.DataFrame(rows), stamps, folder=tmp_path
  )
  return pd.DataFrame(rows)


def test_stamps_come_back_from_the_file(tmp_path):
  stamps = _stamped('FedAdam', 'FedAvg')
  _store_stamped(tmp_path, stamps, {'FedAdam': '60', 'FedAvg': '30'})
  found = reference.stored_stamps('quick', 'afo_main', tmp_path)
  assert found == stamps
  assert not reference.stale('quick', 'afo_main', stamps, tmp_path)


def test_stale_rows_say_what_has_changed(tmp_path):
  stamps = _stamped('FedAdam', 'FedAvg')
  _store_stamped(tmp_path, stamps, {'FedAdam': '60', 'FedAvg': '30'})
  key, other = ('', 'SO LR', 'FedAdam'), ('', 'SO LR', 'FedAvg')
  longer = _stamped('FedAdam', rounds=7)
  code = {**stamps[other].task_code, 'tasks/pipeline.py': 'new'}
  today = {
      **longer, other: dataclasses.replace(stamps[other], task_code=code)
  }
  assert reference.stale('quick', 'afo_main', today, tmp_path) == {
      key: ['stored with rounds 40, now 7'],
      other: ['code of tasks/pipeline.py has changed'],
  }
  # Nobody knows what a row belongs to whose stamp is not beside it.
  (tmp_path / 'quick' / 'afo_main.json').unlink()
  lines = reference.stale('quick', 'afo_main', stamps, tmp_path)
  assert lines[key] == ['what its settings were is not stored']


def test_restamp_marks_rows_of_the_same_numbers(tmp_path):
  stamps = _stamped('FedAdam', 'FedAvg', 'FedYogi')
  key = ('', 'SO LR', 'FedAdam')
  old = {
      k: dataclasses.replace(s, task_code={**s.task_code, 'tasks/task.py': '0'})
      for k, s in stamps.items()
  }
  yogi = ('', 'SO LR', 'FedYogi')
  rule = {**old[yogi].rule, 'seeds': '9'}
  old[yogi] = dataclasses.replace(old[yogi], rule=rule)
  rows = _store_stamped(
      tmp_path, old, {'FedAdam': '60', 'FedAvg': '30', 'FedYogi': '50'}
  )
  table = papers.get('afo_main')
  again = rows[rows['column'] == 'FedAdam']
  other = again.assign(ours_mean='60.1')
  before = (tmp_path / 'quick' / 'afo_main.csv').read_bytes()
  restamp = lambda r: reference.restamp(table, 'quick', r, stamps, tmp_path)
  assert restamp(other) == ['afo_main / SO LR / FedAdam: 60.1, stored 60']
  assert (tmp_path / 'quick' / 'afo_main.csv').read_bytes() == before
  assert restamp(again) == [
      'afo_main / SO LR / FedYogi: stale: stored with seeds 9, now 0'
  ]
  stale = reference.stale('quick', 'afo_main', stamps, tmp_path)
  assert set(stale) == {yogi} and key not in stale
  stored = store.read(tmp_path / 'quick' / 'afo_main.csv')
  assert sorted(stored['ours_mean']) == ['30', '50', '60']


@pytest.mark.parametrize('name', papers.names())
def test_stored_reference_is_of_today(name):
  """A change must come with numbers that were run again, or --restamp."""
  if not reference.path('quick', name).exists():
    pytest.skip(f'no stored quick numbers of {name}')
  table = papers.get(name)
  planned = plan_lib.plan(table, plan_lib.Options())
  today = {p.cell.key: stamp.of(p, table.reduction['quick']) for p in planned}
  # Rows of which nobody knows what they belong to say so in the check.
  known = reference.stored_stamps('quick', name)
  stale = reference.stale('quick', name, today)
  assert not {key: what for key, what in stale.items() if key in known}
  rows = store.read(reference.path('quick', name))
  assert set(store.keys(rows)) <= set(today)
