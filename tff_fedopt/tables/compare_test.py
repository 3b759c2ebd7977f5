"""Verdicts of numbers."""

import pandas as pd
import pytest

from tff_fedopt.tables import compare


@pytest.mark.parametrize(
    'status,ours,ours_std,paper,paper_std,comparable,expected',
    [
        ('done', 50.4, None, 50.0, None, True, 'match'),
        ('done', 50.6, None, 50.0, None, True, 'differs'),
        ('done', 50.6, 0.7, 50.0, None, True, 'match'),
        ('done', 50.6, 0.1, 50.0, 0.6, True, 'match'),
        ('done', 49.4, None, 50.0, None, True, 'differs'),
        ('done', 50.0, None, 50.0, None, False, 'not compared'),
        ('done', 50.0, None, None, None, True, 'not compared'),
        ('done', float('nan'), None, 50.0, None, True, 'not run'),
        ('done', float('inf'), None, 50.0, None, True, 'differs'),
        ('not run', None, None, 50.0, None, True, 'not run'),
        ('failed', None, None, 50.0, None, True, 'failed'),
        ('diverged', None, None, 50.0, None, False, 'diverged'),
        ('diverged', None, None, 50.0, None, True, 'differs'),
    ],
)
def test_verdict(
    status, ours, ours_std, paper, paper_std, comparable, expected
):
  assert (
      compare.verdict(status, ours, ours_std, paper, paper_std, comparable)
      == expected
  )


def _record(**changes):
  return {
      'table': 'afo_main',
      'panel': '',
      'row': 'SO LR',
      'column': 'FedAvg',
      'unit': 'x100',
      'status': 'done',
      'ours_mean': '30.0',
      'tolerance': '0.5',
      'engine': 'local',
      **changes,
  }


def _differences(stored, ours, stale=None):
  return compare.against_reference(
      pd.DataFrame(stored), pd.DataFrame(ours), stale or {}
  )


@pytest.mark.parametrize(
    'changes,word',
    [
        ({'ours_mean': '30.49'}, None),
        ({'ours_mean': '29.49'}, '29.49 x100, stored 30 ± 0.5'),
        (
            {'ours_mean': '29.4', 'engine': 'worker'},
            'stored 30 ± 0.5 (on the engine local, now worker)',
        ),
        ({'ours_mean': 'nan'}, 'nan'),
        ({'status': 'diverged', 'ours_mean': ''}, 'diverged, stored done'),
        ({'column': 'FedAdam'}, 'no stored number'),
    ],
)
def test_against_reference(changes, word):
  lines = _differences([_record()], [_record(**changes)])
  if word is None:
    assert not lines
  else:
    [line] = lines
    assert word in line and '\n' not in line


def test_stale_rows_say_what_has_changed():
  stale = {('', 'SO LR', 'FedAvg'): ['stored with weight_decay 0, now 0.01']}
  [line] = _differences([_record()], [_record()], stale)
  assert line.startswith(
      'afo_main / SO LR / FedAvg: stale: stored with weight_decay 0, now 0.01;'
  )


def test_target_reached_neither_now_nor_then():
  stored = _record(ours_mean='inf', tolerance='inf')
  assert not _differences([stored], [_record(ours_mean='inf')])
  stored = _record(ours_mean='inf', tolerance='0.5')
  assert _differences([stored], [_record()])


def test_reference_may_have_more_cells():
  stored = [_record(), _record(column='FedAdam')]
  assert not _differences(stored, [_record()])


@pytest.mark.parametrize(
    'changes,same',
    [
        ({}, True),
        ({'ours_mean': '30.00001'}, True),
        ({'ours_mean': '30.0001'}, False),
        ({'ours_mean': '30.4', 'engine': 'worker'}, True),
        ({'ours_mean': '30.6', 'engine': 'worker'}, False),
        ({'ours_mean': 'inf'}, False),
        ({'status': 'diverged'}, False),
        ({'ours_mean': ''}, False),
    ],
)
def test_same_numbers(changes, same):
  assert compare.same_numbers(_record(), _record(**changes)) == same
