"""Client optimizers that restart every round, and their correction, in NumPy.

Written independently of the library, without bias correction (`form='paper'`).
Without noise; every client takes part.

```
sgd       y = y − η g
momentum  m = ρ m + g,  y = y − η m
adagrad   v = v + g²,  y = y − η g / (√v + ε)
adam      m = β₁ m + (1 − β₁) g, v = β₂ v + (1 − β₂) g², y = y − η m / (√v + ε)
N_i       what y would have moved if every gradient had been 1
```
"""

import numpy as np

from tff_fedopt.problems import noisy_quadratics

_RHO, _BETA1, _BETA2 = 0.9, 0.9, 0.999
EPSILON = 1e-3


def local_round(
    problem: noisy_quadratics.Problem,
    x: np.ndarray,
    optimizer: str,
    rate: float,
    steps: int,
) -> tuple[np.ndarray, np.ndarray]:
  """What each client does in a round.

  Args:
    problem: The clients.
    x: Where they begin, [copies, n].
    optimizer: `sgd`, `momentum`, `adagrad` or `adam`.
    rate: η.
    steps: Local steps.

  Returns:
    Where they end, and N_i; both [clients, copies, n].
  """
  y = np.repeat(x[np.newaxis], problem.clients, 0)
  m, v, q, n = (np.zeros_like(y) for _ in range(4))
  for _ in range(steps):
    g = problem.gradients(np.arange(problem.clients), y)
    keep, take = {
        'momentum': (_RHO, 1.0),
        'adam': (_BETA1, 1 - _BETA1),
    }.get(optimizer, (0.0, 1.0))
    m, q = keep * m + take * g, keep * q + take
    scale = np.ones_like(y)
    if optimizer == 'adagrad':
      v = v + g**2
    elif optimizer == 'adam':
      v = _BETA2 * v + (1 - _BETA2) * g**2
    if optimizer in ('adagrad', 'adam'):
      scale = 1 / (np.sqrt(v) + EPSILON)
    y, n = y - rate * scale * m, n + rate * scale * q
  return y, n


def server_round(
    problem: noisy_quadratics.Problem,
    x: np.ndarray,
    optimizer: str,
    correction: str,
    rate: float,
    steps: int,
    server_rate: float,
) -> np.ndarray:
  """The server's x after a round, [copies, n].

  Args:
    problem: The clients.
    x: Before the round, [copies, n].
    optimizer: Of the clients.
    correction: `none`, `local` or `global`.
    rate: η of the clients.
    steps: Local steps.
    server_rate: α.
  """
  y, n = local_round(problem, x, optimizer, rate, steps)
  if correction == 'none':
    return x - server_rate * (x - y).mean(0)
  change = ((x - y) / n).mean(0)
  if correction == 'global':
    change = change / (1 / n).mean(0)
  return x - server_rate * change


def fixed_point(
    problem: noisy_quadratics.Problem,
    optimizer: str,
    correction: str,
    rate: float,
    steps: int,
    server_rate: float,
    rounds: int,
) -> np.ndarray:
  """Where rounds from `problem.start` end, [copies, n]; arguments as above.

  Raises:
    ValueError: If the last of `rounds` still moved x by 10⁻¹⁰ or more.
  """
  x = problem.start
  for _ in range(rounds):
    before = x
    x = server_round(
        problem, x, optimizer, correction, rate, steps, server_rate
    )
    moved = np.abs(x - before).max()
    if moved < 1e-14:
      break
  if not moved < 1e-10:
    raise ValueError(
        f'{optimizer}, {correction}, η {rate:g}: still moving by {moved:.1e}'
        f' after {rounds} rounds; more rounds or another rate are needed'
    )
  return x


def linear_fixed_point(
    matrices: np.ndarray,
    preconditioners: np.ndarray,
    minimisers: np.ndarray,
    rate: float,
    steps: np.ndarray,
    corrected: bool = False,
) -> np.ndarray:
  """The fixed point of quadratic clients with fixed preconditioners, exactly.

  Solves Σ_i C_i [I − (I − η P_i H_i)^τ_i] (x − m_i) = 0 with C_i = I, or where
  local correction takes part (η τ_i P_i)⁻¹.

  Args:
    matrices: H_i, [clients, n, n].
    preconditioners: P_i, likewise.
    minimisers: m_i, [clients, n].
    rate: η.
    steps: τ_i, [clients].
    corrected: Whether local correction takes part.

  Returns:
    x̃, [n].
  """
  left, right = 0.0, 0.0
  for h, p, m, tau in zip(matrices, preconditioners, minimisers, steps):
    eye = np.eye(len(m))
    way = eye - np.linalg.matrix_power(eye - rate * p @ h, int(tau))
    if corrected:
      way = np.linalg.solve(rate * tau * p, way)
    left, right = left + way, right + way @ m
  return np.linalg.solve(left, right)
