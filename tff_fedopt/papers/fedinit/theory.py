"""What FedInit's theory says, measured on small problems."""

import numpy as np

from tff_fedopt.papers import theory
from tff_fedopt.problems import in_numpy
from tff_fedopt.problems import noisy_quadratics
from tff_fedopt.tables import spec

BETAS = (-0.2, -0.1, 0.0, 0.05, 0.1, 0.15, 0.3, 0.5, 1.0, 2.0)
_SMALL = BETAS[:6]
_CLIENTS = 10
# Beyond this a run has diverged; the start is 4 from 0.
_DIVERGED = 1e6
_STEPS = (1, 2, 4, 8, 16)
_RATES = (0.005, 0.01, 0.02, 0.04)
_HORIZONS = (64, 128, 256, 512)
_TOY = {'steps': 5, 'rate': 0.02, 'rounds': 200}
_RIPPLE = {'ripple': 0.3}
_FORMS = (('', {}), (', not convex', _RIPPLE))
TOY_NOTES = (
    '10 clients, quadratics with curvatures from 0.5 to 2 and axes of their own'
    ' in 4 dimensions, minimisers of standard deviation 1, no noise; 5 local'
    ' steps of rate 0.02, 200 rounds. Δ: mean over all clients of ‖x − last'
    ' local model‖², of the last 50 rounds. not convex: + 0.3 Σ cos 2x. ∞:'
    ' diverged. Slopes of ln Δ over β: least squares from β −0.2 to 0.15, with'
    ' standard errors from the residuals.',
    'In NumPy; init_theory says how far that is from the library.',
)
NOTES = (
    *theory.NOTES,
    'Δ over η and K: as in init_toy. Interpolation: all clients have one'
    ' minimiser (not convex: − 0.3 Σ cos 2x, so that it stays one).'
    ' Gradients over T: η = √(N / (K T)) / (4 L), 5 of 10 clients, K 4,'
    ' σ = 1, 16 runs.',
    'Stability: ‖x − x̃‖ after 60 rounds with η_l = 0.1 / (1 + t), where one'
    ' client’s minimiser differs by 0.1; not convex, mean of 16 draws of'
    ' cohorts of 5 of 10 clients. Gain: 1 − that at β 0.1 over that at β 0.',
    'The excess risk is optimisation error plus generalisation error: the first'
    ' is seen in gradients, the second in stability. Of ln … over β: least'
    ' squares over β from −0.2 to 0.15, a relative change by unit of β.',
)


def _problem(seed, spread=1.0, ripple=0.0, noise=0.0, copies=1):
  return noisy_quadratics.random_problem(
      seed,
      clients=_CLIENTS,
      copies=copies,
      spread=spread,
      noise=noise,
      ripple=ripple,
  )


def _rounds(problem, plan, rounds, rate, beta, schedule='constant'):
  given = {
      'client_learning_rate': rate,
      'relaxation': beta,
      'client_learning_rate_schedule': schedule,
  }
  return in_numpy.run(problem, plan, rounds, 'fedinit', given)


def _plan(seed, cohort, steps):
  return noisy_quadratics.Plan(cohort, (steps,) * _CLIENTS, seed=seed)


@theory.cached
def divergence(
    seed, beta, steps, rate, rounds, cohort=_CLIENTS, ripple=0.0
) -> spec.Measured:
  """Δ, mean of the last 50 rounds, with its curve; inf if it diverged."""
  problem = _problem(seed, ripple=ripple)
  values = [
      float(result.divergence[0])
      for result in _rounds(
          problem, _plan(seed, cohort, steps), rounds, rate, beta
      )
  ]
  if not values[-1] < _DIVERGED:
    return spec.Measured(float('inf'))
  return spec.Measured(
      float(np.mean(values[-50:])), (range(1, rounds + 1), values)
  )


@theory.cached
def distance(seed, beta, steps, rate, rounds, cohort=_CLIENTS) -> spec.Measured:
  """‖x − x*‖ in the end; inf if it diverged."""
  problem = _problem(seed)
  *_, last = _rounds(problem, _plan(seed, cohort, steps), rounds, rate, beta)
  value = float(np.linalg.norm(last.x - problem.optimum))
  return spec.Measured(value if value < _DIVERGED else float('inf'))


def _is_stable(seed, beta, shared):
  return np.isfinite(divergence(seed=seed, beta=beta, **shared).value)


