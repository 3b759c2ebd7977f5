"""What Local Adaptivity's theory says, on quadratic clients."""

import functools

import numpy as np

from tff_fedopt.papers import theory
from tff_fedopt.problems import client_optimizers
from tff_fedopt.problems import noisy_quadratics
from tff_fedopt.tables import spec

# Three clients; curvatures and preconditioners do not commute.
_H = np.array([
    [[1.6, 0.4], [0.4, 0.7]],
    [[0.9, -0.2], [-0.2, 2.1]],
    [[1.2, 0.1], [0.1, 0.6]],
])
_M = np.array([[1.0, -1.0], [0.5, 2.0], [-2.0, 0.5]])
_P = np.array([
    [[0.6, 0.1], [0.1, 1.4]],
    [[1.3, 0.0], [0.0, 0.5]],
    [[0.9, -0.2], [-0.2, 1.1]],
])
_STEPS = {'equal': (8, 8, 8), 'unequal': (10, 5, 2), 'one': (1, 1, 1)}
_RATES = (0.1, 0.03, 0.01)
_OPTIMIZERS = {'adagrad': 'AdaGrad', 'adam': 'Adam'}
_CORRECTIONS = {
    'none': 'no correction',
    'local': 'local correction',
    'global': 'global correction',
}
_LOCAL_STEPS = 10
# Of one client: as ill-conditioned as 100.
_CURVATURES = (10.0, 1.0, 0.1)
# With the best of SGD, 2 / (L + μ).
_GRID = (*np.geomspace(1e-3, 10, 25).tolist(), 2 / 10.1)
_LONG = 50
NOTES = (
    'Fixed points: 3 clients in 2 dimensions, H_i and fixed preconditioners P_i'
    ' that do not commute, exact for any rate; x̃ is the fixed point, x* the'
    ' optimum. Adaptive clients: 4 clients in 4 dimensions, 10 local steps,'
    ' restarted, accumulator 0, ε 10^-3, rounds until x moves less than 10^-10,'
    ' with a server rate at which they contract.',
    'h(k): largest ‖A(x) − A(y)‖² / ‖x − y‖² over 64 pairs of starts of one'
    ' client with curvatures 10, 1 and 0.1, three of them along the axes, each'
    ' optimizer at the one of 26 rates from 0.001 to 10 with its smallest'
    ' h(50).',
    'Slopes: least squares of logarithms over the points above, standard error'
    ' from their residuals. The last panel: how far one round in NumPy, from a'
    ' start and from the fixed point, is from the library’s.',
)


def _preconditioners(kind):
  eye = np.broadcast_to(np.eye(2), _P.shape)
  common = np.broadcast_to(_P[0], _P.shape)
  ideal = np.linalg.inv(_H)
  return {'none': eye, 'common': common, 'different': _P, 'ideal': ideal}[kind]


def _solved(rate, steps, preconditioners, corrected=False):
  return client_optimizers.linear_fixed_point(
      _H, _preconditioners(preconditioners), _M, rate, _STEPS[steps], corrected
  )


@functools.cache
def _optimum():
  return np.linalg.solve(_H.sum(0), np.einsum('ijk,ik->j', _H, _M))


def bias(
    seed, rate, steps='equal', preconditioners='none', corrected=False
) -> spec.Measured:
  """‖x̃ − x*‖ with fixed preconditioners, exactly."""
  del seed  # Nothing is random.
  x = _solved(rate, steps, preconditioners, corrected)
  return spec.Measured(float(np.linalg.norm(x - _optimum())))


def step_bias(seed, extra_steps, rate) -> spec.Measured:
  """`bias` of plain clients of K = 1 + `extra_steps` steps."""
  del seed
  x = client_optimizers.linear_fixed_point(
      _H, _preconditioners('none'), _M, rate, (1 + extra_steps,) * 3
  )
  return spec.Measured(float(np.linalg.norm(x - _optimum())))


