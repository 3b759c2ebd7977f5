"""Tests of how likely clients are to take part."""

import types

import numpy as np
import pytest

from tff_fedopt.experiment import participation


def _clients(sizes):
  return types.SimpleNamespace(
      client_ids=['a', 'b', 'c', 'd'],
      sizes=None if sizes is None else np.array(sizes),
  )


def _of_clients(text, clients, size):
  likely = participation.Participation.parse(text)
  return participation.of_clients(likely, clients, size)


@pytest.mark.parametrize(
    'weights,size,expected',
    [
        ([1, 1, 1, 1], 1, [0.25] * 4),
        ([1, 2, 3, 4], 2, [0.2, 0.4, 0.6, 0.8]),
        ([10, 1, 2, 2], 2, [1, 0.2, 0.4, 0.4]),
        # With 10 cut off, 4 has a share of 2 · 4 / 6.
        ([10, 4, 1, 1], 3, [1, 1, 0.5, 0.5]),
        ([5, 1, 1, 1], 4, [1, 1, 1, 1]),
        ([1e9, 1, 1, 1e9], 2, [1, 0, 0, 1]),
    ],
)
def test_in_proportion_to_the_weights_and_at_most_one(weights, size, expected):
  p = participation.probabilities(np.array(weights), size)
  np.testing.assert_allclose(p, expected, atol=2e-9)
  assert p.max() <= 1 and abs(p.sum() - size) < 1e-9


def test_of_clients():
  clients = _clients([1, 2, 3, 4])
  assert _of_clients('equal', clients, 2) is None
  np.testing.assert_allclose(
      _of_clients('examples', clients, 2), [0.2, 0.4, 0.6, 0.8]
  )
  np.testing.assert_allclose(
      _of_clients('{"c": 2, "a": 3.0}', _clients(None), 2),
      [6 / 7, 2 / 7, 4 / 7, 2 / 7],
  )


@pytest.mark.parametrize(
    'text,message',
    [
        ('uniform', "'uniform'; expected equal, examples, or JSON such as"),
        ('{}', 'expected equal, examples'),
        ('[1, 2]', 'expected equal, examples'),
        (None, 'None; expected equal, examples'),
        ('{"a": 0}', "weight of 'a' is 0; expected a number above 0"),
        ('{"a": "2"}', "weight of 'a' is '2'; expected a number"),
        ('{"a": NaN}', "weight of 'a' is nan; expected a number"),
        ('{"a": true}', "weight of 'a' is True; expected a number"),
        ('{"a": 1e101}', 'expected a number above 0, at most 1e+100'),
        (
            '{"a": 1, "a": 2}',
            "participation: 'a' is given twice; expected once",
        ),
        ('{"e": 2}', "no client 'e'; there are 4, the first is 'a'"),
        ('examples', 'these data do not say how many examples'),
    ],
)
def test_what_cannot_be_is_one_line(text, message):
  with pytest.raises(ValueError, match='^participation: ') as error:
    _of_clients(text, _clients(None), 2)
  assert message in str(error.value) and '\n' not in str(error.value)
