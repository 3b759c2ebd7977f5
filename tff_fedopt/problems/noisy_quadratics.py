"""Quadratic clients with noise, many independent runs in one.

```
F_i(x) = ½ (x − m_i)ᵀ H_i (x − m_i) + ρ Σ_j cos(2 x_j)
gradient of one sample = ∇F_i(x) + σ ξ,    ξ standard normal
```

The model is an array [copies, n]: each copy is a run of its own, with the same
clients, cohorts and rates, and noise of its own. An algorithm that treats
coordinates alike runs all copies at once, so that one run gives a mean and its
error. ρ = 0 is a convex problem; with 4 ρ above the curvatures it is not.
"""

import collections
from collections.abc import Iterator, Mapping
import dataclasses
import functools
import json
import tempfile
from typing import Any

import numpy as np

from tff_fedopt.experiment import sampling
from tff_fedopt.problems import array_problem


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
  """The clients.

  Attributes:
    matrices: H_i, [clients, n, n]. One that is not symmetric gives the steps
      x − η H_i (x − m_i) all the same: a fixed preconditioner P_i makes it
      P_i H_i.
    minimisers: m_i, [clients, n].
    start: x before the first round, [copies, n].
    noise: σ.
    ripple: ρ.
  """

  matrices: np.ndarray
  minimisers: np.ndarray
  start: np.ndarray
  noise: float = 0.0
  ripple: float = 0.0

  @property
  def clients(self) -> int:
    return len(self.matrices)

  @property
  def optimum(self) -> np.ndarray:
    """The stationary point of Σ F_i where ρ is 0, [n]."""
    pulls = np.einsum('cij,cj->i', self.matrices, self.minimisers)
    return np.linalg.solve(self.matrices.sum(0), pulls)

  def gradients(self, cohort: np.ndarray, x: np.ndarray) -> np.ndarray:
    """∇F_i of the clients i of `cohort` at x, [cohort, copies, n].

    Args:
      cohort: Indices of clients.
      x: Points, [copies, n], or one set for each client,
        [cohort, copies, n].
    """
    away = x - self.minimisers[cohort, np.newaxis]
    slopes = away @ np.swapaxes(self.matrices[cohort], 1, 2)
    return slopes - 2 * self.ripple * np.sin(2 * x) if self.ripple else slopes

  def gradient(self, x: np.ndarray) -> np.ndarray:
    """The mean of all clients' gradients at x, [copies, n]."""
    return self.gradients(np.arange(self.clients), x).mean(0)


def random_problem(
    seed: int,
    *,
    clients: int = 8,
    copies: int = 1,
    dimension: int = 4,
    spread: float = 1.0,
    alike: bool = False,
    noise: float = 0.0,
    ripple: float = 0.0,
) -> Problem:
  """Draws clients with curvatures from 0.5 to 2 and own principal axes.

  Args:
    seed: Seed of the problem.
    clients: How many.
    copies: Independent runs.
    dimension: n.
    spread: Standard deviation of the minimisers about 0, in each coordinate; 0
      gives all clients one minimiser.
    alike: Whether all clients have the function of the first.
    noise: σ.
    ripple: ρ.
  """
  rng = np.random.default_rng(sampling.derive_seed(seed, 'partition'))
  # Client by client: more clients leave the first ones as they are.
  matrices, minimisers = [], []
  for _ in range(clients):
    axes = np.linalg.qr(rng.normal(size=[dimension, dimension]))[0]
    curvatures = np.linspace(0.5, 2.0, dimension)
    matrices.append(axes * curvatures @ axes.T)
    minimisers.append(spread * rng.normal(size=dimension))
  chosen = np.zeros(clients, int) if alike else np.arange(clients)
  return Problem(
      np.stack(matrices)[chosen],
      np.stack(minimisers)[chosen],
      np.full([copies, dimension], 2.0),
      noise,
      ripple,
  )


@dataclasses.dataclass(frozen=True)
class Plan:
  """Who takes part, and how much work a client does.

  Attributes:
    cohort_size: Clients a round, drawn without replacement.
    steps: Local steps of each client, [clients].
    batch: Samples of one local step.
    seed: Of cohorts and noise.
  """

  cohort_size: int
  steps: tuple[int, ...]
  batch: int = 1
  seed: int = 0

  def cohort(self, round_num: int) -> np.ndarray:
    """Clients of a round (from 1), sorted."""
    return np.sort(
        sampling.cohort(
            len(self.steps), self.cohort_size, self.seed, round_num
        )
    )

  def noise(self, problem: Problem, round_num: int, client: int) -> np.ndarray:
    """σ ξ of each sample of a round, [steps, batch, copies, n]."""
    return self.noise_of(
        problem,
        client,
        sampling.derive_seed(self.seed, 'shuffling', round_num, str(client)),
    )

  def noise_of(self, problem: Problem, client: int, seed: int) -> np.ndarray:
    """`noise`, by the seed of the client in the round."""
    shape = (self.steps[client], self.batch, *problem.start.shape)
    if not problem.noise:
      return np.zeros(shape)
    return problem.noise * np.random.default_rng(seed).standard_normal(shape)


