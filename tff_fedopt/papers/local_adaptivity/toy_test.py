"""Quadratic clients: the theory's fixed points, and the toy figure's claims."""

import functools
import types

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt.papers.local_adaptivity import toy
from tff_fedopt.problems import quadratics

# Three clients with unequal numbers of steps; H_i that do not commute.
_H = np.array([
    [[2.0, 0.6], [0.6, 1.0]],
    [[1.0, -0.3], [-0.3, 3.0]],
    [[1.5, 0.0], [0.0, 0.8]],
])
_M = np.array([[1.0, -2.0], [0.5, 3.0], [-4.0, 1.0]])
_STEPS = [3, 5, 8]
# Fixed preconditioners P_i, a different one for each client.
_P = np.array([
    [[0.5, 0.0], [0.0, 2.0]],
    [[1.5, 0.2], [0.2, 0.4]],
    [[1.0, 0.0], [0.0, 1.2]],
])
_SGD = np.broadcast_to(np.eye(2), _P.shape)
_CASES = pytest.mark.parametrize(
    'preconditioners', [_SGD, _P], ids=['sgd', 'fixed preconditioners']
)


@functools.cache
def _problem(fixed, start=(3.0, 3.0)):
  p = _P if fixed else _SGD
  return quadratics.Problem((p @ _H).tolist(), _M.tolist(), start, _STEPS)


def _path(preconditioners, rate, rounds, start=(3.0, 3.0)):
  problem = _problem(preconditioners is _P, tuple(start))
  hyperparameters = {'client_learning_rate': rate}
  return quadratics.path(problem, 'fedavg', hyperparameters, rounds)


def _weights(preconditioners, rate):
  """I − (I − η P_i H_i)^τ_i: how far client i goes towards its minimiser."""
  return np.stack([
      np.eye(2) - np.linalg.matrix_power(np.eye(2) - rate * p @ h, steps)
      for p, h, steps in zip(preconditioners, _H, _STEPS)
  ])


def _fixed_point(preconditioners, rate):
  """x̃ with Σ w_i M_i ∇F_i(x̃) = 0, M_i = [I − (I − η P_i H_i)^τ_i] H_i⁻¹."""
  q = _weights(preconditioners, rate)
  return np.linalg.solve(q.sum(0), np.einsum('ijk,ik->j', q, _M))


def _optimum():
  return np.linalg.solve(_H.sum(0), np.einsum('ijk,ik->j', _H, _M))


@_CASES
@pytest.mark.parametrize('rate', [0.2, 0.05])
def test_simulated_limit_is_the_fixed_point(preconditioners, rate):
  limit = _path(preconditioners, rate, 40)[-1]
  fixed = _fixed_point(preconditioners, rate)
  np.testing.assert_allclose(limit, fixed, atol=1e-4)
  # Which is not the optimum.
  assert np.linalg.norm(fixed - _optimum()) > 0.2


@_CASES
def test_one_round_from_the_optimum(preconditioners):
  """Equation (9) to rounding, and the first-order term of (10)."""
  x = _optimum()
  slopes = np.einsum('ijk,ik->ij', _H, x - _M)
  gaps = []
  for rate in (1e-2, 1e-3):
    m = _weights(preconditioners, rate) @ np.linalg.inv(_H)
    moved = x - _path(preconditioners, rate, 1, start=x)[-1]
    expected = np.einsum('ijk,ik->j', m, slopes) / 3
    np.testing.assert_allclose(moved, expected, atol=1e-12)
    first = sum(
        k * p @ g for k, p, g in zip(_STEPS, preconditioners, slopes)
    ) / (3 * max(_STEPS))
    gaps.append(np.abs(moved / (rate * max(_STEPS)) - first).max())
    assert np.linalg.norm(first) > 0.1  # Does not vanish with the rate.
  # What is left is of order η.
  assert gaps[1] < 0.12 * gaps[0]


def _adagrad_in_numpy(rounds, rate, correction):
  """The toy problem's restarted AdaGrad, by hand."""
  h = np.array([[10.0, 0.1], [4.0, 0.4]])
  minimisers = np.array([[1.0, 1.0], [-1.0, -1.0]])
  x = np.array([3.0, 3.0])
  points = [x]
  for _ in range(rounds):
    changes, inverses = [], []
    for curvature, minimiser in zip(h, minimisers):
      y, accumulator, n = x.copy(), np.zeros(2), np.zeros(2)
      for _ in range(10):
        g = curvature * (y - minimiser)
        accumulator += g**2
        p = 1 / (np.sqrt(accumulator) + 1e-6)
        y = y - rate * p * g
        n += rate * p
      changes.append((x - y) / n if correction else x - y)
      inverses.append(1 / n)
    u = np.mean(changes, 0)
    if correction == 'global':
      u = u / np.mean(inverses, 0)
    if correction == 'local':
      u = 0.2 * u
    x = x - u
    points.append(x)
  return np.stack(points)