def bias_ratio(seed, rates, **arguments) -> spec.Measured:
  """`bias` at the first rate over that at the second."""
  top, bottom = (bias(seed=seed, rate=r, **arguments).value for r in rates)
  return spec.Measured(top / bottom)


def log_bias(seed, **arguments) -> spec.Measured:
  return spec.Measured(theory.log10(bias(seed=seed, **arguments).value))


def library_movement(seed, rate, steps, preconditioners) -> spec.Measured:
  """log10 of how far a round of the library moves x from the fixed point.

  A round from a point one away must move it, or nothing is shown.
  """
  fixed = _solved(rate, steps, preconditioners)
  start = np.stack([fixed, fixed + [0.6, 0.8]])
  problem = noisy_quadratics.Problem(
      _preconditioners(preconditioners) @ _H, _M, start
  )
  plan = noisy_quadratics.Plan(3, _STEPS[steps], seed=seed)
  [result] = noisy_quadratics.run(
      problem, plan, 1, 'fedavg', {'client_learning_rate': rate}
  )
  moved, control = np.linalg.norm(result.weights[0] - start, axis=-1)
  if not control > 1e-3:
    raise ValueError(f'a point beside x̃ moved by {control:.1e} only')
  return spec.Measured(theory.log10(float(moved)))


def one_round(seed, rate, steps) -> spec.Measured:
  """log10 ‖x − x̃‖ after one round of the library with P_i = H_i⁻¹.

  The server rate is 1 / (1 − (1 − η)^K).
  """
  reach = 1 - (1 - rate) ** steps
  problem = noisy_quadratics.Problem(
      _preconditioners('ideal') @ _H, _M, np.array([[3.0, 3.0]])
  )
  plan = noisy_quadratics.everyone(3, steps, seed=seed)
  given = {'client_learning_rate': rate, 'server_learning_rate': 1 / reach}
  [result] = noisy_quadratics.run(problem, plan, 1, 'fedavg', given)
  fixed = client_optimizers.linear_fixed_point(
      _H, _preconditioners('ideal'), _M, rate, (steps,) * 3
  )
  return spec.Measured(
      theory.log10(float(np.linalg.norm(result.weights[0][0] - fixed)))
  )


def _server_rate(optimizer, correction, rate):
  """A server rate with which rounds contract; x̃ does not depend on it."""
  if correction == 'local':
    return 0.3
  reach = {
      ('adagrad', 'none'): 0.1,
      ('adagrad', 'global'): 0.03,
      ('adam', 'none'): min(0.03, rate),
      ('adam', 'global'): 0.01,
  }
  return reach[optimizer, correction] / rate


@functools.cache
def _adaptive_fixed_point(seed, optimizer, correction, rate):
  problem = noisy_quadratics.random_problem(seed, clients=4)
  x = client_optimizers.fixed_point(
      problem,
      optimizer,
      correction,
      rate,
      _LOCAL_STEPS,
      _server_rate(optimizer, correction, rate),
      rounds=4000,
  )
  return problem, x


def adaptive_bias(seed, rate, optimizer, correction) -> spec.Measured:
  """‖x̃ − x*‖ of restarted adaptive clients."""
  problem, x = _adaptive_fixed_point(seed, optimizer, correction, rate)
  return spec.Measured(float(np.linalg.norm(x - problem.optimum)))


def adaptive_ratio(seed, rates, optimizer, correction) -> spec.Measured:
  """`adaptive_bias` at the first rate over that at the second."""
  top, bottom = (
      adaptive_bias(
          seed=seed, rate=r, optimizer=optimizer, correction=correction
      ).value
      for r in rates
  )
  return spec.Measured(top / bottom)