def everyone(clients: int, steps: int, batch: int = 1, seed: int = 0) -> Plan:
  """A plan in which all clients take part and do the same work."""
  return Plan(clients, (steps,) * clients, batch, seed)


def run(
    problem: Problem,
    plan: Plan,
    rounds: int,
    algorithm: str,
    hyperparameters: Mapping[str, Any],
) -> Iterator[Any]:
  """Runs an algorithm of the library.

  Args:
    problem: The clients.
    plan: Who takes part, and how much work a client does.
    rounds: Number of rounds.
    algorithm: Its name.
    hyperparameters: Its hyperparameters; clients count alike if nothing else is
      said, and what clients keep goes to a new directory.

  Yields:
    What `experiment.rounds.run` yields; `weights[0]` is x, [copies, n].
  """
  from tff_fedopt import algorithms
  from tff_fedopt.experiment import rounds as rounds_lib

  given = {'client_weighting': 'uniform', **hyperparameters}
  process = _process(
      algorithm,
      json.dumps(_without_rates(given), sort_keys=True),
      problem.clients,
      problem.start.shape,
      problem.ripple,
  )[0]
  with tempfile.TemporaryDirectory(prefix='noisy_quadratics_') as folder:
    given |= _memory(algorithm, given, problem.clients, folder)
    state = process.set_model_weights(
        process.initialize(), _model_weights(problem.start)
    )
    state = algorithms.set_hyperparameters(process, state, algorithm, given)
    cohorts = [
        [str(i) for i in plan.cohort(r)] for r in range(1, rounds + 1)
    ]
    yield from rounds_lib.run(
        process, _Clients(problem, plan), cohorts, seed=plan.seed, state=state
    )


def _without_rates(given):
  return {
      name: value
      for name, value in given.items()
      if name not in ('client_learning_rate', 'server_learning_rate')
  }


def _memory(algorithm, given, clients, folder):
  """What an algorithm whose clients remember something needs in addition."""
  from tff_fedopt import algorithms

  needed = algorithms.hyperparameters(algorithm)(**given).needed()
  available = {'num_clients': clients, 'state_dir': folder}
  return {name: available[name] for name in needed}


@functools.lru_cache(maxsize=16)
def _process(algorithm, given_json, clients, shape, ripple):
  """A process, and the directory that it was made for."""
  from tff_fedopt import algorithms
  from tff_fedopt import runtime

  runtime.use()
  folder = tempfile.TemporaryDirectory(prefix='noisy_quadratics_')
  given = json.loads(given_json)
  given |= _memory(algorithm, given, clients, folder.name)
  process = algorithms.build(
      algorithm, functools.partial(_model, shape, ripple), **given
  )
  return process, folder


def _model_weights(x):
  import tensorflow_federated as tff

  return tff.learning.models.ModelWeights((x,), ())


def _model(shape, ripple):
  """Copies of x; a row is a sample: H_i, m_i, and the noise of each copy."""
  import tensorflow as tf

  copies, n = shape
  input_spec = dict(
      matrix=tf.TensorSpec([None, n, n], tf.float64),
      minimiser=tf.TensorSpec([None, n], tf.float64),
      noise=tf.TensorSpec([None, copies, n], tf.float64),
  )

  def loss(weights, batch, received):
    del received
    x = tf.convert_to_tensor(weights[0])
    away = x - batch['minimiser'][:, tf.newaxis]
    slope = tf.linalg.matmul(away, batch['matrix'], transpose_b=True)
    value = 0.5 * tf.reduce_mean(tf.reduce_sum(away * slope, [1, 2]))
    slope = tf.stop_gradient(tf.reduce_mean(slope + batch['noise'], 0))
    # The loss' value, with `slope` as its gradient: H_i may be no gradient's.
    at_x = tf.reduce_sum(slope * x)
    value = tf.stop_gradient(value - at_x) + at_x
    return value + ripple * tf.reduce_sum(tf.cos(2 * x))

  return array_problem.build_model([np.zeros(shape)], input_spec, loss)


class _Clients:
  """The clients' data."""

  def __init__(self, problem, plan):
    self._problem, self._plan = problem, plan
    self.client_ids = [str(i) for i in range(problem.clients)]

  def dataset_for_client(self, client_id, seed):
    import tensorflow as tf

    problem, i = self._problem, int(client_id)
    noise = self._plan.noise_of(problem, i, seed)
    samples = noise.reshape(-1, *problem.start.shape)
    alike = lambda a: np.broadcast_to(a[i], [len(samples), *a[i].shape])
    rows = collections.OrderedDict(
        matrix=alike(problem.matrices),
        minimiser=alike(problem.minimisers),
        noise=samples,
    )
    dataset = tf.data.Dataset.from_tensor_slices(rows)
    return dataset.batch(self._plan.batch)
