"""FedOpt against other people's weights, NumPy, and exact identities."""

import numpy as np
import pytest

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.testing import problems

OFFICIAL = problems.golden('official')
FLSIM = problems.golden('flsimulator')
NAMES = dict(sgd='fedavg', adagrad='fedadagrad', adam='fedadam', yogi='fedyogi')
COHORTS = [[0, 2], [1, 3], [0, 1, 3], [2], [1, 2]]


def p2(dtype='float32'):
  return problems.Problem(OFFICIAL['problems']['P2'], dtype)


def official_hyperparameters(case):
  """An official case's optimizer settings in this package's names."""
  server, client = case['server_optimizer'], case['client_optimizer']
  renamed = dict(
      learning_rate='learning_rate',
      epsilon='tau',
      initial_accumulator_value='initial_accumulator',
      beta_1='beta1',
      beta_2='beta2',
      beta1='beta1',
      beta2='beta2',
      momentum='momentum',
  )
  hp = dict(form='code', client_optimizer=client['optimizer'])
  name = 'fedavgm' if server.get('momentum') else NAMES[server['optimizer']]
  for key, value in server.items():
    if key != 'optimizer':
      ours = renamed[key]
      prefix = 'server_' if ours in ('learning_rate', 'momentum') else ''
      hp[prefix + ours] = value
  for key, value in client.items():
    if key != 'optimizer':
      hp['client_' + renamed[key].replace('tau', 'epsilon')] = value
  if client.get('momentum'):
    hp['client_optimizer'] = 'momentum'
  return name, hp


@pytest.mark.parametrize(
    'case',
    [c for c in OFFICIAL['cases'] if c['correction'] == 'none'],
    ids=lambda c: c['id'],
)
def test_matches_google_research_federated(case):
  problem = problems.Problem(OFFICIAL['problems'][case['problem']])
  name, hp = official_hyperparameters(case)
  ours = problems.rounds(
      problem, [r['cohort'] for r in case['rounds']], name, **hp
  )
  theirs = [r['weights'] for r in case['rounds']]
  assert problems.distance(ours, theirs) < 5e-6


@pytest.mark.parametrize(
    'case',
    [c for c in FLSIM['cases']
     if c['method'] in ('FedAvg', 'FedAdam', 'FedProx')
     and not c['hyperparameters']['use_RI']],
    ids=lambda c: c['id'],
)
def test_matches_fl_simulator(case):
  theirs = case['hyperparameters']
  hp = dict(
      form='code',
      client_learning_rate=theirs['local_learning_rate'],
      server_learning_rate=theirs['global_learning_rate'],
      client_weighting='uniform',
      weight_decay=theirs['weight_decay'],
      max_gradient_norm=10.0,
  )
  if theirs['lr_decay'] != 1:
    hp['client_learning_rate_schedule'] = f'exponential:{theirs["lr_decay"]}:1'
  if case['method'] == 'FedAdam':
    hp.update(
        form='paper',
        tau=theirs['epsilon'],
        beta1=theirs['beta1'],
        beta2=theirs['beta2'],
        initial_accumulator=0.0,
    )
  if case['method'] == 'FedProx':
    hp['mu'] = theirs['lamb']
  problem = problems.Problem(FLSIM['problems'][case['problem']], case['dtype'])
  ours = problems.rounds(
      problem,
      [r['cohort'] for r in case['rounds']],
      case['method'].lower(),
      **hp,
  )
  tolerance = 1e-9 if case['dtype'] == 'float64' else 5e-6
  assert problems.distance(
      ours, [r['weights'] for r in case['rounds']]
  ) < tolerance


