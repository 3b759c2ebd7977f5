"""What numbers belong to, and how differences are named."""

import dataclasses

import pytest

from tasks.data import sources
from tff_fedopt.experiment import identity
from tff_fedopt.experiment import run_dir
from tff_fedopt.experiment import spec as spec_lib


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
  monkeypatch.setenv('TFF_FEDOPT_CACHE', str(tmp_path / 'cache'))


def _spec(**changes):
  return spec_lib.RunSpec('cifar10', 'fedavg', **changes)


def test_data_count_by_content_wherever_they_are(tmp_path):
  for folder, text in (('a', 'one'), ('b', 'one'), ('c', 'two')):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / 'cifar10.npz').write_text(text)
  a, b, c = (_spec(data_dir=str(tmp_path / f)).identity() for f in 'abc')
  assert a == b and a.sha == b.sha != c.sha
  assert identity.differences(a, c) == ['data cifar10.npz has changed']
  embedded = _spec().identity()
  assert not embedded.data
  assert 'stored with embedded data, now data files' in (
      identity.differences(embedded, a)
  )
  (tmp_path / 'a' / 'cifar10.npz').write_text('three')
  assert _spec(data_dir=str(tmp_path / 'a')).fingerprint() != a.sha


def test_missing_data_are_one_line(tmp_path):
  with pytest.raises(sources.DataError, match='no cifar10') as error:
    _spec(data_dir=str(tmp_path)).fingerprint()
  assert '\n' not in str(error.value)


def test_embedded_data_count_by_the_code_that_makes_them():
  assert 'tasks/synthetic/images.py' in _spec().identity().task_code
  text = spec_lib.RunSpec('shakespeare', 'fedavg').identity().task_code
  assert 'tasks/synthetic/speech.py' in text
  assert 'tasks/synthetic/images.py' not in text


@pytest.mark.parametrize(
    'name', ['evaluation', 'participation', 'rounds', 'sampling']
)
def test_the_loops_code_counts_whatever_the_algorithm(name):
  for algorithm in ('fedavg', 'fedvra'):
    code = identity.algorithm_code(algorithm)
    assert f'tff_fedopt/experiment/{name}.py' in code
    assert any(file.startswith('tff_fedopt/algorithms/') for file in code)


@pytest.mark.parametrize(
    'changes,words',
    [
        (
            dict(settings={'client_learning_rate': 0.01, 'tau': 1.0}),
            [
                'stored with client_learning_rate 0.03, now 0.01',
                'stored with tau none, now 1',
            ],
        ),
        (dict(data={'x.npz': '9'}), ['data x.npz has changed']),
        (dict(task_code={'t.py': '9'}), ['code of t.py has changed']),
        (dict(task_code={'elsewhere.py': '2'}), []),
        (dict(algorithm_code={'a.py': '9'}), ['code of a.py has changed']),
    ],
)
def test_differences_in_words(changes, words):
  before = identity.Identity(
      {'client_learning_rate': 0.03},
      {'x.npz': '1'},
      {'t.py': '2'},
      {'a.py': '3'},
  )
  now = dataclasses.replace(before, **changes)
  assert identity.differences(before, now) == words
  assert (before.sha == now.sha) == (not words)
  assert identity.Identity.from_json(now.to_json()) == now


def test_of_many_changes_the_first_are_named():
  now = {f'{i}.py': f'{i}' for i in range(20)}
  lines = identity.of_code({}, now)
  assert len(lines) == identity.MOST_NAMED + 1
  assert lines[-1] == f'{20 - identity.MOST_NAMED} more changes'


def test_a_directory_of_another_run_names_the_differences(
    tmp_path, monkeypatch
):
  directory = run_dir.RunDir(tmp_path / 'run')
  directory.path.mkdir()
  directory.claim(_spec())
  of_module = identity.code_hash.of_module

  def changed(module, **options):
    code = of_module(module, **options)
    return {
        **code, **({'tasks/pipeline.py': 'x'} if 'cifar10' in module else {})
    }

  monkeypatch.setattr(identity.code_hash, 'of_module', changed)
  other = _spec(hyperparameters={'client_learning_rate': 0.03})
  with pytest.raises(run_dir.RunDirError) as error:
    directory.admit(other, resume=True)
  message = str(error.value)
  assert 'stored with client_learning_rate 0.1, now 0.03' in message
  assert 'code of tasks/pipeline.py has changed' in message
  assert '\n' not in message
