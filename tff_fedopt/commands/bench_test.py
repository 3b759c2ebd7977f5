"""Ratios are taken within a turn, over processes started anew."""

import pandas as pd
import pytest

from tff_fedopt.bench import measure
from tff_fedopt.bench import variants
from tff_fedopt.commands import bench


class _Scripted:
  """Stands for a variant's process; a start takes the next figures."""

  figures_of_starts = {}
  running = []

  def __init__(self, comparison, name, folder):
    del comparison, folder
    self.name = name
    self._coming = iter(self.figures_of_starts[name].pop(0))
    self.figures = []
    self.start_up = None
    self.running.append(name)

  def wait(self):
    self.start_up = next(self._coming)

  def measure(self):
    self.figures.append(next(self._coming))

  def stop(self):
    self.running.remove(self.name)


def _make_up(monkeypatch, unit, names):
  made_up = variants.Comparison('', unit, dict.fromkeys(names))
  monkeypatch.setitem(variants.COMPARISONS, 'made_up', made_up)


def _script(monkeypatch, unit, **figures_of_starts):
  _make_up(monkeypatch, unit, figures_of_starts)
  monkeypatch.setattr(_Scripted, 'figures_of_starts', figures_of_starts)
  monkeypatch.setattr(_Scripted, 'running', [])
  monkeypatch.setattr(measure, '_Variant', _Scripted)


def test_the_median_is_over_the_ratios_of_all_turns_of_all_starts(monkeypatch):
  # The machine is four times slower in the second start.
  _script(
      monkeypatch,
      's',
      fast=[[9.0, 1.0, 2.0], [7.0, 4.0, 4.0]],
      keras=[[5.0, 3.0, 3.0], [6.0, 8.0, 20.0]],
  )
  ours, theirs = measure.compare('made_up', 2, 2).to_dict('records')
  assert (ours['variant'], ours['ratio_to_ours']) == ('fast', '1.000')
  assert (ours['median'], ours['start_up']) == ('3', '8.0 s')
  # 3, 1.5, 2 and 5.
  assert theirs['ratio_to_ours'] == '2.500'
  assert (theirs['ratio_min'], theirs['ratio_max']) == ('1.500', '5.000')
  assert (theirs['median'], theirs['turns'], theirs['starts']) == ('5.5', 2, 2)
  assert not _Scripted.running


def test_what_is_no_time_has_no_ratio(monkeypatch):
  _script(monkeypatch, 'MB', here=[[1.0, 0.0]], there=[[1.0, 5.0]])
  rows = measure.compare('made_up', turns=1, starts=1)
  assert list(rows['ratio_to_ours']) == ['nan', 'nan']
  assert list(rows['median']) == ['0', '5']


def test_real_variants_are_measured_saved_and_ended(
    tmp_path, capfd, processes, monkeypatch
):
  out = tmp_path / 'new' / 'bench.csv'
  processes.mark(monkeypatch)
  status = bench.main(
      ['lstm_step_256', '--turns=1', '--starts=1', f'--out={out}']
  )
  assert status == 0
  assert processes.running() == []
  rows = pd.read_csv(out)
  assert list(rows['variant']) == ['ours', 'keras']
  assert (rows['median'] > 0).all()
  assert 'lstm_step_256' in capfd.readouterr().out


@pytest.mark.parametrize(
    'argument, said',
    [
        ('no_such', "no comparison 'no_such'; there are emnist_round"),
        ('emnist_rond', 'did you mean emnist_round'),
        ('--turns=0', "--turns: '0'; expected a whole number, 1 or more"),
        ('--starts=0', "--starts: '0'; expected a whole number, 1 or more"),
        ('--turns=many', "--turns: 'many'; expected a whole number"),
    ],
)
def test_wrong_command_lines_are_one_line_and_nothing_is_written(
    tmp_path, monkeypatch, capsys, argument, said
):
  monkeypatch.chdir(tmp_path)
  assert bench.main([argument]) == 2
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 1 and said in lines[0]
  assert not list(tmp_path.iterdir())


def test_a_variant_that_ends_early_is_named(monkeypatch, tmp_path, capfd):
  monkeypatch.chdir(tmp_path)
  _make_up(monkeypatch, 's', ['gone'])
  assert bench.main(['made_up', '--turns=1', '--starts=1']) == 1
  last = capfd.readouterr().err.splitlines()[-1]
  assert last == 'bench: made_up: variant gone ended early'
  assert not list(tmp_path.iterdir())