def library_round(seed, optimizer, correction, rate) -> spec.Measured:
  """log10 of the difference between a round in NumPy and in the library."""
  problem, fixed = _adaptive_fixed_point(seed, optimizer, correction, rate)
  start = np.concatenate([problem.start, fixed])
  problem = noisy_quadratics.Problem(
      problem.matrices, problem.minimisers, start
  )
  server_rate = _server_rate(optimizer, correction, rate)
  here = client_optimizers.server_round(
      problem, start, optimizer, correction, rate, _LOCAL_STEPS, server_rate
  )
  given = {
      'client_optimizer': optimizer,
      'client_learning_rate': rate,
      'client_epsilon': client_optimizers.EPSILON,
      'client_initial_accumulator': 0.0,
      'correction': correction,
      'server_learning_rate': server_rate,
  }
  plan = noisy_quadratics.everyone(problem.clients, _LOCAL_STEPS)
  [result] = noisy_quadratics.run(problem, plan, 1, 'fedavg', given)
  return spec.Measured(
      theory.log10(float(np.abs(result.weights[0] - here).max()))
  )


@functools.cache
def _pairs(seed):
  """One client, its starts x and y; the first pairs lie along the axes."""
  rng = np.random.default_rng(seed)
  n, pairs = len(_CURVATURES), 64
  x, y = 3 * rng.normal(size=[2, pairs, n])
  y[:n] = x[:n] + 2 * np.eye(n)
  problem = noisy_quadratics.Problem(
      np.diag(_CURVATURES)[np.newaxis],
      np.zeros([1, n]),
      np.concatenate([x, y]),
  )
  return problem, np.square(x - y).sum(-1)


@theory.cached
def contraction(seed, optimizer, steps, rate=None) -> spec.Measured:
  """h(k), largest over the pairs; by default at the rate of the least h(50)."""
  problem, before = _pairs(seed)

  def largest(rate, steps):
    ends, _ = client_optimizers.local_round(
        problem, problem.start, optimizer, rate, steps
    )
    x, y = np.split(ends[0], 2)
    return float((np.square(x - y).sum(-1) / before).max())

  if rate is None:
    rate = min(_GRID, key=lambda r: largest(r, _LONG))
  return spec.Measured(largest(rate, steps))


def log_contraction(seed, optimizer, steps) -> spec.Measured:
  value = contraction(seed=seed, optimizer=optimizer, steps=steps).value
  return spec.Measured(float(np.log10(value)))


def formula_error(seed, rate, steps) -> spec.Measured:
  """log10 |h(k) − (1 − η μ)^{2k}| of SGD, for η ≤ 2 / (L + μ)."""
  formula = (1 - rate * min(_CURVATURES)) ** (2 * steps)
  measured = contraction(
      seed=seed, optimizer='sgd', steps=steps, rate=rate
  ).value
  return spec.Measured(theory.log10(abs(measured - formula)))


def momentum_error(seed, rate, steps, momentum=0.9) -> spec.Measured:
  """log10 |h(k) − max_λ (M_λ^k)₁₁²| of SGD with momentum.

  M_λ is the step of a coordinate with curvature λ and of its momentum.
  """
  exact = max(
      np.linalg.matrix_power(
          [[1 - rate * c, -rate * momentum], [c, momentum]], steps
      )[0, 0]
      ** 2
      for c in _CURVATURES
  )
  measured = contraction(
      seed=seed, optimizer='momentum', steps=steps, rate=rate
  ).value
  return spec.Measured(theory.log10(abs(measured - exact)))


def least_gained(seed, optimizer, steps) -> spec.Measured:
  """The least of `gained` over numbers of steps."""
  return spec.Measured(
      min(gained(seed=seed, optimizer=optimizer, steps=k).value for k in steps)
  )


def gained(seed, optimizer, steps) -> spec.Measured:
  """ln h(k) of SGD minus that of another optimizer, each at its best rate."""
  sgd, other = (
      contraction(seed=seed, optimizer=name, steps=steps).value
      for name in ('sgd', optimizer)
  )
  return spec.Measured(float(np.log(sgd) - np.log(other)))


