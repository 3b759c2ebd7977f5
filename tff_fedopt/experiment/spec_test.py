"""Tests of run specs."""

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


def test_fingerprint_is_the_sha256_of_the_canonical_json():
  # A changed number here makes every stored result stale: think twice.
  assert spec_lib.sha256({'b': 1, 'a': [True, 'é']}) == (
      # printf '{"a":[true,"\\u00e9"],"b":1}' | sha256sum
      '6cc4b18b23e3c218494eca2eb8ba783ea42f4b6eeb42330c5a758886fb8a3fb9'
  )


def test_fingerprints_of_stored_results_stay():
  # What newer fields mean by default is not part of the canonical JSON.
  assert _spec().fingerprint() == (
      'e02a095f73e8e59e8631a6fcc5d2bbcb13f036f5fa78f20ab5c70fa4ebd1ede8'
  )
  assert _spec(cohorts='bernoulli', seed=3).fingerprint() == (
      '0573ea09cd35f8d59367b8717c9125e75fccafbb16898353c563c8a1a5d48f88'
  )


def test_participation_is_the_same_however_it_is_written():
  spec = _spec(participation='{"b": 2.0,\n "a": 0.5}')
  assert spec.participation == '{"a":0.5,"b":2}'
  assert spec_lib.RunSpec.from_json(spec.to_json()) == spec


def test_fingerprint_sees_what_decides_the_numbers():
  prints = {
      spec.fingerprint()
      for spec in (
          _spec(),
          _spec(algorithm='fedyogi'),
          _spec(hyperparameters={'tau': 0.1}),
          _spec(hyperparameters={'tau': 0.2}),
          _spec(rounds=7),
          _spec(cohort_size=1),
          _spec(batch_size=1),
          _spec(local_epochs=2),
          _spec(seed=1),
          _spec(profile='small'),
          _spec(data_dir='/a'),
          _spec(task_options={'noise': 1}),
          _spec(evaluate_every=2),
          _spec(validation_examples=5),
          _spec(cohorts='bernoulli'),
          _spec(participation='examples'),
          _spec(participation='{"a": 2}'),
      )
  }
  assert len(prints) == 17
  assert _spec(data_dir='/a').fingerprint() == (
      _spec(data_dir='/b').fingerprint()
  )
  assert _spec(hyperparameters={'tau': 1}).fingerprint() == (
      _spec(hyperparameters={'tau': 1.0}).fingerprint()
  )


@pytest.mark.parametrize(
    'changes, message',
    [
        (dict(task='cifar11'), "unknown task 'cifar11'; one of toy"),
        (dict(algorithm='sgd'), "unknown algorithm 'sgd'; .*fedadam"),
        (dict(hyperparameters={'taus': 1}), 'no hyperparameter taus.*tau'),
        (dict(hyperparameters={'tau': -1}), 'tau: -1.* expected above 0'),
        (dict(task_options={'noize': 1}), "unknown option 'noize' of toy; one of noise"),
        (dict(task_options={'noise': -1}), 'noise: -1; must be a whole number, 0'),
        (dict(profile='big'), "unknown profile 'big'; one of quick, small"),
        (dict(cohorts='some'), "kind of cohorts 'some'; one of fixed, bern"),
        (dict(participation='some'), "participation: 'some'; expected equal"),
        (dict(rounds=0), 'rounds: 0; expected 1 or more'),
        (dict(cohort_size=-1), 'cohort_size: -1; expected 1 or more'),
        (dict(batch_size=2.5), 'batch_size: 2.5; expected a whole number'),
        (dict(local_epochs=True), 'local_epochs: True; expected a whole'),
        (dict(seed=-1), 'seed: -1; expected 0 or more'),
        (dict(seed=None), 'seed: None; expected a whole number'),
        (dict(evaluate_every=0), 'evaluate_every: 0; expected 1 or more'),
        (dict(validation_examples=0), 'validation_examples: 0; expected 1'),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes, message):
  with pytest.raises(ValueError, match=message) as error:
    _spec(**changes)
  assert '\n' not in str(error.value)