def largest_stable(seed, highest, **shared) -> spec.Measured:
  """The largest β whose Δ is finite, by bisection to 0.005.

  Args:
    seed: Of the problem.
    highest: A β that diverges; 0 does not.
    **shared: Of `divergence`.
  """
  low, high = 0.0, highest
  if not _is_stable(seed, low, shared) or _is_stable(seed, high, shared):
    return spec.Measured(float('nan'))
  while high - low > 0.005:
    middle = (low + high) / 2
    if _is_stable(seed, middle, shared):
      low = middle
    else:
      high = middle
  return spec.Measured(low)


def best_share(seed, highest, **shared) -> spec.Measured:
  """Up to which part of the largest stable β Δ falls, in twentieths."""
  bound = largest_stable(seed=seed, highest=highest, **shared).value
  shares = np.arange(21) / 20
  values = [
      divergence(seed=seed, beta=float(share * bound), **shared).value
      for share in shares
  ]
  return spec.Measured(float(shares[int(np.argmin(values))]))


def least_rise(seed, steps, **shared) -> spec.Measured:
  """The least rise of Δ from one K to the next, relative to Δ."""
  values = [divergence(seed=seed, steps=k, **shared).value for k in steps]
  return spec.Measured(
      min(after / before - 1 for before, after in zip(values, values[1:]))
  )


def least_fall(seed, betas, **shared) -> spec.Measured:
  """The least fall of Δ from one β to the next, relative to Δ."""
  values = [divergence(seed=seed, beta=b, **shared).value for b in betas]
  return spec.Measured(
      min(1 - after / before for before, after in zip(values, values[1:]))
  )


def diverges(seed, beta, **shared) -> spec.Measured:
  """1 if Δ is not finite, else 0."""
  value = divergence(seed=seed, beta=beta, **shared).value
  return spec.Measured(float(not np.isfinite(value)))


def doubling(seed, rates, **shared) -> spec.Measured:
  """log2 of Δ at the first rate over that at the second."""
  top, bottom = (
      divergence(seed=seed, rate=r, **shared).value for r in rates
  )
  return spec.Measured(float(np.log2(top / bottom)))


@theory.cached
def mean_divergence(seed, rounds, beta, ripple=0.0) -> spec.Measured:
  """Mean of Δ over all rounds where clients share their minimiser."""
  problem = _problem(seed, spread=0.0, ripple=ripple)
  return spec.Measured(
      float(
          np.mean([
              result.divergence.mean()
              for result in _rounds(
                  problem, _plan(seed, _CLIENTS, 5), rounds, 0.05, beta
              )
          ])
      )
  )


def last_divergence(seed, betas, rounds) -> spec.Measured:
  """log10 of the largest Δ in the end, over β, with one minimiser.

  Below 10⁻³⁴ it is all one.
  """
  problem, plan = _problem(seed, spread=0.0), _plan(seed, _CLIENTS, 5)
  largest = 0.0
  for beta in betas:
    *_, last = _rounds(problem, plan, rounds, 0.05, beta)
    largest = max(largest, float(last.divergence.max()))
  return spec.Measured(float(np.log10(max(largest, 1e-34))))


@theory.cached
def mean_gradient(seed, rounds, beta, ripple=0.0) -> spec.Measured:
  """Mean over t of E‖∇f(x_t)‖² with η = √(N / (K T)) / (4 L)."""
  problem = _problem(seed, ripple=ripple, noise=1.0, copies=16)
  cohort, steps = 5, 4
  rate = (cohort / (steps * rounds)) ** 0.5 / (2.0 + 4 * ripple) / 4
  points = [problem.start] + [
      result.x
      for result in _rounds(
          problem, _plan(seed, cohort, steps), rounds, rate, beta
      )
  ]
  return spec.Measured(
      float(
          np.mean([
              np.square(problem.gradient(x)).sum(-1).mean()
              for x in points[:rounds]
          ])
      )
  )


@theory.cached
def early_gradient(seed, steps, beta, ripple=0.0) -> spec.Measured:
  """‖∇f(x)‖² after 10 rounds of rate 0.01 without noise, all clients."""
  problem = _problem(seed, ripple=ripple)
  *_, last = _rounds(problem, _plan(seed, _CLIENTS, steps), 10, 0.01, beta)
  return spec.Measured(float(np.square(problem.gradient(last.x)).sum()))