def noise_share(seed, rate, steps) -> spec.Measured:
  """Variance of y after k noisy SGD steps over the bound σ² η² k.

  4000 runs of one client; noise of standard deviation 1 in each coordinate.
  """
  problem, _ = _pairs(seed)
  n = len(_CURVATURES)
  noisy = noisy_quadratics.Problem(
      problem.matrices, problem.minimisers, np.ones([4000, n]), noise=1.0
  )
  plan = noisy_quadratics.everyone(1, steps, seed=seed)
  y = noisy.start
  for noise in plan.noise(noisy, 1, 0)[:, 0]:
    y = y - rate * (noisy.gradients(np.array([0]), y)[0] + noise)
  variance = y.var(0, ddof=1).mean()
  return spec.Measured(float(variance / (rate**2 * steps)))


def cells(profile: str, form: str) -> list[spec.Cell]:
  """Returns the cells of the table, the same in every profile and form."""
  del profile, form
  number = theory.number('‖x̃ − x*‖', 5)
  ratio = theory.number('ratio')
  h = theory.number('log10 h(k)', 2)
  different = {'preconditioners': 'different'}
  claims = [
      (
          'unequal steps: bias at η 10^-4 over 10^-2 (≥ 0.9)',
          bias_ratio,
          ratio,
          {'rates': [1e-4, 1e-2], 'steps': 'unequal'},
      ),
      (
          'different P_i: bias at η 10^-4 over 10^-2 (≥ 0.9)',
          bias_ratio,
          ratio,
          {'rates': [1e-4, 1e-2], **different},
      ),
      (
          'one P for all: bias at η 10^-4 over 10^-2 (≤ 0.05)',
          bias_ratio,
          ratio,
          {'rates': [1e-4, 1e-2], 'preconditioners': 'common'},
      ),
      (
          'P_i = H_i⁻¹: distance to x̃ after one round (≤ −10)',
          one_round,
          theory.LOG,
          {'rate': 0.5, 'steps': 2},
      ),
      (
          'one local step: log10 of bias (≤ −12)',
          log_bias,
          theory.LOG,
          {'rate': 0.1, 'steps': 'one'},
      ),
      (
          'SGD: log10 |h(k) − (1 − η μ)^2k|, η 0.1, k 20 (≤ −12)',
          formula_error,
          theory.LOG,
          {'rate': 0.1, 'steps': 20},
      ),
      (
          'SGD with momentum: log10 |h(k) − exact|, η 0.1, k 20 (≤ −12)',
          momentum_error,
          theory.LOG,
          {'rate': 0.1, 'steps': 20},
      ),
      (
          'AdaGrad’s h(k) is bounded by SGD’s, k 5 to 50: least ln gain (≥ 0)',
          least_gained,
          theory.number('ln'),
          {'optimizer': 'adagrad', 'steps': [5, 10, 20, _LONG]},
      ),
      (
          'Adam’s h(k) is bounded by SGD’s, k 5 to 50: least ln gain (≥ 0)',
          least_gained,
          theory.number('ln'),
          {'optimizer': 'adam', 'steps': [5, 10, 20, _LONG]},
      ),
      (
          'AdaGrad contracts more than SGD: ln h − ln h at k 50 (≥ 0)',
          gained,
          theory.number('ln'),
          {'optimizer': 'adagrad', 'steps': _LONG},
      ),
      (
          'Adam contracts more than SGD: ln h − ln h at k 50 (≥ 0)',
          gained,
          theory.number('ln'),
          {'optimizer': 'adam', 'steps': _LONG},
      ),
      (
          'SGD: variance after 20 steps over σ² η² k, η 0.1 (≤ 1)',
          noise_share,
          ratio,
          {'rate': 0.1, 'steps': 20},
      ),
      (
          'local correction, any P_i: bias at η 0.001 over 0.1 (≤ 0.05)',
          bias_ratio,
          ratio,
          {'rates': [1e-3, 0.1], 'corrected': True, **different},
      ),
  ]
  claims += [
      (
          f'{name}, {text}: bias at η 0.01 over 0.1'
          f' ({"≥ 0.5" if correction == "none" else "≤ 0.2"})',
          adaptive_ratio,
          ratio,
          {
              'rates': [0.01, 0.1],
              'optimizer': optimizer,
              'correction': correction,
          },
      )
      for optimizer, name in _OPTIMIZERS.items()
      for correction, text in _CORRECTIONS.items()
  ]
  result = [
      theory.claim(row, function, quantity, **arguments)
      for row, function, quantity, arguments in claims
  ]
  for row, expected, arguments in (
      ('equal steps', 1, {}),
      ('unequal steps', 0, {'steps': 'unequal'}),
      ('one P for all', 1, {'preconditioners': 'common'}),
      ('different P_i', 0, different),
      ('different P_i, local correction', 1, {**different, 'corrected': True}),
  ):
    result += theory.sweep(
        'Bias over η, fixed preconditioners',
        row,
        bias,
        number,
        'rate',
        'η',
        (0.1, 0.03, 0.01, 0.003, 0.001),
        f'{row}: bias over η (theory: {expected})',
        **arguments,
    )
  result += theory.sweep(
      'Bias over τ − 1',
      'equal steps, η 0.01',
      step_bias,
      number,
      'extra_steps',
      'τ − 1 =',
      (1, 2, 4, 8, 16),
      'equal steps: bias over τ − 1 (theory: 1)',
      rate=0.01,
  )
  for optimizer, name in _OPTIMIZERS.items():
    for correction, text in _CORRECTIONS.items():
      expected = 0 if correction == 'none' else 1
      result += theory.sweep(
          'Bias over η, restarted adaptive clients',
          f'{name}, {text}',
          adaptive_bias,
          number,
          'rate',
          'η',
          _RATES,
          f'{name}, {text}: bias over η (theory: {expected})',
          optimizer=optimizer,
          correction=correction,
      )
  for optimizer, name, more in (
      ('sgd', 'SGD', f' (theory: −{-2 * np.log(1 - 0.2 / 10.1):.3f})'),
      ('momentum', 'SGD with momentum', ''),
      *((key, name, '') for key, name in _OPTIMIZERS.items()),
  ):
    result += theory.sweep(
        'Contraction h(k) of client optimizers',
        name,
        log_contraction,
        h,
        'steps',
        'k',
        (1, 2, 5, 10, 20, _LONG),
        optimizer=optimizer,
    )
    result += [
        theory.cell(
            theory.SLOPES,
            f'{name}: ln h(k) over k, 5 to 50{more}',
            part_name,
            theory.Slope(contraction, part, relative=True),
            theory.SLOPE,
            {
                'over': 'steps',
                'values': [5, 10, 20, _LONG],
                'optimizer': optimizer,
            },
        )
        for part, part_name in (
            ('slope', 'slope'), ('error', 'standard error')
        )
    ]
  for row, steps, preconditioners in (
      ('equal steps', 'equal', 'none'),
      ('unequal steps', 'unequal', 'none'),
      ('different P_i', 'equal', 'different'),
  ):
    result.append(
        theory.cell(
            'log10 of what a round of the library moves x̃ (at most −5)',
            'η 0.1',
            row,
            library_movement,
            theory.LOG,
            {'rate': 0.1, 'steps': steps, 'preconditioners': preconditioners},
        )
    )
  result += [
      theory.cell(
          theory.AGREEMENT,
          f'{name}, η 0.03 (at most −5)',
          text,
          library_round,
          theory.LOG,
          {'optimizer': optimizer, 'correction': correction, 'rate': 0.03},
      )
      for optimizer, name in _OPTIMIZERS.items()
      for correction, text in _CORRECTIONS.items()
  ]
  return theory.ordered(result)
