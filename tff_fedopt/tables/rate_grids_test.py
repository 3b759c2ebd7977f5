"""Numbers of grids whose answers are known."""

import math

import numpy as np
import pytest

from tff_fedopt.tables import rate_grids

_CLIENTS, _SERVERS = (-2, -1, 0, 1), (-1, 0, 1, 2)


def _grid(value):
  return [
      rate_grids.Point(c, s, value(c, s)) for c in _CLIENTS for s in _SERVERS
  ]


def _product(c, s):
  """Only η η_l matters, and 1 is its best value."""
  return 100 - 10 * abs(c + s)


def _server(c, s):
  """Only η matters."""
  return 100 - 10 * abs(s - 1)


def test_the_best_server_rate():
  at = lambda c, value: rate_grids.BestServer().apply(
      [point for point in _grid(value) if point.client == c], True
  )
  assert [at(c, _product) for c in _CLIENTS] == [2, 1, 0, -1]
  assert [at(c, _server) for c in _CLIENTS] == [1, 1, 1, 1]
  # Where less is better.
  loss = _grid(lambda c, s: -_product(c, s))
  assert rate_grids.BestServer().apply(loss[:4], False) == 2


def test_slopes_of_both_shapes():
  slope, error = rate_grids.Slope('slope'), rate_grids.Slope('error')
  assert slope.apply(_grid(_product), True) == pytest.approx(-1)
  assert error.apply(_grid(_product), True) == pytest.approx(0)
  assert slope.apply(_grid(_server), True) == pytest.approx(0)
  # Two client rates have no error.
  assert math.isnan(slope.apply(_grid(_product)[:8], True))


def test_slope_of_a_ridge_that_bends():
  ridge = dict(zip(_CLIENTS, (2, 2, 0, 0)))
  points = _grid(lambda c, s: -abs(s - ridge[c]))
  expected = np.polyfit(_CLIENTS, list(ridge.values()), 1)[0]
  found = rate_grids.Slope('slope').apply(points, True)
  assert found == pytest.approx(expected) == pytest.approx(-0.8)


def test_the_share_of_good_pairs():
  # Of _product 4 have 100, 3 + 3 have 90, 3 + 2 have 80.
  counts = [v for *_, v in _grid(_product)]
  assert (counts.count(100), counts.count(90)) == (4, 6)
  assert rate_grids.Share(0.85).apply(_grid(_product), True) == 10 / 16
  assert rate_grids.Share(1.0).apply(_grid(_product), True) == 4 / 16
  # Losses: 1 is best, up to 1.25 counts.
  losses = _grid(lambda c, s: 1.2 if s else 1.0 if c else 1.3)
  assert rate_grids.Share(0.8).apply(losses, False) == 15 / 16


def test_the_fall_along_either_line():
  along = lambda name, value: rate_grids.Fall(name).apply(_grid(value), True)
  assert along('product', _product) == 0
  # From the first best, client −2 and server 2: up to client 1, 3 decades.
  assert along('server', _product) == pytest.approx(0.3)
  assert along('server', _server) == 0
  # The first best is at client −2, server 1; −1 is the sum of 0 and −1, too.
  assert along('product', _server) == pytest.approx(0.2)


def test_what_diverged_is_worse_than_all():
  points = _grid(lambda c, s: math.nan if c + s > 1 else _product(c, s))
  assert rate_grids.Slope('slope').apply(points, True) == pytest.approx(-1)
  assert rate_grids.Share(0.1).apply(points, True) == 13 / 16
  assert rate_grids.Fall('server').apply(points, True) == 1
  lost = [rate_grids.Point(0, 0, math.nan)] * 4
  rules = (
      rate_grids.BestServer(),
      rate_grids.Slope('slope'),
      rate_grids.Share(0.8),
      rate_grids.Fall('server'),
  )
  for rule in rules:
    assert math.isnan(rule.apply(lost, True))
  assert len({str(rule) for rule in rules}) == 4


def test_each_seed_has_its_number():
  rates = [(0, -1), (0, 0), (0, 1)]
  values = [[1, 3], [2, 2], [3, 1]]
  best = rate_grids.BestServer()
  assert rate_grids.numbers(best, rates, values, True) == (1, -1)
  assert rate_grids.numbers(best, rates, values, False) == (-1, 1)


def test_rates_of_a_setting():
  given = {'client_learning_rate': 10.0**-1.5, 'server_learning_rate': 1.0}
  assert rate_grids.log_rates(given) == (-1.5, 0)
