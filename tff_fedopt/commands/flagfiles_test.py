"""A run of a table is the same run as a flagfile of train."""

from absl import flags
import pytest

from tff_fedopt import papers
from tff_fedopt.commands import run_flags
from tff_fedopt.commands import tables
from tff_fedopt.commands import train
from tff_fedopt.experiment import spec as spec_lib
from tff_fedopt.tables import plan as plan_lib


def _parsed(lines):
  values = flags.FlagValues()
  run_flags.define(values)
  run_flags.define_hyperparameters(values)
  assert values(['train', *lines]) == ['train']
  return run_flags.spec(values)


@pytest.mark.parametrize('form', [None, 'paper'])
@pytest.mark.parametrize('table', papers.names())
def test_every_run_of_every_table_survives_the_flags(table, form):
  spec = papers.get(table)
  options = plan_lib.Options(form=form if form in spec.forms else None)
  runs = plan_lib.run_specs([plan_lib.plan(spec, options)])
  for run in runs:
    assert _parsed(run_flags.lines(run)) == run


def test_what_no_table_uses_survives_too(tmp_path):
  run = spec_lib.RunSpec(
      task='cifar10',
      algorithm='fedvra',
      hyperparameters={
          'max_gradient_norm': 1 / 3,
          'per_client': '{"gamma": {"a \\"b\\"": 0.2}, "weight": {"7": 2}}',
          'local_steps': 'random:1:3',
          'track_consistency': True,
          'client_learning_rate_schedule': 'exponential:0.998:1',
      },
      rounds=7,
      cohort_size=3,
      batch_size=5,
      local_epochs=2,
      seed=11,
      profile='small',
      data_dir=str(tmp_path / 'a folder'),
      task_options={'alpha': 0.3, 'partition': 'iid', 'pooled': False},
      evaluate_every=2,
      validation_examples=9,
      validation_seed=4,
      cohorts='bernoulli',
      participation='{"client 1": 2.5, "client = 2": 1}',
  )
  assert _parsed(run_flags.lines(run)) == run


def _print(capsys, *arguments):
  assert tables.main(['--dry_run', *arguments]) == 0
  return capsys.readouterr().out


def test_printed_and_written_flagfiles_are_the_planned_runs(tmp_path, capsys):
  arguments = ['vra_compare', 'la_toy', '--seeds=0,5', '--rounds=3']
  planned = plan_lib.plan(
      papers.get('vra_compare'), plan_lib.Options(rounds=3, seeds=(0, 5))
  )
  runs = [run for cell in planned for run in cell.runs]
  texts = _print(capsys, *arguments).split('\n\n')
  titles = [text.splitlines()[0] for text in texts]
  assert len(set(titles)) == len(titles)
  toy = [t for t in titles if t.startswith('# la_toy: ')]
  assert all(' seed ' in title for title in titles)
  assert toy and all('computed without training' in title for title in toy)
  trained = [t for t in texts if not t.startswith('# la_toy: ')]
  assert [_parsed(t.splitlines()[1:]) for t in trained] == runs

  folder = tmp_path / 'flags'
  paths = _print(capsys, *arguments, f'--out_dir={folder}').splitlines()
  assert len(set(paths)) == len(paths) == len(runs)
  assert sorted(map(str, folder.iterdir())) == sorted(paths)
  assert [_parsed([f'--flagfile={path}']) for path in paths] == runs


@pytest.mark.parametrize('table', papers.names())
def test_every_run_has_a_file_of_its_own(table, tmp_path, capsys):
  paths = _print(capsys, table, f'--out_dir={tmp_path}').splitlines()
  assert len(set(paths)) == len(paths) == len(list(tmp_path.iterdir()))
  cells = plan_lib.plan(papers.get(table), plan_lib.Options())
  assert len(paths) == sum(len(cell.runs) for cell in cells)


def test_train_makes_the_number_of_the_cell(tmp_path, capsys):
  chosen = ['afo_main', '--rows=SO LR', '--columns=FedAdam', '--rounds=2']
  (path,) = _print(capsys, *chosen, f'--out_dir={tmp_path}').splitlines()
  assert tables.main([*chosen, f'--out_dir={tmp_path / "tables"}']) == 0
  assert train.main(
      [f'--flagfile={path}', f'--run_dir={tmp_path / "run"}', '--notensorboard']
  ) == 0
  (theirs,) = tmp_path.glob('tables/runs/*/metrics.csv')
  ours = tmp_path / 'run' / 'metrics.csv'
  # A run of its own also measures on the test data.
  columns = theirs.read_text().splitlines()[0].split(',')
  rows = [
      [line.split(',') for line in p.read_text().splitlines()]
      for p in (ours, theirs)
  ]
  kept = [i for i, c in enumerate(columns) if not c.startswith('test/')]
  assert columns == rows[0][0]
  assert any(c.startswith('validation/') for c in columns)
  ours, theirs = ([[row[i] for i in kept] for row in part] for part in rows)
  assert len(ours) == 3 and ours == theirs
