"""Tests of run specs."""

import dataclasses
import json

import pytest

from tff_fedopt.experiment import spec as spec_lib
from tff_fedopt.testing import toy


@pytest.fixture(autouse=True)
def _toy_task(monkeypatch):
  toy.install(monkeypatch.setattr)


def _spec(**changes):
  return spec_lib.RunSpec(**{'task': 'toy', 'algorithm': 'fedadam', **changes})


def test_published_settings_are_the_defaults():
  spec = _spec(cohort_size=3)
  assert (spec.rounds, spec.cohort_size, spec.batch_size) == (6, 3, 2)
  assert spec.fingerprint() == _spec(cohort_size=3, rounds=6).fingerprint()


def test_json_and_back():
  spec = _spec(
      hyperparameters={'tau': 0.1, 'form': 'code'},
      task_options={'noise': 1},
      data_dir='/data',
      validation_examples=10,
  )
  again = spec_lib.RunSpec.from_json(json.loads(json.dumps(spec.to_json())))
  assert again == spec and hash(again) == hash(spec)
  assert again.fingerprint() == spec.fingerprint()
  with pytest.raises(ValueError, match="field of a run 'round'"):
    spec_lib.RunSpec.from_json({**spec.to_json(), 'round': 3})


def test_participation_is_the_same_however_it_is_written():
  spec = _spec(participation='{"b": 2.0,\n "a": 0.5}')
  assert str(spec.participation) == '{"a": 0.5, "b": 2.0}'
  assert spec_lib.RunSpec.from_json(spec.to_json()) == spec


def test_what_decides_the_numbers_tells_runs_apart():
  specs = [
      _spec(),
      _spec(algorithm='fedyogi'),
      _spec(hyperparameters={'tau': 0.1}),
      _spec(hyperparameters={'tau': 0.2}),
      _spec(
          hyperparameters={'client_learning_rate_schedule': 'exponential:.5:9'}
      ),
      _spec(rounds=7),
      _spec(cohort_size=1),
      _spec(batch_size=1),
      _spec(local_epochs=2),
      _spec(seed=1),
      _spec(profile='small'),
      _spec(task_options={'noise': 1}),
      _spec(evaluate_every=2),
      _spec(validation_examples=5),
      _spec(validation_examples=5, validation_seed=1),
      _spec(cohorts='bernoulli'),
      _spec(participation='examples'),
      _spec(participation='{"a": 2}'),
  ]
  assert len(set(specs)) == len({s.fingerprint() for s in specs}) == len(specs)


@pytest.mark.parametrize(
    'one,other',
    [
        ({}, dict(hyperparameters={'tau': 0.001, 'form': 'paper'})),
        (
            dict(hyperparameters={'tau': 1}),
            dict(hyperparameters={'tau': ' 1.0'}),
        ),
        (
            dict(hyperparameters={'local_steps': 5}),
            dict(hyperparameters={'local_steps': ' 5'}),
        ),
        ({}, dict(rounds=6, task_options={'noise': 0})),
        ({}, dict(validation_seed=3)),
        (
            dict(participation='{"b": 2.0,\n "a": 0.5}'),
            dict(participation='{"a":0.5,"b":2}'),
        ),
    ],
)
def test_spellings_of_one_run_are_one_run(one, other):
  one, other = _spec(**one), _spec(**other)
  assert one == other and hash(one) == hash(other)
  assert one.fingerprint() == other.fingerprint()


def test_a_sample_of_validation_examples_is_a_setting_of_the_run():
  settings = _spec(validation_examples=5, seed=7).settings()
  assert settings['validation_seed'] == 0  # Whatever the run's seed.
  assert 'validation_seed' not in _spec().settings()


def test_nothing_in_it_can_be_changed():
  spec = _spec(task_options={'noise': 1})
  with pytest.raises(TypeError):
    spec.task_options['noise'] = 2
  with pytest.raises(dataclasses.FrozenInstanceError):
    spec.hyperparameters.tau = 2


@pytest.mark.parametrize(
    'changes, message',
    [
        (dict(task='cifar11'), "unknown task 'cifar11'; one of toy"),
        (dict(algorithm='sgd'), "unknown algorithm 'sgd'; .*fedadam"),
        (dict(hyperparameters={'taus': 1}), 'no hyperparameter taus.*tau'),
        (dict(hyperparameters={'tau': -1}), 'tau: -1.* expected above 0'),
        (
            dict(algorithm='scaffold', hyperparameters={'state_dir': 'x'}),
            'state_dir: ',
        ),
        (
            dict(task_options={'noize': 1}),
            "unknown option 'noize' of toy; one of noise",
        ),
        (
            dict(task_options={'noise': -1}),
            'noise: -1; must be a whole number, 0',
        ),
        (dict(profile='big'), "unknown profile 'big'; one of quick, small"),
        (dict(cohorts='some'), "kind of cohorts 'some'; one of fixed, bern"),
        (dict(participation='some'), "participation: 'some'; expected equal"),
        (dict(rounds=0), 'rounds: 0; expected 1 or more'),
        (dict(cohort_size=-1), 'cohort_size: -1; expected 1 or more'),
        (dict(batch_size=2.5), 'batch_size: 2.5; expected a whole number'),
        (dict(local_epochs=True), 'local_epochs: True; expected a whole'),
        (dict(seed=-1), 'seed: -1; expected 0 or more'),
        (dict(seed=None), 'seed: None; expected a whole number'),
        (dict(validation_seed=-1), 'validation_seed: -1; expected 0 or more'),
        (dict(evaluate_every=0), 'evaluate_every: 0; expected 1 or more'),
        (dict(validation_examples=0), 'validation_examples: 0; expected 1'),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes, message):
  with pytest.raises(ValueError, match=message) as error:
    _spec(**changes)
  assert '\n' not in str(error.value)
