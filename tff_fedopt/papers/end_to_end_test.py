"""Tables from the plan to the files: real tasks, real runs cut short."""

import math

import pytest

from tff_fedopt import papers
from tff_fedopt.experiment import sweep
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import session
from tff_fedopt.tables import store


@pytest.mark.parametrize(
    'name, rows, columns, cells, figures',
    [
        ('afo_test', ['SO LR'], ['FedAvg'], 1, set()),
        (
            'afo_rate_relation',
            ['SO LR, best server rate', 'SO LR, FedAvg'],
            ['1'],
            9,
            {'heatmap', 'relation'},
        ),
        ('afo_curves', ['SO LR'], ['FedAvg', 'FedAdam'], 6, {'curves'}),
        ('afo_schedules', ['FedAvg'], ['InvSqrt'], 1, set()),
        ('vra_sampling', ['unequal'], ['FedVRA, d = 1/p'], 3, set()),
    ],
)
def test_a_table_is_made(
    tmp_path, capsys, name, rows, columns, cells, figures
):
  table = papers.get(name)
  options = plan_lib.Options(rows=rows, columns=columns, rounds=2)
  planned = plan_lib.plan(table, options)
  code = session.make(
      [(table, options, planned)], out_dir=tmp_path, run_all=_run_all
  )
  assert code == 0
  assert table.title in capsys.readouterr().out
  found = store.read(tmp_path / f'{name}.csv')
  assert len(found) == len(planned) == cells
  assert set(found['status']) == {'done'}
  # After so few rounds no target is reached.
  levels = found[found['panel'] != 'Speed-up']
  numbers = [float(number) for number in levels['ours_mean']]
  assert not any(map(math.isnan, numbers))
  written = {path.name for path in tmp_path.glob('*.png')}
  assert written == {f'{name}_{figure}.png' for figure in figures}


def _run_all(specs, out_dir, jobs, resume):
  return sweep.run_all(specs, out_dir, jobs=jobs, resume=resume)