def numpy_fedopt(problem, cohorts, server_step, client_lr=0.05, mu=0.0):
  """Algorithm 2 of AFO in NumPy, with unequal sizes and partial cohorts."""
  x = problem.initial
  state = {}
  history = []
  for t, cohort in enumerate(cohorts):
    total, weight = [np.zeros_like(w) for w in x], 0.0
    for i in cohort:
      y, n = [w.copy() for w in x], 0
      for bx, by in problem.batches(i):
        g = problem.gradient(y, bx, by)
        y = [
            w - client_lr * (d + mu * (w - w0)) for w, d, w0 in zip(y, g, x)
        ]
        n += len(bx)
      total = [s + n * (w - w0) for s, w, w0 in zip(total, y, x)]
      weight += n
    delta = [s / weight for s in total]  # The paper's sign: final − initial.
    x = [w + s for w, s in zip(x, server_step(state, delta, t))]
    history.append(x)
  return history


def adaptive_step(kind, lr, tau, beta1, beta2, v_initial):
  def step(state, delta, t):
    del t
    if not state:
      state['m'] = [np.zeros_like(d) for d in delta]
      state['v'] = [np.full_like(d, v_initial) for d in delta]
    moved = []
    for j, d in enumerate(delta):
      m = beta1 * state['m'][j] + (1 - beta1) * d
      v = state['v'][j]
      if kind == 'fedadagrad':
        v = v + d * d
      elif kind == 'fedadam':
        v = beta2 * v + (1 - beta2) * d * d
      else:
        v = v - (1 - beta2) * d * d * np.sign(v - d * d)
      state['m'][j], state['v'][j] = m, v
      moved.append(lr * m / (np.sqrt(v) + tau))
    return moved

  return step


@pytest.mark.parametrize('kind', ['fedadagrad', 'fedadam', 'fedyogi'])
def test_paper_form_is_algorithm_2(kind):
  problem = p2('float64')
  beta1 = 0.3 if kind == 'fedadagrad' else 0.8
  hp = dict(tau=0.02, beta1=beta1, initial_accumulator=0.01)
  if kind != 'fedadagrad':
    hp['beta2'] = 0.9
  ours = problems.rounds(
      problem,
      COHORTS,
      kind,
      client_learning_rate=0.05,
      server_learning_rate=0.2,
      **hp,
  )
  expected = numpy_fedopt(
      problem, COHORTS, adaptive_step(kind, 0.2, 0.02, beta1, 0.9, 0.01)
  )
  assert problems.distance(ours, expected) < 1e-10


def test_paper_defaults_are_the_papers():
  hp = algorithms.validate('fedyogi', dict(tau=0.1))
  assert (hp.beta1, hp.beta2, hp.bias_correction) == (0.9, 0.99, False)
  assert hp.initial_accumulator == pytest.approx(0.01)  # τ²
  hp = algorithms.validate('fedyogi', dict(tau=0.1, form='code'))
  assert (hp.beta2, hp.bias_correction) == (0.999, True)
  assert hp.initial_accumulator == 0
  assert algorithms.validate('fedadagrad', {}).beta1 == 0


def test_fedavgm_is_heavy_ball():
  problem = p2('float64')

  def step(state, delta, t):
    del t
    u = state.get('u', [0.0] * len(delta))
    state['u'] = [0.7 * a + d for a, d in zip(u, delta)]
    return [0.4 * a for a in state['u']]

  ours = problems.rounds(
      problem,
      COHORTS,
      'fedavgm',
      client_learning_rate=0.05,
      server_learning_rate=0.4,
      server_momentum=0.7,
  )
  assert problems.distance(ours, numpy_fedopt(problem, COHORTS, step)) < 1e-10


def test_fedprox_pulls_towards_the_server_model():
  problem = p2('float64')
  ours = problems.rounds(
      problem, COHORTS, 'fedprox', client_learning_rate=0.05, mu=0.6
  )
  plain = lambda state, delta, t: delta
  expected = numpy_fedopt(problem, COHORTS, plain, mu=0.6)
  wrong_sign = numpy_fedopt(problem, COHORTS, plain, mu=-0.6)
  assert problems.distance(ours, expected) < 1e-10
  # TFF's own FedProx has the wrong sign; the test must tell them apart.
  assert problems.distance(ours, wrong_sign) > 1e-2