def gradient_ratio(seed, betas, **shared) -> spec.Measured:
  """`mean_gradient` at the first β over that at the second."""
  top, bottom = (
      mean_gradient(seed=seed, beta=b, **shared).value for b in betas
  )
  return spec.Measured(top / bottom)


@theory.cached
def stability(seed, beta, steps, cohort) -> spec.Measured:
  """Mean ‖x − x̃‖ of two runs, one client's minimiser apart by 0.1."""
  problem = _problem(seed, ripple=0.3)
  minimisers = problem.minimisers.copy()
  minimisers[0] += 0.1 / minimisers.shape[1] ** 0.5
  other = noisy_quadratics.Problem(
      problem.matrices, minimisers, problem.start, ripple=problem.ripple
  )
  apart = []
  for draw in range(16):
    plan = _plan(seed + draw, cohort, steps)
    *_, x = _rounds(problem, plan, 60, 0.1, beta, 'inverse_linear:1:1')
    *_, y = _rounds(other, plan, 60, 0.1, beta, 'inverse_linear:1:1')
    apart.append(float(np.linalg.norm(x.x - y.x)))
  return spec.Measured(float(np.mean(apart)))


def gain(seed, steps, cohort) -> spec.Measured:
  """1 − `stability` at β 0.1 over that at β 0."""
  without, relaxed = (
      stability(seed=seed, beta=b, steps=steps, cohort=cohort).value
      for b in (0.0, 0.1)
  )
  return spec.Measured(1 - relaxed / without)


def gain_falls(seed, steps, cohort) -> spec.Measured:
  """`gain` at the first K minus that at the second."""
  few, many = (gain(seed=seed, steps=k, cohort=cohort).value for k in steps)
  return spec.Measured(few - many)


def factor_gain(seed, drift) -> spec.Measured:
  """1 − (1 / (1 + 2β))^{1 / (1 + cKL)} at β 0.1, of Theorem 12's bound."""
  del seed
  return spec.Measured(1 - (1 / 1.2) ** (1 / (1 + drift)))


def factor_falls(seed, drifts) -> spec.Measured:
  """`factor_gain` at the first cKL minus that at the second."""
  few, many = (factor_gain(seed=seed, drift=d).value for d in drifts)
  return spec.Measured(few - many)


def cohort_ratio(seed, cohorts, **shared) -> spec.Measured:
  """`stability` at the first cohort size over that at the second."""
  top, bottom = (
      stability(seed=seed, cohort=c, **shared).value for c in cohorts
  )
  return spec.Measured(top / bottom)


def condition(seed, beta, factor) -> spec.Measured:
  """1 − factor · β², which a theorem wants above 0."""
  del seed
  return spec.Measured(1 - factor * beta**2)


def recursion(seed, rounds, beta) -> spec.Measured:
  """log10 of how far the library's Δ is from that of equation (10).

  Each client's divergence goes from round to round by (10), with gradients of
  NumPy at the library's server models; all clients take part.
  """
  problem = noisy_quadratics.random_problem(
      seed, clients=4, noise=0.5, ripple=0.2
  )
  steps, rate = 3, 0.1
  plan = noisy_quadratics.everyone(4, steps, seed=seed)
  given = {
      'client_learning_rate': rate,
      'relaxation': beta,
      'track_consistency': True,
  }
  x, apart, furthest = problem.start, np.zeros([4, *problem.start.shape]), 0.0
  for result in noisy_quadratics.run(
      problem, plan, rounds, 'fedinit', given
  ):
    new = result.weights[0]
    # `apart` is w^t − w_i^{t−1}, on the left of (10) in the round before.
    start = x + beta * apart
    end = in_numpy.local_steps(
        problem, plan, result.round, np.arange(4), start, rate
    )
    steps_taken = start - end  # Σ_k η g
    apart = -beta * apart + (new - x) + steps_taken
    x = new
    measured = float(result.metrics['finalizer']['consistency'])
    expected = float(np.square(apart).sum(-1).mean())
    furthest = max(furthest, abs(measured - expected))
  return spec.Measured(theory.log10(furthest))


