"""Federated algorithms on noisy quadratics, in NumPy, written independently.

The library's algorithms run some ten rounds a second on such small problems;
statements about thousands of rounds are measured here, and each table has cells
that say how far these are from the library's algorithms.

Shapes: x [copies, n]; what clients hold [clients, copies, n].
"""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
from typing import Any

import numpy as np

from tff_fedopt.problems import noisy_quadratics


@dataclasses.dataclass(frozen=True)
class Round:
  """What a round left behind.

  Attributes:
    x: The server's model, [copies, n].
    local: Each client's last local model, [clients, copies, n].
    memory: What else each client keeps (control variate, dual), likewise.
    shared: The server's counterpart of `memory`, [copies, n].
  """

  x: np.ndarray
  local: np.ndarray
  memory: np.ndarray | None = None
  shared: np.ndarray | None = None

  @property
  def divergence(self) -> np.ndarray:
    """Δ of each copy: the mean of ‖x − last local model‖², [copies]."""
    return np.square(self.local - self.x).sum(-1).mean(0)


def local_steps(
    problem: noisy_quadratics.Problem,
    plan: noisy_quadratics.Plan,
    round_num: int,
    cohort: np.ndarray,
    start: np.ndarray,
    rate: float,
    more: Callable[[np.ndarray], np.ndarray | None] = None,
) -> np.ndarray:
  """Gradient steps y − η (g_i(y) + more(y)) of a cohort.

  Args:
    problem: The clients.
    plan: How many steps each takes.
    round_num: The round, from 1.
    cohort: Indices of clients.
    start: Where each begins, [cohort, copies, n].
    rate: η.
    more: What is added to the gradients, a function of y.

  Returns:
    Where each ends, [cohort, copies, n].
  """
  steps = np.array(plan.steps)[cohort]
  noise = None
  if problem.noise:
    noise = [plan.noise(problem, round_num, i).mean(1) for i in cohort]
  y = np.array(start)
  for k in range(steps.max()):
    working = np.flatnonzero(k < steps)
    if len(working) == len(cohort):
      working = slice(None)
    gradient = problem.gradients(cohort[working], y[working])
    if more:
      gradient += more(y)[working]
    if noise:
      gradient += np.stack([e[k] for e in noise if k < len(e)])
    y[working] -= rate * gradient
  return y


