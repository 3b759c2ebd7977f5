"""Stored references: written, merged, compared."""

import pytest

from tff_fedopt import papers
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import record
from tff_fedopt.tables import reference


def _record(column, value, **changes):
  record_ = {name: '' for name in record.FIELDS}
  record_.update(
      table='afo_main',
      row='SO LR',
      column=column,
      unit='%',
      status='done',
      ours_mean=value,
      spec_sha='a',
      **changes,
  )
  return record_


def _store(tmp_path, *records):
  table = papers.get('afo_main')
  return reference.store(table, 'quick', None, records, folder=tmp_path)


def test_stored_cells_are_replaced_others_kept(tmp_path):
  _store(tmp_path, _record('FedAdam', '60'), _record('FedAvg', '30'))
  path = _store(tmp_path, _record('FedAdam', '61'))
  stored = record.read(path)
  assert path == tmp_path / 'quick' / 'afo_main.csv'
  assert [(r['column'], r['ours_mean']) for r in stored] == [
      ('FedAdam', '61'),
      ('FedAvg', '30'),
  ]


def test_tolerance_is_stored_in_the_units_of_the_number(tmp_path):
  stored = record.read(_store(tmp_path, _record('FedAdam', '60')))
  assert float(stored[0]['tolerance']) == pytest.approx(
      reference.tolerance(60.0, '%')
  )


def test_a_diverged_cell_is_stored_without_a_number(tmp_path):
  diverged = {**_record('FedAdam', ''), 'status': 'diverged'}
  [stored] = record.read(_store(tmp_path, diverged))
  assert stored['status'] == 'diverged' and stored['tolerance'] == ''


@pytest.mark.parametrize('name', papers.names())
def test_stored_reference_is_of_todays_settings(name):
  """A change of a spec must come with numbers that were run again."""
  path = reference.path('quick', name)
  if not path.exists():
    pytest.skip(f'no stored quick numbers of {name}')
  planned = plan_lib.plan(papers.get(name), plan_lib.Options())
  today = {p.cell.key: p.spec_sha for p in planned}
  stale = [
      record.key(r)
      for r in record.read(path)
      if r['spec_sha'] != today.get(record.key(r))
  ]
  assert not stale