def toy(profile: str, form: str) -> list[spec.Cell]:
  """Returns the cells of `init_toy`."""
  del profile, form
  delta = theory.number('Δ', 5, logarithmic=True)
  result = [
      theory.claim(
          'Δ falls from each β to the next, −0.2 to 0.15: least fall (> 0)',
          least_fall,
          theory.number('share'),
          betas=list(_SMALL),
          **_TOY,
      ),
      theory.claim(
          'β 2 diverges (1)',
          diverges,
          theory.number('1 if so', 0),
          beta=2.0,
          **_TOY,
      ),
      theory.claim(
          'Δ falls with β up to the bound: to which part of it (≥ 0.5)',
          best_share,
          theory.number('share', 2),
          highest=2.0,
          **_TOY,
      ),
  ]
  for row, more in (
      ('all of 10 clients', {}),
      ('5 of 10 clients', {'cohort': 5}),
      ('all of 10 clients, not convex', _RIPPLE),
  ):
    result += theory.sweep(
        'Δ over β',
        row,
        divergence,
        delta,
        'beta',
        'β',
        BETAS,
        f'ln Δ over β, −0.2 to 0.15, {row} (theory: falls)',
        relative=True,
        fitted=_SMALL,
        **_TOY,
        **more,
    )
    result.append(
        theory.cell(
            'Bound of β',
            row,
            'largest β that does not diverge',
            largest_stable,
            theory.number('β', 2),
            {'highest': 2.0, **_TOY, **more},
        )
    )
  for row, more in (
      ('all of 10 clients', {}), ('5 of 10 clients', {'cohort': 5})
  ):
    result += theory.sweep(
        'Distance to the optimum over β',
        row,
        distance,
        theory.number('‖x − x*‖', 5),
        'beta',
        'β',
        BETAS,
        **_TOY,
        **more,
    )
  return theory.ordered(result)


