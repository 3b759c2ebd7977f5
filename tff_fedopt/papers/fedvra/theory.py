"""What FedVRA's theory says, measured on small problems."""

import numpy as np

from tff_fedopt.papers import theory
from tff_fedopt.problems import in_numpy
from tff_fedopt.problems import noisy_quadratics
from tff_fedopt.tables import spec

_HORIZONS = (50, 100, 200, 400, 800)
_SPREADS = (0.1, 0.3, 1.0, 3.0)
_DUAL_STEPS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_RATES = {'client_learning_rate': 0.05, 'gamma': 0.5}
NOTES = (
    *theory.NOTES,
    'η 0.05, γ 0.5, ω_i = 1/N, d = N/m if nothing else is said. Stationarity: 4'
    ' of 8 clients, 1 to 5 local steps, σ = 2 a sample, batches of √R samples,'
    ' 8 runs; the mean over all rounds of the squared gradient.',
    'Differences between clients: 5 of 20 clients, 5 local steps, σ = 1, 8'
    ' runs, last 30 of 100 rounds; their minimisers spread by the number of the'
    ' row.',
)


@theory.cached
def stationarity(seed, rounds, part, ripple=0.0) -> spec.Measured:
  """Mean over rounds of E‖∇f(x^r)‖², with batches of √R samples.

  Args:
    seed: Of problem, cohorts and noise.
    rounds: R.
    part: `all` rounds, or the last `quarter`.
    ripple: ρ of the problem.
  """
  problem = noisy_quadratics.random_problem(
      seed, copies=8, noise=2.0, ripple=ripple
  )
  plan = noisy_quadratics.Plan(
      4, (1, 2, 3, 4, 5, 1, 2, 3), round(rounds**0.5), seed
  )
  points = [problem.start] + [
      result.x
      for result in in_numpy.run(problem, plan, rounds, 'fedvra', _RATES)
  ]
  first = {'all': 0, 'quarter': 3 * rounds // 4}[part]
  return spec.Measured(
      float(
          np.mean([
              np.square(problem.gradient(x)).sum(-1).mean()
              for x in points[first:rounds]
          ])
      )
  )


@theory.cached
def noisy_distance(
    seed, dual_step, spread, algorithm='fedvra'
) -> spec.Measured:
  """Root mean square distance to the optimum in the last 30 of 100 rounds."""
  problem = noisy_quadratics.random_problem(
      seed, clients=20, copies=8, spread=spread, noise=1.0
  )
  plan = noisy_quadratics.Plan(5, (5,) * 20, seed=seed)
  given = {'client_learning_rate': _RATES['client_learning_rate']}
  if algorithm == 'fedvra':
    given = {**_RATES, 'dual_step': dual_step}
  squares = [
      float(np.square(result.x - problem.optimum).sum(-1).mean())
      for result in in_numpy.run(problem, plan, 100, algorithm, given)
  ]
  return spec.Measured(float(np.mean(squares[-30:])) ** 0.5)


def best_step_rises(seed, spreads, dual_steps) -> spec.Measured:
  """The best a at the last spread minus that at the first."""
  best = [
      min(
          dual_steps,
          key=lambda a: noisy_distance(
              seed=seed, dual_step=a, spread=spread
          ).value,
      )
      for spread in spreads
  ]
  return spec.Measured(best[-1] - best[0])


def saved_loss(seed, spreads) -> spec.Measured:
  """How much more FedAvg's distance grows with the spread than FedVRA's."""
  grown = []
  for algorithm in ('fedavg', 'fedvra'):
    few, many = (
        noisy_distance(
            seed=seed, dual_step=1.0, spread=spread, algorithm=algorithm
        ).value
        for spread in spreads
    )
    grown.append(many - few)
  return spec.Measured(grown[0] - grown[1])


@theory.cached
def reduced_variance(seed, rounds, dual_step) -> spec.Measured:
  """1 − the variance over clients of corrected gradients by that of plain.

  Gradients at the server's model after `rounds` without noise; corrected:
  g_i + γ β λ − λ_i with γ β = 1.
  """
  problem = noisy_quadratics.random_problem(seed)
  plan = noisy_quadratics.everyone(problem.clients, 5)
  given = {**_RATES, 'dual_step': dual_step, 'aggregation_step': 1.0}
  *_, last = in_numpy.run(problem, plan, rounds, 'fedvra', given)
  plain = problem.gradients(np.arange(problem.clients), last.x)
  corrected = plain + last.shared - last.memory
  variance = lambda g: np.square(g - g.mean(0)).sum()
  return spec.Measured(float(1 - variance(corrected) / variance(plain)))


@theory.cached
def exact_distance(seed, dual_step, aggregation_step) -> spec.Measured:
  """log10 ‖x − x*‖ after 40 rounds without noise, 4 of 8 clients."""
  problem = noisy_quadratics.random_problem(seed)
  plan = noisy_quadratics.Plan(4, (5,) * 8, seed=seed)
  given = {
      **_RATES, 'dual_step': dual_step, 'aggregation_step': aggregation_step
  }
  distances = [
      theory.log10(float(np.linalg.norm(result.x - problem.optimum)))
      for result in in_numpy.run(problem, plan, 40, 'fedvra', given)
  ]
  return spec.Measured(distances[-1], (range(1, 41), distances))


def same_models(seed, one, other, rounds) -> spec.Measured:
  """log10 of the largest difference between two algorithms of the library.

  Args:
    seed: Of problem, cohorts and noise.
    one: (name, hyperparameters).
    other: Likewise.
    rounds: Number of rounds.
  """
  problem = noisy_quadratics.random_problem(
      seed, clients=5, copies=2, noise=0.5, ripple=0.2
  )
  plan = noisy_quadratics.Plan(3, (3, 1, 2, 4, 2), batch=2, seed=seed)
  runs = [
      [
          result.weights[0]
          for result in noisy_quadratics.run(
              problem, plan, rounds, name, hyperparameters
          )
      ]
      for name, hyperparameters in (one, other)
  ]
  return spec.Measured(
      theory.log10(float(np.abs(np.subtract(*runs)).max()))
  )


def cells(profile: str, form: str) -> list[spec.Cell]:
  """Returns the cells of the table, the same in every profile and form."""
  del profile, form
  distance = theory.number('distance to the optimum')
  over_rounds = {'over': 'rounds', 'values': list(_HORIZONS), 'part': 'all'}
  result = [
      theory.claim(
          f'Theorem 1, S = √R{what}: slope of E‖∇f‖² over R (≤ −0.4)',
          theory.Slope(stationarity, 'slope'),
          theory.SLOPE,
          **over_rounds,
          **more,
      )
      for what, more in (('', {}), (', not convex', {'ripple': 0.3}))
  ]
  result += [
      theory.claim(
          'a = d = 1 is federated ADMM: difference of models (≤ −12)',
          same_models,
          theory.LOG,
          one=[
              'fedvra', {**_RATES, 'dual_step': '1', 'aggregation_step': '1'}
          ],
          other=['fedadmm', _RATES],
          rounds=4,
      ),
      theory.claim(
          'a = 0, d = N/m is FedProx: difference of models (≤ −12)',
          same_models,
          theory.LOG,
          one=['fedvra', {**_RATES, 'dual_step': '0'}],
          other=['fedprox', {'client_learning_rate': 0.05, 'mu': 0.5}],
          rounds=4,
      ),
      theory.claim(
          'steps 19 and 20 are (10), λ = Σ ω_i λ_i: difference (≤ −12)',
          theory.library_difference,
          theory.LOG,
          algorithm='fedvra',
          hyperparameters={**_RATES, 'dual_step': '0.7'},
      ),
      theory.claim(
          'Lemma 1: variance over clients that ADMM removes (≥ 0.5)',
          reduced_variance,
          theory.number('share'),
          rounds=20,
          dual_step=1.0,
      ),
      theory.claim(
          'the more clients differ the larger the best a: rise (≥ 0)',
          best_step_rises,
          theory.number('a', 2),
          spreads=[_SPREADS[0], _SPREADS[-1]],
          dual_steps=list(_DUAL_STEPS),
      ),
      theory.claim(
          'where clients differ FedVRA loses less than FedAvg: by (≥ 0)',
          saved_loss,
          distance,
          spreads=[_SPREADS[0], _SPREADS[-1]],
      ),
  ]
  for what, more in (('', {}), (', not convex', {'ripple': 0.3})):
    for part, text in (('all', 'all rounds'), ('quarter', 'last quarter')):
      result += theory.sweep(
          'Stationarity over R, batches of √R',
          f'FedVRA, {text}{what}',
          stationarity,
          theory.number('E‖∇f‖²', 4),
          'rounds',
          'R',
          _HORIZONS,
          f'E‖∇f‖² over R, {text}{what} (bound: −1 to −0.5)',
          part=part,
          **more,
      )
  for spread in _SPREADS:
    result += theory.sweep(
        'Distance over a',
        f'minimisers spread by {spread:g}',
        noisy_distance,
        distance,
        'dual_step',
        'a',
        _DUAL_STEPS,
        spread=spread,
    )
    result.append(
        theory.cell(
            'Distance over a',
            f'minimisers spread by {spread:g}',
            'FedAvg',
            noisy_distance,
            distance,
            {'dual_step': 0.0, 'spread': spread, 'algorithm': 'fedavg'},
        )
    )
  for d in (1.0, 1.5, 2.0):
    result += theory.sweep(
        'log10 distance after 40 rounds, over a and d (N/m = 2)',
        f'd {d:g}',
        exact_distance,
        theory.LOG,
        'dual_step',
        'a',
        (0.25, 0.5, 1.0, 2.0, 4.0),
        aggregation_step=d,
    )
  result += [
      theory.agreement('fedavg', client_learning_rate=0.05),
      theory.agreement('fedvra', **_RATES, dual_step='0.7'),
      theory.agreement('fedadmm', **_RATES),
  ]
  return theory.ordered(result)