@pytest.mark.parametrize(
    'name,rate,correction',
    [
        ('AdaGrad, η 0.1', 0.1, None),
        ('AdaGrad + local, η 0.03', 0.03, 'local'),
        ('AdaGrad + global, η 0.1', 0.1, 'global'),
    ],
)
def test_library_runs_the_toy_as_by_hand(name, rate, correction):
  ours = quadratics.path(
      toy.PROBLEM, 'fedavg', toy.RUNS[name], _ROUNDS[name]
  )
  by_hand = _adagrad_in_numpy(_ROUNDS[name], rate, correction)
  np.testing.assert_allclose(ours, by_hand, atol=1e-9)


# Enough for each run to stand still, but for AdaGrad at the smaller rate.
_ROUNDS = {
    'FedAvg, η 0.15': 30,
    'FedAvg, η 0.03': 60,
    'AdaGrad, η 0.1': 60,
    'AdaGrad, η 0.03': 80,
    'AdaGrad + local, η 0.03': 20,
    'AdaGrad + global, η 0.1': 20,
    'AdaGrad + global, η 0.03': 60,
}


def test_three_claims_of_the_toy_figure():
  away = {
      name: toy.distance(toy.PROBLEM, toy.RUNS[name], rounds)
      for name, rounds in _ROUNDS.items()
  }
  end = {name: values[-1] for name, values in away.items()}
  first = lambda name, below: np.flatnonzero(away[name] < below)[0]
  # To a large tolerance AdaGrad is faster than FedAvg at the same final error
  # or less, and a third as many rounds with the correction.
  assert first('AdaGrad, η 0.1', 1) == 12
  assert first('FedAvg, η 0.03', 1) == 18
  assert first('AdaGrad + global, η 0.1', 1) == 6
  # FedAvg's bias shrinks with the rate; AdaGrad's is larger and does not.
  assert end['FedAvg, η 0.15'] == pytest.approx(0.434, abs=1e-3)
  assert end['FedAvg, η 0.03'] == pytest.approx(0.286, abs=1e-3)
  assert end['AdaGrad, η 0.1'] == pytest.approx(0.741, abs=1e-3)
  assert end['AdaGrad, η 0.03'] > end['AdaGrad, η 0.1']
  # The correction leaves a bias that shrinks with the rate.
  assert end['AdaGrad + global, η 0.1'] == pytest.approx(0.156, abs=1e-3)
  assert end['AdaGrad + global, η 0.03'] == pytest.approx(0.049, abs=1e-3)


def test_cells_measure_the_distance():
  name = 'AdaGrad, η 0.1'
  rounds = _ROUNDS[name]
  away = toy.distance(toy.PROBLEM, toy.RUNS[name], rounds)
  measures = {
      cell.row: cell.measure
      for cell in toy.cells('quick', 'paper')
      if cell.column == name
  }

  def measured(row):
    arguments = {**measures[row].arguments, 'rounds': rounds}
    return measures[row].function(seed=0, **arguments)

  assert measured('To distance 1').value == 12
  assert measured('To distance 0.2').value == float('inf')
  final = measured('After 100 rounds')
  assert final.value == away[-1]
  np.testing.assert_array_equal(final.curve[0], np.arange(rounds + 1))
  np.testing.assert_array_equal(final.curve[1], away)
  x = quadratics.path(toy.PROBLEM, 'fedavg', toy.RUNS[name], rounds)
  np.testing.assert_array_equal(np.transpose(final.curve[2:]), x)


def test_surface_draws_what_was_measured(monkeypatch):
  monkeypatch.setattr(quadratics, 'path', None)  # Nothing is run again.

  def drawn(*curve):
    cell = types.SimpleNamespace(column='AdaGrad, η 0.1')
    cells = [types.SimpleNamespace(cell=cell, curves=(curve,))]
    return toy.surface(types.SimpleNamespace(cells=cells))

  [axis] = drawn([0, 1], [4.0, 1.0], [3.0, 1.0], [3.0, 0.0]).axes
  lines = {line.get_label(): line.get_xydata() for line in axis.lines}
  np.testing.assert_array_equal(lines['AdaGrad, η 0.1'], [[3, 3], [1, 0]])
  assert 'FedAvg, η 0.03' not in lines
  assert drawn([0, 1], [4.0, 1.0]) is None


def test_losses():
  """½ (2 · 1² + 4 · 2²) = 9, of the problem and of the clients' model."""
  problem = quadratics.Problem(
      [[[2.0, 0.0], [0.0, 4.0]]] * 2, [[1.0, 1.0]] * 2, [2.0, 3.0], [1, 1]
  )
  np.testing.assert_allclose(problem.loss([[2, 3], [1, 1]]), [9, 0])
  batch = {
      'matrix': tf.constant(problem.matrices, tf.float64),
      'minimiser': tf.constant(problem.minimisers, tf.float64),
  }
  output = quadratics._Clients(problem).model_fn().forward_pass(batch)
  np.testing.assert_allclose(output.loss, 9)