@dataclasses.dataclass
class Server:
  """A server optimizer, x + η m / (√v + τ); `sgd` is x + η Δ.

  Attributes:
    kind: `sgd`, `adagrad`, `adam` or `yogi`.
    rate: η.
    tau: τ; v begins at τ².
    beta1: β₁.
    beta2: β₂.
  """

  kind: str = 'sgd'
  rate: float = 1.0
  tau: float = 1e-3
  beta1: float = 0.0
  beta2: float = 0.99

  def __post_init__(self):
    self._m, self._v = 0.0, self.tau**2

  def step(self, x: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Returns the new x, given the mean change Δ."""
    if self.kind == 'sgd':
      return x + self.rate * change
    square = change**2
    self._m = self.beta1 * self._m + (1 - self.beta1) * change
    if self.kind == 'adagrad':
      self._v = self._v + square
    elif self.kind == 'adam':
      self._v = self.beta2 * self._v + (1 - self.beta2) * square
    else:
      sign = np.sign(self._v - square)
      self._v = self._v - (1 - self.beta2) * square * sign
    return x + self.rate * self._m / (np.sqrt(self._v) + self.tau)


def fedopt(
    problem: noisy_quadratics.Problem,
    plan: noisy_quadratics.Plan,
    rounds: int,
    rate: float,
    server: Server | None = None,
    decay: Callable[[int], float] = lambda t: 1.0,
    relaxation: float = 0.0,
) -> Iterator[Round]:
  """FedAvg, the adaptive servers, and FedInit.

  Args:
    problem: The clients.
    plan: Who takes part, and how much.
    rounds: Number of rounds.
    rate: η_l.
    server: The server optimizer, by default FedAvg's.
    decay: What multiplies η_l in round t, counted from 0.
    relaxation: β.

  Yields:
    One `Round` per round.
  """
  server = server or Server()
  x = problem.start
  local = np.broadcast_to(x, (problem.clients, *x.shape)).copy()
  for r in range(1, rounds + 1):
    cohort = plan.cohort(r)
    start = x + relaxation * (x - local[cohort])
    local[cohort] = local_steps(
        problem, plan, r, cohort, start, rate * decay(r - 1)
    )
    x = server.step(x, (local[cohort] - x).mean(0))
    yield Round(x, local.copy())


def scaffold(
    problem: noisy_quadratics.Problem,
    plan: noisy_quadratics.Plan,
    rounds: int,
    rate: float,
) -> Iterator[Round]:
  """SCAFFOLD with option 2, server rate 1; arguments as of `fedopt`."""
  x = problem.start
  local = np.broadcast_to(x, (problem.clients, *x.shape)).copy()
  own, shared = np.zeros_like(local), np.zeros_like(x)
  for r in range(1, rounds + 1):
    cohort = plan.cohort(r)
    correction = shared - own[cohort]
    start = np.broadcast_to(x, correction.shape)
    local[cohort] = local_steps(
        problem, plan, r, cohort, start, rate, lambda y: correction
    )
    path = rate * np.array(plan.steps)[cohort, np.newaxis, np.newaxis]
    new = (x - local[cohort]) / path - correction
    shared = shared + (new - own[cohort]).sum(0) / problem.clients
    own[cohort] = new
    x = local[cohort].mean(0)
    yield Round(x, local.copy(), own.copy(), shared)


def fedvra(
    problem: noisy_quadratics.Problem,
    plan: noisy_quadratics.Plan,
    rounds: int,
    rate: float,
    gamma: float,
    dual_step: float = 1.0,
    aggregation_step: float | None = None,
) -> Iterator[Round]:
  """FedVRA by its equations (8) to (10), not by the split server steps.

  Args:
    problem: The clients.
    plan: Who takes part, and how much.
    rounds: Number of rounds.
    rate: η.
    gamma: γ.
    dual_step: a.
    aggregation_step: d; None for N/m.

  Yields:
    One `Round` per round; `memory` holds λ_i, `shared` their mean.
  """
  x = problem.start
  local = np.broadcast_to(x, (problem.clients, *x.shape)).copy()
  dual = np.zeros_like(local)
  if aggregation_step is None:
    aggregation_step = problem.clients / plan.cohort_size
  for r in range(1, rounds + 1):
    cohort = plan.cohort(r)
    start = np.broadcast_to(x, dual[cohort].shape)
    held = dual[cohort]
    moved = np.zeros_like(dual)
    local[cohort] = local_steps(
        problem, plan, r, cohort, start, rate,
        lambda y: gamma * (y - x) - held,
    )
    moved[cohort] = local[cohort] - x
    dual = dual - dual_step * gamma * moved
    x = x + aggregation_step * moved.mean(0) - dual.mean(0) / gamma
    yield Round(x, local.copy(), dual, dual.mean(0))


_SERVERS = {
    'fedavg': 'sgd',
    'fedinit': 'sgd',
    'fedadagrad': 'adagrad',
    'fedadam': 'adam',
    'fedyogi': 'yogi',
}


def run(
    problem: noisy_quadratics.Problem,
    plan: noisy_quadratics.Plan,
    rounds: int,
    algorithm: str,
    hyperparameters: Mapping[str, Any],
) -> Iterator[Round]:
  """Runs an algorithm by its name and hyperparameters in the library.

  Args:
    problem: The clients.
    plan: Who takes part, and how much.
    rounds: Number of rounds.
    algorithm: Its name.
    hyperparameters: Those that differ from `form='paper'`'s defaults, of those
      that there are here.

  Yields:
    One `Round` per round.

  Raises:
    ValueError: If there is no such algorithm or hyperparameter here.
  """
  given = dict(hyperparameters)
  common = (problem, plan, rounds, given.pop('client_learning_rate'))
  if algorithm in _SERVERS:
    server = Server(
        _SERVERS[algorithm],
        given.pop('server_learning_rate', 1.0),
        given.pop('tau', 1e-3),
        given.pop('beta1', 0.9 if algorithm in ('fedadam', 'fedyogi') else 0.0),
        given.pop('beta2', 0.99),
    )
    decay = _decay(given.pop('client_learning_rate_schedule', 'constant'))
    relaxation = given.pop('relaxation', 0.1 if algorithm == 'fedinit' else 0.0)
    result = fedopt(*common, server, decay, relaxation)
  elif algorithm == 'scaffold':
    result = scaffold(*common)
  elif algorithm in ('fedvra', 'fedadmm'):
    step = given.pop('aggregation_step', 'N/m')
    steps = (
        (1.0, 1.0)
        if algorithm == 'fedadmm'
        else (
            float(given.pop('dual_step', 1)),
            None if step == 'N/m' else float(step),
        )
    )
    result = fedvra(*common, given.pop('gamma', 0.1), *steps)
  else:
    raise ValueError(f'there is no {algorithm} in NumPy')
  if given:
    raise ValueError(f'{algorithm} in NumPy has no {", ".join(given)}')
  return result


def _decay(text):
  """η_l's factor in round t from 0, of a schedule as the library writes it."""
  kind, *numbers = text.split(':')
  power = {'constant': 0.0, 'inverse_sqrt': -0.5, 'inverse_linear': -1.0}
  if kind not in power:
    raise ValueError(f'there is no {kind} schedule in NumPy')
  rate, steps = map(float, numbers or (1, 1))
  return lambda t: (1 + rate * t / steps) ** power[kind]


def difference(
    problem: noisy_quadratics.Problem,
    plan: noisy_quadratics.Plan,
    rounds: int,
    algorithm: str,
    hyperparameters: Mapping[str, Any],
) -> float:
  """The largest difference of x in any round to a run by the library.

  Arguments as of `run`.
  """
  library = noisy_quadratics.run(
      problem, plan, rounds, algorithm, hyperparameters
  )
  here = run(problem, plan, rounds, algorithm, hyperparameters)
  return max(
      float(np.abs(a.weights[0] - b.x).max())
      for a, b in zip(library, here, strict=True)
  )