def test_fedprox_on_one_weight():
  """One client, f = (b − 2)², b₀ = 0, η_l = 0.1, μ = 0.5, 5 steps by hand.

  b ← b − 0.1 (2 (b − 2) + 0.5 b) = 0.75 b + 0.4, so b₅ = 1.6 (1 − 0.75⁵) =
  1.2203125; without the term b₅ = 2 (1 − 0.8⁵) = 1.34464, and with the
  opposite sign b ← 0.85 b + 0.4, b₅ = 1.4834. The input is 0, so that the bias
  is the only weight that moves.
  """
  one = dict(
      model='linreg',
      layers=[['W', [1, 1]], ['b', [1]]],
      batch_size=1,
      local_epochs=5,
      clients=[dict(x=[[0.0]], y=[[2.0]])],
      initial_weights=dict(W=[[0.0]], b=[0.0]),
  )
  problem = problems.Problem(one, 'float64')
  weights = problems.rounds(
      problem, [[0]], 'fedprox', client_learning_rate=0.1, mu=0.5
  )
  assert weights[0][1][0] == pytest.approx(1.2203125, abs=1e-12)


@pytest.mark.parametrize(
    'name,hp',
    [
        ('fedavgm', dict(server_momentum=0.0)),
        ('fedprox', dict(mu=0.0)),
        ('fedavg', dict(server_learning_rate=1.0)),
        ('fedavg', dict(client_optimizer='momentum', client_momentum=0.0)),
    ],
    ids=lambda x: x if isinstance(x, str) else '-'.join(x),
)
def test_reduces_to_fedavg_bit_for_bit(name, hp):
  fedavg = problems.rounds(p2(), COHORTS, 'fedavg')
  assert problems.distance(
      problems.rounds(p2(), COHORTS, name, **hp), fedavg
  ) == 0


def test_fedadagrad_closed_form_on_one_coordinate():
  """With β₁ = 0 and the same Δ every round, x_T = x_0 + Σ η Δ/(√(v₀+tΔ²)+τ)."""
  linear = dict(
      model='softmax',
      layers=[['W', [1, 2]], ['b', [2]]],
      batch_size=1,
      local_epochs=1,
      clients=[dict(x=[[0.0]], y=[0])],
      initial_weights=dict(W=[[0.0, 0.0]], b=[0.0, 0.0]),
  )
  problem = problems.Problem(linear, 'float64')
  ours = problems.rounds(
      problem,
      [[0]] * 4,
      'fedadagrad',
      client_learning_rate=0.1,
      server_learning_rate=0.5,
      tau=0.03,
  )
  b, v = 0.0, 0.03**2
  for t in range(4):
    # b moves by ±; the logit gap is 2b, the gradient −1/(1 + e^{2b}).
    delta = 0.1 / (1 + np.exp(2 * b))
    v += delta**2
    b += 0.5 * delta / (np.sqrt(v) + 0.03)
    assert ours[t][1][0] == pytest.approx(b, abs=1e-12)


def test_schedules_by_round():
  problem = p2('float64')
  for text, factor in (
      ('exponential:0.5:2', [1, 1, 0.5, 0.5, 0.25]),
      ('inverse_sqrt:3:1', [1, 1 / 2, 7**-0.5, 10**-0.5, 13**-0.5]),
      ('inverse_linear:1:2', [1, 1 / 1.5, 1 / 2, 1 / 2.5, 1 / 3]),
  ):
    ours = problems.rounds(
        problem, COHORTS, 'fedavg', client_learning_rate_schedule=text
    )
    x = problem.initial
    for cohort, f, got in zip(COHORTS, factor, ours):
      one = _restart(problem, x)
      x = numpy_fedopt(one, [cohort], lambda s, d, t: d, client_lr=0.1 * f)[0]
      assert problems.distance([got], [x]) < 1e-10, text


