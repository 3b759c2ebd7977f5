"""What AFO says beyond its experiments, measured on small problems.

Quadratic clients with curvatures from 0.5 to 2; with `ripple` not convex.
"""

import functools

import numpy as np

from tasks.data import partition
from tff_fedopt.papers import theory
from tff_fedopt.problems import in_numpy
from tff_fedopt.problems import noisy_quadratics
from tff_fedopt.tables import spec

_SERVERS = {
    'fedadagrad': 'FedAdagrad',
    'fedadam': 'FedAdam',
    'fedyogi': 'FedYogi',
}
_HORIZONS = (64, 128, 256, 512, 1024)
_DOUBLED = (1, 2, 4, 8, 16)
_PARTICIPATION = (20, 10, 5, 2)
NOTES = (
    *theory.NOTES,
    'The corollaries’ rates: η_l = 1/(K L √T), η = √(K m), τ = G/L with G = 4,'
    ' β₁ = 0, noise σ = 2 in each of 4 coordinates, 32 runs. Their bound is'
    ' O(1/√(m K T)): a slope of −0.5 or less is within it.',
    'Stationary error: η_l 0.05, K 4, σ = 1, 64 runs, last 75 of 150 rounds.'
    ' Pachinko: 500 clients of 100 images, 100 labels in 20 groups, α 0.1, β'
    ' 10. SCAFFOLD: η_l 0.03, K 5, σ = 0.3, 16 runs, the last sixth of the'
    ' rounds.',
)


@theory.cached
def bias(
    seed,
    extra_steps,
    rate,
    server_rate,
    rounds,
    spread=1.0,
    schedule='constant',
) -> spec.Measured:
  """‖x − x*‖ of FedAvg without noise, K = 1 + `extra_steps`; its curve."""
  problem = noisy_quadratics.random_problem(seed, spread=spread)
  plan = noisy_quadratics.everyone(problem.clients, 1 + extra_steps)
  hyperparameters = {
      'client_learning_rate': rate,
      'server_learning_rate': server_rate,
      'client_learning_rate_schedule': schedule,
  }
  distances = [
      float(np.linalg.norm(result.x - problem.optimum))
      for result in in_numpy.run(
          problem, plan, rounds, 'fedavg', hyperparameters
      )
  ]
  return spec.Measured(distances[-1], (range(1, rounds + 1), distances))