def cells(profile: str, form: str) -> list[spec.Cell]:
  """Returns the cells of `init_theory`."""
  del profile, form
  delta = theory.number('Δ', 6)
  square = theory.number('E‖∇f‖²', 4)
  apart = theory.number('‖x − x̃‖', 5)
  ratio = theory.number('ratio')
  level = {'steps': 5, 'rounds': 400}
  over_beta = {'over': 'beta', 'values': list(_SMALL)}
  result = [
      theory.claim(
          'Δ rises from each K to the next, 1 to 16: least rise (> 0)',
          least_rise,
          theory.number('share'),
          steps=list(_STEPS),
          beta=0.1,
          rate=0.02,
          rounds=200,
      ),
      theory.claim(
          'excess risk, optimisation: slope of ln E‖∇f‖² over β (≤ 0)',
          theory.Slope(mean_gradient, 'slope', relative=True),
          theory.SLOPE,
          rounds=256,
          ripple=0.3,
          **over_beta,
      ),
      theory.claim(
          'excess risk, generalisation: slope of ln ‖x − x̃‖ over β (≤ 0)',
          theory.Slope(stability, 'slope', relative=True),
          theory.SLOPE,
          steps=1,
          cohort=5,
          **over_beta,
      ),
      theory.claim(
          'β 0.1 fulfils 141 β² < 1 of Theorem 1: 1 − 141 β² (> 0)',
          condition,
          ratio,
          beta=0.1,
          factor=141.0,
      ),
      theory.claim(
          'β 0.1 fulfils 39 β² < 1 of Theorem 6: 1 − 39 β² (> 0)',
          condition,
          ratio,
          beta=0.1,
          factor=39.0,
      ),
      theory.claim(
          'Theorem 12: its factor’s gain falls from cKL 0.1 to 10 (≥ 0)',
          factor_falls,
          ratio,
          drifts=[0.1, 10.0],
      ),
      theory.claim(
          'β 0.1 lowers ‖x − x̃‖ at K 1: gain (> 0)',
          gain,
          ratio,
          steps=1,
          cohort=5,
      ),
      theory.claim(
          'what β gains in stability falls from K 1 to 4 (≥ 0)',
          gain_falls,
          ratio,
          steps=[1, 4],
          cohort=5,
      ),
      theory.claim(
          'Remark 13: ‖x − x̃‖ with 10 of 10 clients over 2 (> 1)',
          cohort_ratio,
          ratio,
          cohorts=[10, 2],
          beta=0.1,
          steps=4,
      ),
      theory.claim(
          'Remark 18: log2 of Δ at η 0.02 over 0.01 (≥ 1)',
          doubling,
          theory.number('log2'),
          rates=[0.02, 0.01],
          beta=0.1,
          **level,
      ),
      theory.claim(
          'Theorem 19: Δ with one minimiser, 300 rounds (≤ −20)',
          last_divergence,
          theory.LOG,
          betas=[-0.1, 0.0, 0.1],
          rounds=300,
      ),
      theory.claim(
          'equation (10): difference of Δ (≤ −12)',
          recursion,
          theory.LOG,
          rounds=5,
          beta=0.2,
      ),
      theory.claim(
          'Theorem 1: mean E‖∇f‖² at β 0.1 over β 0 (≤ 1)',
          gradient_ratio,
          ratio,
          betas=[0.1, 0.0],
          rounds=256,
          ripple=0.3,
      ),
  ]
  for what, more in _FORMS:
    for beta in (0.0, 0.1):
      result += theory.sweep(
          'Δ over η',
          f'β {beta:g}{what}',
          divergence,
          delta,
          'rate',
          'η',
          _RATES,
          f'Δ over η, β {beta:g}{what} (bound: 2)',
          beta=beta,
          **level,
          **more,
      )
      result += theory.sweep(
          'Δ over K',
          f'β {beta:g}{what}',
          divergence,
          delta,
          'steps',
          'K',
          _STEPS,
          f'Δ over K, β {beta:g}{what} (bound: 1 to 2)',
          beta=beta,
          rate=0.02,
          rounds=200,
          **more,
      )
      result += theory.sweep(
          '‖∇f‖² after 10 rounds over K',
          f'β {beta:g}{what}',
          early_gradient,
          square,
          'steps',
          'K',
          _STEPS,
          f'‖∇f‖² after 10 rounds over K, β {beta:g}{what} (bound: falls)',
          beta=beta,
          **more,
      )
      result += theory.sweep(
          'Mean of Δ over T, interpolation',
          f'β {beta:g}{what}',
          mean_divergence,
          delta,
          'rounds',
          'T',
          _HORIZONS,
          f'mean Δ over T, interpolation, β {beta:g}{what} (bound: −1)',
          beta=beta,
          ripple=-more.get('ripple', 0.0),
      )
      result += theory.sweep(
          'Mean of E‖∇f‖² over T',
          f'β {beta:g}{what}',
          mean_gradient,
          square,
          'rounds',
          'T',
          _HORIZONS,
          f'mean E‖∇f‖² over T, β {beta:g}{what} (bound: −0.5)',
          beta=beta,
          **more,
      )
  for what, more in _FORMS:
    result += theory.sweep(
        'Mean of E‖∇f‖² over β, T 256',
        f'optimisation{what}',
        mean_gradient,
        square,
        'beta',
        'β',
        _SMALL,
        f'ln E‖∇f‖² over β{what} (bound: falls)',
        relative=True,
        rounds=256,
        **more,
    )
  for steps in (1, 4):
    result += theory.sweep(
        '‖x − x̃‖ over β, 5 of 10 clients',
        f'generalisation, K {steps}',
        stability,
        apart,
        'beta',
        'β',
        _SMALL,
        f'ln ‖x − x̃‖ over β, K {steps} (bound: falls, less with K)',
        relative=True,
        steps=steps,
        cohort=5,
    )
  for beta in (0.0, 0.1):
    result += theory.sweep(
        'Stability over K',
        f'β {beta:g}, 5 of 10 clients',
        stability,
        apart,
        'steps',
        'K',
        (1, 2, 4, 8),
        f'‖x − x̃‖ over K, β {beta:g} (bound: rises)',
        beta=beta,
        cohort=5,
    )
    result += theory.sweep(
        'Stability over N',
        f'β {beta:g}, K 4',
        stability,
        apart,
        'cohort',
        'N',
        (1, 2, 5, 10),
        f'‖x − x̃‖ over N, β {beta:g} (bound: rises)',
        beta=beta,
        steps=4,
    )
  result += theory.sweep(
      'Stability over K',
      'gain of β 0.1, 5 of 10 clients',
      gain,
      theory.number('share'),
      'steps',
      'K',
      (1, 2, 4, 8),
      cohort=5,
  )
  result += theory.sweep(
      'Gain of β 0.1 in the bound of Theorem 12',
      'over c K L',
      factor_gain,
      theory.number('share'),
      'drift',
      'cKL',
      (0.1, 1.0, 10.0, 100.0),
  )
  result.append(
      theory.agreement('fedinit', client_learning_rate=0.1, relaxation=0.2)
  )
  return theory.ordered(result)
