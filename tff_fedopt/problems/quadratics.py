"""Quadratic clients, run by the library: toy problems with known answers.

```
F_i(x) = ½ (x − m_i)ᵀ H_i (x − m_i),   gradient H_i (x − m_i), no noise
```

Every client takes part in every round with equal weight, in float64.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import json
from typing import Any

import numpy as np

from tff_fedopt.problems import array_problem


@dataclasses.dataclass(frozen=True)
class Problem:
  """Quadratic clients; lists of numbers, so that JSON can hold it.

  Attributes:
    matrices: H_i of each client, [clients, n, n]. One that is not symmetric
      gives the steps x − η H_i (x − m_i) all the same: a fixed preconditioner
      P_i makes it P_i H_i.
    minimisers: m_i of each client, [clients, n].
    start: x before the first round, [n].
    steps: Local steps a round of each client, [clients].
  """

  matrices: Sequence[Sequence[Sequence[float]]]
  minimisers: Sequence[Sequence[float]]
  start: Sequence[float]
  steps: Sequence[int]

  @property
  def optimum(self) -> np.ndarray:
    """The minimiser of Σ F_i / clients."""
    h, m = np.asarray(self.matrices), np.asarray(self.minimisers)
    return np.linalg.solve(h.sum(0), np.einsum('ijk,ik->j', h, m))

  def loss(self, x: np.ndarray) -> np.ndarray:
    """Σ F_i(x) / clients, of points [..., n]."""
    h = np.asarray(self.matrices)
    d = np.asarray(x)[..., None, :] - np.asarray(self.minimisers)
    return np.einsum('...ij,ijk,...ik->...', d, h, d) / (2 * len(h))

  def to_json(self) -> dict[str, Any]:
    return dataclasses.asdict(self)


def path(
    problem: Problem,
    algorithm: str,
    hyperparameters: Mapping[str, Any],
    rounds: int,
) -> np.ndarray:
  """Runs an algorithm on quadratic clients.

  Runs that differ only in learning rates share one traced process, and the
  same run is done once.

  Args:
    problem: The clients.
    algorithm: Name of the algorithm.
    hyperparameters: Its hyperparameters.
    rounds: Number of rounds.

  Returns:
    x before the first and after every round, [rounds + 1, n].
  """
  return _path(
      json.dumps(problem.to_json()),
      algorithm,
      json.dumps(dict(hyperparameters), sort_keys=True),
      rounds,
  )


@functools.lru_cache(maxsize=64)
def _path(problem_json, algorithm, given_json, rounds):
  from tff_fedopt import algorithms
  from tff_fedopt.experiment import rounds as rounds_lib

  problem = Problem(**json.loads(problem_json))
  given = {'client_weighting': 'uniform', **json.loads(given_json)}
  structure = {
      name: value
      for name, value in given.items()
      if name not in ('client_learning_rate', 'server_learning_rate')
  }
  clients, process, state = _traced(
      problem_json, algorithm, json.dumps(structure, sort_keys=True)
  )
  state = algorithms.set_hyperparameters(process, state, algorithm, given)
  points = [np.asarray(problem.start, float)]
  for result in rounds_lib.run(
      process, clients, [clients.client_ids] * rounds, state=state
  ):
    points.append(result.weights[0])
  return np.stack(points)


@functools.lru_cache(maxsize=8)
def _traced(problem_json, algorithm, structure_json):
  from tff_fedopt import algorithms
  from tff_fedopt import runtime

  runtime.use()
  clients = _Clients(Problem(**json.loads(problem_json)))
  process = algorithms.build(
      algorithm, clients.model_fn, **json.loads(structure_json)
  )
  return clients, process, process.initialize()


class _Clients(array_problem.ArrayProblem):
  """The clients of a `Problem`."""

  def __init__(self, problem: Problem):
    super().__init__(
        np.asarray(problem.start, float),
        [
            dict(
                matrix=np.asarray(matrix, float)[None],
                minimiser=np.asarray(minimiser, float)[None],
            )
            for matrix, minimiser in zip(problem.matrices, problem.minimisers)
        ],
        problem.steps,
    )

  def loss(self, x, batch, received):
    """The mean of the rows' losses."""
    import tensorflow as tf

    del received
    x = tf.convert_to_tensor(x)
    away = x - batch['minimiser']
    slope = tf.linalg.matvec(batch['matrix'], away)
    loss = 0.5 * tf.reduce_mean(tf.reduce_sum(away * slope, -1))
    slope = tf.stop_gradient(tf.reduce_mean(slope, 0))
    # The loss' value, with `slope` as its gradient.
    at_x = tf.reduce_sum(slope * x)
    return tf.stop_gradient(loss - at_x) + at_x