@theory.cached
def stationary_error(seed, clients, rate, steps, rounds) -> spec.Measured:
  """Mean squared distance in the last half of the rounds, equal clients."""
  problem = noisy_quadratics.random_problem(
      seed, clients=clients, copies=64, alike=True, noise=1.0
  )
  plan = noisy_quadratics.everyone(clients, steps, seed=seed)
  squares = [
      float(np.square(result.x - problem.optimum).sum(-1).mean())
      for result in in_numpy.run(
          problem, plan, rounds, 'fedavg', {'client_learning_rate': rate}
      )
  ]
  return spec.Measured(float(np.mean(squares[rounds // 2 :])))


@theory.cached
def smallest_gradient(
    seed, server, rounds, clients, steps, alike, ripple=0.0
) -> spec.Measured:
  """min_t E‖∇f(x_t)‖² with the corollaries' rates.

  η_l = 1 / (K L √T), η = √(K m), τ = G / L with G = 4, β₁ = 0.
  """
  problem = noisy_quadratics.random_problem(
      seed,
      clients=clients,
      copies=32,
      alike=alike,
      spread=0.0 if alike else 1.0,
      noise=2.0,
      ripple=ripple,
  )
  smoothness = 2.0 + 4 * ripple
  hyperparameters = {
      'client_learning_rate': 1 / (steps * smoothness * rounds**0.5),
      'server_learning_rate': (steps * clients) ** 0.5,
      'tau': 4 / smoothness,
      'beta1': 0.0,
  }
  plan = noisy_quadratics.everyone(clients, steps, seed=seed)
  return spec.Measured(
      min(
          float(np.square(problem.gradient(result.x)).sum(-1).mean())
          for result in in_numpy.run(
              problem, plan, rounds, server, hyperparameters
          )
      )
  )


@theory.cached
def scaffold_gain(seed, cohort, noise, rounds, rate, steps) -> spec.Measured:
  """log10 of FedAvg's distance over SCAFFOLD's, at the end, 20 clients."""
  problem = noisy_quadratics.random_problem(
      seed, clients=20, copies=16, noise=noise
  )
  plan = noisy_quadratics.Plan(cohort, (steps,) * 20, seed=seed)
  logs = []
  for algorithm in ('fedavg', 'scaffold'):
    squares = [
        np.square(result.x - problem.optimum).sum(-1).mean()
        for result in in_numpy.run(
            problem, plan, rounds, algorithm, {'client_learning_rate': rate}
        )
    ]
    logs.append(theory.log10(float(np.mean(squares[-rounds // 6 :]))) / 2)
  return spec.Measured(logs[0] - logs[1])


def bias_ratio(seed, top, bottom, **shared) -> spec.Measured:
  """`bias` at the settings `top` over that at `bottom`."""
  return spec.Measured(
      bias(seed=seed, **shared, **top).value
      / bias(seed=seed, **shared, **bottom).value
  )


def least_fall(seed, cohorts, **shared) -> spec.Measured:
  """The least fall of `scaffold_gain` from a cohort to the next smaller."""
  gains = [
      scaffold_gain(seed=seed, cohort=cohort, **shared).value
      for cohort in cohorts
  ]
  return spec.Measured(float(min(-np.diff(gains))))


def plain_averaging(seed, rounds) -> spec.Measured:
  """log10 of how far FedOpt (SGD, rate 1) is from averaging local models.

  By the library; clients weighted by their unequal numbers of samples.
  """
  problem = noisy_quadratics.random_problem(seed, clients=3, noise=0.5)
  plan = noisy_quadratics.Plan(3, (1, 3, 6), batch=1, seed=seed)
  weights = np.array(plan.steps)[:, np.newaxis, np.newaxis]
  hyperparameters = {
      'client_learning_rate': 0.1,
      'server_learning_rate': 1.0,
      'client_weighting': 'examples',
  }
  x, furthest = problem.start, 0.0
  for result in noisy_quadratics.run(
      problem, plan, rounds, 'fedavg', hyperparameters
  ):
    start = np.broadcast_to(x, (3, *x.shape))
    local = in_numpy.local_steps(
        problem, plan, result.round, np.arange(3), start, 0.1
    )
    x = (weights * local).sum(0) / weights.sum()
    furthest = max(furthest, float(np.abs(x - result.weights[0]).max()))
  return spec.Measured(theory.log10(furthest))


@functools.cache
def _allocated(seed, alpha, beta):
  """Fine labels of each client, [500, 100], of 100 labels of 500 images."""
  fine = np.repeat(np.arange(100), 500)
  dealt = partition.pachinko(
      fine, fine // 5, alpha=alpha, beta=beta, seed=seed
  )
  return dealt, fine[dealt]


def coarse_labels(seed, alpha, beta) -> spec.Measured:
  """How many coarse labels hold 80 % of a client's images, the median."""
  _, labels = _allocated(seed, alpha, beta)
  needed = []
  for own in labels // 5:
    counts = np.sort(np.bincount(own, minlength=20))[::-1]
    needed.append(1 + np.searchsorted(counts.cumsum(), 0.8 * len(own)))
  return spec.Measured(float(np.median(needed)))


def fine_labels(seed, alpha, beta) -> spec.Measured:
  """Different fine labels in a client's coarse label of 20 images, the mean."""
  _, labels = _allocated(seed, alpha, beta)
  found = []
  for own in labels:
    for coarse in np.flatnonzero(np.bincount(own // 5) >= 20):
      found.append(len(set(own[own // 5 == coarse])))
  return spec.Measured(float(np.mean(found)))


def used_twice(seed, alpha, beta) -> spec.Measured:
  """How many images are dealt more than once."""
  dealt, _ = _allocated(seed, alpha, beta)
  return spec.Measured(float(dealt.size - len(np.unique(dealt))))


def cells(profile: str, form: str) -> list[spec.Cell]:
  """Returns the cells of the table, the same in every profile and form."""
  del profile, form
  distance = theory.number('distance to the optimum', 5, logarithmic=True)
  square = theory.number('E‖∇f‖², smallest', 4)
  ratio = theory.number('ratio', 1)
  equal = {'rate': 0.05, 'server_rate': 1.0, 'rounds': 400}
  balanced = {'extra_steps': 9, 'rounds': 400}
  falling = {'schedule': 'inverse_sqrt:1:1'}
  rare = {'noise': 0.3, 'rounds': 300, 'rate': 0.03, 'steps': 5}
  result = [
      theory.claim(
          'SCAFFOLD’s gain falls with participation: least fall (≥ 0)',
          least_fall,
          theory.number('log10', 2),
          cohorts=list(_PARTICIPATION),
          **rare,
      ),
      theory.claim(
          'FedOpt with SGD of rate 1 averages local models: distance (≤ −12)',
          plain_averaging,
          theory.LOG,
          rounds=4,
      ),
      theory.claim(
          'η_l ∝ 1/√t removes the bias of a constant η_l: ratio (≥ 10)',
          bias_ratio,
          ratio,
          top={'schedule': 'constant'},
          bottom=falling,
          extra_steps=9,
          rate=0.03,
          server_rate=1.0,
          rounds=1600,
      ),
      theory.claim(
          'unequal clients drift with K: bias at K 20 over 2 (≥ 5)',
          bias_ratio,
          ratio,
          top={'extra_steps': 19},
          bottom={'extra_steps': 1},
          **equal,
      ),
      theory.claim(
          'clients with one minimiser do not: log10 of bias at K 20 (≤ −12)',
          _log_bias,
          theory.LOG,
          extra_steps=19,
          spread=0.0,
          **equal,
      ),
      theory.claim(
          'η 10 and η_l 0.003 have less bias than 1 and 0.03: ratio (≥ 3)',
          bias_ratio,
          ratio,
          top={'rate': 0.03, 'server_rate': 1.0},
          bottom={'rate': 0.003, 'server_rate': 10.0},
          **balanced,
      ),
      theory.claim(
          'linear speed-up: slope of the stationary error over m (−1 ± 0.2)',
          theory.Slope(stationary_error, 'slope'),
          theory.SLOPE,
          over='clients',
          values=list(_DOUBLED),
          **_SPEED_UP,
      ),
  ]
  result += [
      theory.claim(row, function, theory.number(name, 2), alpha=0.1, beta=10.0)
      for row, function, name in (
          (
              'Pachinko: 80 % of a client’s images are in few coarse ones (≤'
              ' 5)',
              coarse_labels,
              'labels',
          ),
          (
              'Pachinko: fine labels in a coarse one of 20 images (≥ 4 of 5)',
              fine_labels,
              'labels',
          ),
          ('Pachinko: images used twice (0)', used_twice, 'images'),
      )
  ]
  result += theory.sweep(
      'Bias over K − 1',
      'FedAvg, η_l 0.05',
      bias,
      distance,
      'extra_steps',
      'K − 1 =',
      (1, 2, 4, 9, 19),
      'bias over K − 1 (theory: 1 to first order)',
      **equal,
  )
  result += theory.sweep(
      'Bias over η, at η η_l = 0.03',
      'FedAvg, K 10',
      _balanced_bias,
      distance,
      'server_rate',
      'η',
      (1, 3, 10, 30),
      'bias over η at fixed η η_l (theory: −1 to first order)',
      product=0.03,
      **balanced,
  )
  result += theory.sweep(
      'Distance over rounds',
      'FedAvg, η_l 0.03/√t, K 10',
      bias,
      distance,
      'rounds',
      'round',
      (200, 400, 800, 1600),
      'bias over rounds, η_l ∝ 1/√t (theory: −0.5 to first order)',
      extra_steps=9,
      rate=0.03,
      server_rate=1.0,
      **falling,
  )
  result += theory.sweep(
      'Stationary error over m',
      'FedAvg, equal clients',
      stationary_error,
      theory.number('E‖x − x*‖²', 5),
      'clients',
      'm',
      _DOUBLED,
      'stationary error over m (theory: −1)',
      **_SPEED_UP,
  )
  for server, name in _SERVERS.items():
    for what, more in (
        ('', {}), (', not convex', {'ripple': 0.3})
    ):
      result += theory.sweep(
          'The corollaries’ rates, over T',
          f'{name}, unequal clients{what}',
          smallest_gradient,
          square,
          'rounds',
          'T',
          _HORIZONS,
          f'{name}, E‖∇f‖² over T{what} (bound: −0.5)',
          server=server,
          clients=4,
          steps=4,
          alike=False,
          **more,
      )
    for over, other, letter in (
        ('clients', 'steps', 'm'), ('steps', 'clients', 'K')
    ):
      result += theory.sweep(
          f'The corollaries’ rates, over {letter}',
          f'{name}, equal clients',
          smallest_gradient,
          square,
          over,
          letter,
          _DOUBLED,
          f'{name}, E‖∇f‖² over {letter} (bound: −0.5)',
          server=server,
          rounds=256,
          alike=True,
          **{other: 4},
      )
  for rounds in (48, 300):
    result += theory.sweep(
        'log10 of FedAvg’s distance over SCAFFOLD’s',
        f'{rounds} rounds, of 20 clients',
        scaffold_gain,
        theory.number('log10', 2),
        'cohort',
        'cohort',
        _PARTICIPATION,
        **{**rare, 'rounds': rounds},
    )
  server = {'server_learning_rate': 0.3, 'tau': 0.1, 'beta1': 0.0}
  result.append(
      theory.agreement(
          'fedavg',
          client_learning_rate=0.1,
          client_learning_rate_schedule='inverse_sqrt:1:1',
      )
  )
  result += [
      theory.agreement(name, client_learning_rate=0.1, **server)
      for name in _SERVERS
  ]
  result.append(theory.agreement('scaffold', client_learning_rate=0.1))
  return theory.ordered(result)


_SPEED_UP = {'rate': 0.05, 'steps': 4, 'rounds': 150}


def _log_bias(seed, **arguments) -> spec.Measured:
  return spec.Measured(theory.log10(bias(seed=seed, **arguments).value))


def _balanced_bias(seed, server_rate, product, **arguments) -> spec.Measured:
  """`bias` with η_l = product / η."""
  return bias(
      seed=seed,
      server_rate=server_rate,
      rate=product / server_rate,
      **arguments,
  )