def _restart(problem, x):
  """The problem with another initial model."""
  other = p2('float64')
  other._d = dict(
      other._d,
      initial_weights={
          n: w.tolist() for (n, _), w in zip(other._d['layers'], x)
      },
  )
  return other


def test_weighting_tokens_needs_tokens():
  with pytest.raises(ValueError, match='num_tokens'):
    algorithms.build('fedavg', p2().model_fn, client_weighting='tokens')


def test_uniform_weighting():
  problem = p2('float64')
  ours = problems.rounds(
      problem, [[0, 3]], 'fedavg', client_weighting='uniform'
  )
  alone = [
      problems.rounds(problem, [[i]], 'fedavg')[0] for i in (0, 3)
  ]
  mean = [(a + b) / 2 for a, b in zip(*alone)]
  assert problems.distance(ours, [mean]) < 1e-12


def test_order_of_the_cohort_does_not_matter():
  problem = p2('float64')
  one = problems.rounds(problem, [[0, 1, 3]], 'fedadam')
  other = problems.rounds(problem, [[3, 0, 1]], 'fedadam')
  assert problems.distance(one, other) < 1e-14


def test_non_finite_client_is_left_out_and_counted():
  broken = dict(OFFICIAL['problems']['P2'])
  broken['clients'] = [dict(c) for c in broken['clients']]
  broken['clients'][1]['x'] = [[np.inf] * 4] * len(broken['clients'][1]['x'])
  problem = problems.Problem(broken)
  runtime.use()
  process = algorithms.build('fedavg', problem.model_fn)
  state = process.initialize()
  output = process.next(state, [problem.client_input(i) for i in (0, 1, 3)])
  work = output.metrics['client_work']
  assert work['non_finite_clients'] == 1
  assert np.isfinite(work['train']['loss'])
  without = problems.rounds(p2(), [[0, 3]], 'fedavg')[0]
  ours = output.state.global_model_weights['model'].trainable
  assert problems.distance([list(ours)], [without]) == 0
  # A cohort of nothing else leaves the server where it was.
  output = process.next(state, [problem.client_input(1)])
  ours = output.state.global_model_weights['model'].trainable
  assert problems.distance([list(ours)], [problem.initial]) == 0


def test_client_without_examples_counts_for_nothing():
  problem = p2()
  runtime.use()
  process = algorithms.build(
      'fedavg', problem.model_fn, client_weighting='uniform'
  )
  empty = problem.client_input(1)
  empty['examples'] = empty['examples'].take(0)
  output = process.next(process.initialize(), [problem.client_input(0), empty])
  alone = problems.rounds(p2(), [[0]], 'fedavg', client_weighting='uniform')[0]
  ours = output.state.global_model_weights['model'].trainable
  assert problems.distance([list(ours)], [alone]) == 0


def test_one_trace_serves_a_grid():
  problem = p2()
  runtime.use()
  given = [
      dict(
          client_learning_rate=lr,
          server_learning_rate=s,
          tau=tau,
          client_learning_rate_schedule=f'exponential:{lr}:1',
      )
      for lr, s, tau in ((0.1, 0.1, 1e-3), (0.03, 0.5, 1e-1))
  ]
  assert algorithms.trace_key('fedyogi', given[0]) == algorithms.trace_key(
      'fedyogi', given[1]
  )
  process = algorithms.build('fedyogi', problem.model_fn, **given[0])
  state = algorithms.set_hyperparameters(
      process, process.initialize(), 'fedyogi', given[1]
  )
  reused = []
  for cohort in COHORTS:
    state, _ = process.next(state, [problem.client_input(i) for i in cohort])
    model = state.global_model_weights['model']
    reused.append([np.array(w) for w in model.trainable])
  built = problems.rounds(problem, COHORTS, 'fedyogi', **given[1])
  assert problems.distance(reused, built) == 0
