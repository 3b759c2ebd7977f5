"""Every setting of every cell says where it is from; what follows from it."""

import dataclasses
import itertools
import math

import pytest

import tasks
from tasks import source
from tasks import task as task_lib
from tff_fedopt import algorithms
from tff_fedopt import papers
from tff_fedopt.experiment import spec
from tff_fedopt.tables import origin
from tff_fedopt.tables import plan as plan_lib

# In the paper profile these have hundreds of candidates of one kind.
_MOST = 3


def _cells(name, profile, form):
  """The cells of a table, of many candidates the first ones."""
  table = papers.get(name)
  options = plan_lib.Options(profile=profile, form=form)
  for cell in table.cells(profile, form):
    few = dataclasses.replace(
        cell,
        candidates=cell.candidates[:_MOST],
        baseline=cell.baseline[:_MOST],
    )
    yield plan_lib.planned(few, options, table.seeds[profile])


@pytest.mark.parametrize('profile', task_lib.PROFILES)
@pytest.mark.parametrize('name', papers.names())
def test_no_setting_is_without_a_source(name, profile):
  table = papers.get(name)
  for form in table.forms:
    for cell in _cells(name, profile, form):
      for settings in origin.of_cell(table, profile, cell):
        lacking = [n for n, one in settings.items() if one.source is None]
        assert not lacking, (cell.cell.key, lacking)


@pytest.mark.parametrize('profile', task_lib.PROFILES)
@pytest.mark.parametrize('name', papers.names())
def test_nothing_given_has_but_the_source_of_all(name, profile):
  """In tables of the papers each given value is named with its own source."""
  table = papers.get(name)
  for form in table.forms:
    for cell in _cells(name, profile, form):
      for candidate in (*cell.candidates, *cell.baseline):
        setting = candidate.setting
        given = {
            *setting.hyperparameters,
            *(f'task option {option}' for option in setting.task_options),
            *(n for n in origin.OF_TASK if getattr(setting, n) is not None),
        }
        assert not given - set(setting.sources), cell.cell.key


@pytest.mark.parametrize('name', papers.names())
def test_sources_name_settings_that_there_are(name):
  """What is said of no setting is a slip of the pen."""
  known = {
      *(field.name for field in dataclasses.fields(spec.RunSpec)),
      *(
          field.name
          for algorithm in algorithms.names()
          for field in dataclasses.fields(algorithms.hyperparameters(algorithm))
      ),
      *(
          f'task option {option}'
          for task in tasks.PUBLISHED
          for option in tasks.info(task).options
      ),
  }
  for cell in _cells(name, 'paper', None):
    for candidate in (*cell.candidates, *cell.baseline):
      assert set(candidate.setting.sources) <= known, cell.cell.key


def _one(name, row, column, panel='', **options):
  table = papers.get(name)
  options = plan_lib.Options(**options)
  [cell] = [
      cell
      for cell in plan_lib.plan(table, options)
      if cell.cell.key == (panel, row, column)
  ]
  return table, options, cell


def _between(*args, kind='canonical', **options):
  table, options, cell = _one(*args, **options)
  return '; '.join(origin.Comparison(table, options).obstacles(cell, kind))


def test_a_cell_of_the_authors_settings_is_comparable():
  cell = ('afo_main', 'SO LR', 'FedAdam')
  assert not _between(*cell, profile='paper')
  # Other rows that are left out change nothing.
  assert not _between(*cell, profile='paper', rows=['SO LR'])


@pytest.mark.parametrize(
    'changes, expected',
    [
        (dict(rounds=40), 'rounds 40 of 1500'),
        (dict(seeds=(7,)), 'seeds 7 of 1'),
        (dict(kind='synthetic'), 'synthetic data'),
        (dict(kind='subset'), 'subset of the data'),
        (dict(form='paper'), 'form paper for code'),
    ],
)
def test_whatever_is_overridden_stands_between(changes, expected):
  text = _between('afo_main', 'SO LR', 'FedAdam', profile='paper', **changes)
  assert text.split('; ')[0] == expected
  if 'form' in changes:
    assert 'beta2 0.99 for 0.999' in text


