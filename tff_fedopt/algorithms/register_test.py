"""Algorithms from outside: what is taken, what is refused."""

import dataclasses

import pytest

from tff_fedopt import algorithms
from tff_fedopt.algorithms import hparams


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Own(hparams.Hyperparameters):
  """One hyperparameter more."""

  strength: float = hparams.field(0.5, 'how strong', hparams.not_negative)


def _build(name, model_fn, hp):
  return name, model_fn, hp


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
  monkeypatch.setattr(algorithms, '_ALGORITHMS', dict(algorithms._ALGORITHMS))


def test_a_registered_algorithm_is_one_like_all_others():
  algorithms.register('own', _Own, _build)
  assert 'own' in algorithms.names()
  assert algorithms.hyperparameters('own') is _Own
  assert algorithms.module_of('own') == __name__
  name, model_fn, hp = algorithms.build('own', 'a model', strength='0.25')
  assert (name, model_fn, hp) == ('own', 'a model', _Own(strength=0.25))
  with pytest.raises(ValueError, match='strength: -1.0; expected 0 or above'):
    algorithms.validate('own', {'strength': -1})
  with pytest.raises(ValueError, match='strength; it belongs to own'):
    algorithms.validate('fedavg', {'strength': 1})
  # A number alone is no other graph.
  key = algorithms.trace_key('own', {'strength': 1})
  assert key == algorithms.trace_key('own', {'strength': 2})
  # In a notebook a cell is run again.
  algorithms.register('own', hparams.FedAvg, _build)
  assert algorithms.hyperparameters('own') is hparams.FedAvg


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Bare(hparams.Hyperparameters):
  strength: float = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Named(hparams.Hyperparameters):
  strength: 'float' = hparams.field(0.5, 'how strong')


@pytest.mark.parametrize(
    'name, cls, said',
    [
        ('fedavg', _Own, "algorithm 'fedavg' is one of the package"),
        ('my algorithm', _Own, 'expected letters, digits and _'),
        ('own', dict, 'expected a frozen dataclass on top of hparams.Hyper'),
        ('own', _Bare, 'strength is not described; expected hparams.field'),
        ('own', _Named, 'and a type, not its name'),
    ],
)
def test_what_cannot_be_registered_is_said_in_one_line(name, cls, said):
  with pytest.raises(ValueError) as error:
    algorithms.register(name, cls, _build)
  assert said in str(error.value) and '\n' not in str(error.value)
  assert 'own' not in algorithms.names()
