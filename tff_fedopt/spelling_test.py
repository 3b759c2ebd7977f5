"""Which name was meant."""

import pytest

from tff_fedopt import algorithms
from tff_fedopt import spelling

_KNOWN = [
    'client_epsilon', 'client_learning_rate', 'client_learning_rate_schedule',
    'local_epochs', 'server_learning_rate', 'weight_decay',
]


@pytest.mark.parametrize(
    'name, meant',
    [
        ('client_lr', 'client_learning_rate'),
        ('server_lr', 'server_learning_rate'),
        ('lr', 'client_learning_rate or server_learning_rate'),
        ('learning_rate', 'client_learning_rate or server_learning_rate'),
        ('epochs', 'local_epochs'),
        ('wd', 'weight_decay'),
        ('wieght_decay', 'weight_decay'),
    ],
)
def test_what_was_meant(name, meant):
  assert spelling.near(name, _KNOWN) == f'did you mean {meant}?'


def test_a_prefix_stands_before_each_name_and_nothing_is_made_up():
  assert spelling.near('wd', _KNOWN, '--') == 'did you mean --weight_decay?'
  assert spelling.near('xyzzy', _KNOWN) == ''


@pytest.mark.parametrize(
    'name, meant',
    [
        ('client_lr', 'client_learning_rate'),
        ('wd', 'weight_decay'),
        ('momentum', 'client_momentum'),
    ],
)
def test_hyperparameters_hint_at_it(name, meant):
  with pytest.raises(ValueError, match=f'{name}; did you mean {meant}\\?$'):
    algorithms.validate('fedavg', {name: 1})