def test_quick_says_what_is_smaller_and_what_was_tuned():
  text = _between('afo_main', 'SO LR', 'FedAdam', kind='synthetic')
  assert text.startswith('synthetic data; rounds 40 of 1500; ')
  for part in (
      'validation examples 500 of all',
      'model reduced for full',
      'vocab size 1000 for 10000',
      'client rate, server rate, τ tuned here',
      'reduction last:8 for last:100',
  ):
    assert part in text


@pytest.mark.parametrize(
    'cell, expected',
    [
        (
            ('la_table1', 'SO NWP', 'both AdaGrad, restart'),
            ['client rate, server rate tuned here', 'client ε', 'in place of'],
        ),
        (
            ('init_table4', 'VGG-11 FedInit', '10%-100 Dir-0.1'),
            ['network', 'client noise', 'class noise', 'seeds', 'guessed'],
        ),
        (
            ('init_table8', 'block 1', 'FedInit', 'rounds to target'),
            ['quantity', 'guessed'],
        ),
        (('afo_main', 'CIFAR-10', 'FedAvg'), ['client rate', 'guessed']),
        (('afo_main', 'CIFAR-100', 'FedAvg'), ['weight decay of the task g']),
        (('afo_lr_decay', 'Centralized', 'FedAdam'), ['rounds', 'batch']),
        (('vra_compare', 'EMNIST CR', 'FedVRA', 'Accuracy'), ['gamma']),
    ],
)
def test_what_the_papers_do_not_say_stands_between(cell, expected):
  text = _between(*cell, profile='paper')
  for part in expected:
    assert part in text


def test_what_is_computed_as_published_is_comparable_in_every_profile():
  for profile in task_lib.PROFILES:
    assert not _between(
        'init_table9', 'FedInit', 'storage', profile=profile, kind='computed'
    )
  assert 'guessed' in _between(
      'la_toy', 'To distance 1', 'FedAvg, η 0.15', kind='computed'
  )


def test_the_listing_has_every_hyperparameter_of_every_cell_with_a_source():
  table = papers.get('afo_main')
  options = plan_lib.Options(profile='paper')
  planned = plan_lib.plan(table, options)
  _, *parts = origin.listing(table, options, planned).split('\n\n')
  assert len(parts) == len(planned) == 42
  for part, cell in zip(parts, planned):
    values = cell.runs[0].to_json()['hyperparameters']
    for name in (n for n, value in values.items() if value is not None):
      [line] = [l for l in part.splitlines() if l.startswith(f'  {name} = ')]
      kind = line.partition('[')[2].partition(':')[0]
      assert kind in source.KINDS, line
  adam = parts[1]
  assert '  beta2 = 0.999  [code: google-research/federated' in adam
  assert '  weight_decay = 0  [published: Adaptive Federated' in adam


def test_second_moment_decay_is_published_in_the_papers_form():
  table, options, cell = _one(
      'afo_main', 'SO LR', 'FedAdam', profile='paper', form='paper'
  )
  [settings] = origin.of_cell(table, 'paper', cell)
  assert settings['beta2'].value == 0.99
  assert settings['beta2'].source.kind == source.PUBLISHED
  assert options.form == 'paper'


def test_samples_of_validation_have_one_seed():
  """All methods and seeds are validated on the same examples."""
  drawn = set()
  for name, profile in itertools.product(papers.names(), ('quick', 'small')):
    for cell in _cells(name, profile, None):
      for run in cell.runs:
        if run.validation_examples:
          drawn.add((run.task, run.validation_seed))
        assert run.task_options.get('validation_seed', 0) == 0
  assert {seed for _, seed in drawn} == {0}
  assert len(drawn) >= 6 and all(math.isfinite(s) for _, s in drawn)
