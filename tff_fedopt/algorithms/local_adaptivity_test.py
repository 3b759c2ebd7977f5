"""Correction matrices and synchronised states, with numbers."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt import algorithms
from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import fedopt_test
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees
from tff_fedopt.testing import problems

OFFICIAL = problems.golden('official')
COHORTS = fedopt_test.COHORTS


@pytest.mark.parametrize(
    'case',
    [c for c in OFFICIAL['cases'] if c['correction'] != 'none'],
    ids=lambda c: c['id'],
)
def test_matches_google_research_federated(case):
  problem = problems.Problem(OFFICIAL['problems'][case['problem']])
  name, hp = fedopt_test.official_hyperparameters(case)
  hp['correction'] = case['correction'].replace('joint', 'global')
  cohorts = [r['cohort'] for r in case['rounds']]
  ours = problems.rounds(problem, cohorts, name, **hp)
  theirs = [r['weights'] for r in case['rounds']]
  assert problems.distance(ours, theirs) < 1e-5


CLIENTS = [
    dict(client_optimizer='sgd'),
    dict(client_optimizer='momentum', client_momentum=0.7),
    dict(client_optimizer='nesterov', client_momentum=0.7),
    dict(client_optimizer='ema_momentum', client_momentum=0.7),
    dict(client_optimizer='adagrad', client_epsilon=0.05),
    dict(client_optimizer='adam', client_epsilon=0.05),
    dict(client_optimizer='adam', client_bias_correction=True),
    dict(client_optimizer='yogi', client_initial_accumulator=0.3),
    dict(client_optimizer='yogi', client_bias_correction=True),
]


@pytest.mark.parametrize(
    'options', CLIENTS, ids=lambda o: '-'.join(map(str, o.values()))
)
@pytest.mark.parametrize('pull', [0.0, 0.4])
def test_displacement_is_that_of_all_ones_gradients(options, pull):
  """N_i, and the real steps taken again with all-ones gradients.

  The preconditioners of the second pass are forced to those of the first: the
  optimizer's state keeps v and the step count, only the momentum is replaced.
  With a pull c, the gradient of the second pass is 1 − c · displacement.
  """
  hp = algorithms.validate('fedavg', dict(options, client_learning_rate=0.3))
  optimizer = assembly.local_training(hp, local_method.LocalMethod()).optimizer
  rng = np.random.default_rng(7)
  spec = (tf.TensorSpec([4], tf.float64),)
  state = optimizer.initialize(spec)
  ones = optimizer.initialize(spec)
  zero = (tf.zeros([4], tf.float64),)
  q, n = zero, zero
  moved = np.zeros(4)
  for _ in range(6):
    before = state
    g = (tf.constant(rng.normal(size=4)),)
    state, _ = optimizer.next(state, zero, g)
    q, step = optimizer.unit_displacement(
        state, q, (1 - pull * n[0],)
    )
    n = trees.add(n, step)
    ones = _step_with_preconditioner_of(
        optimizer, before, state, ones, 1 - pull * moved
    )
    moved = moved + ones.pop('displacement')
  np.testing.assert_allclose(n[0], moved, rtol=1e-12)


def _step_with_preconditioner_of(optimizer, before, after, ones, gradient):
  """One step along `gradient` with the preconditioner of a real step."""
  gradient = (tf.constant(gradient),)
  forced = collections.OrderedDict(before)
  for slot in ('first_moment', 'momentum_buffer'):
    if slot in forced:
      forced[slot] = ones[slot]
  if 'second_moment' in forced:
    # What v must have been so that this step's v is the real one.
    v = after['second_moment'][0]
    forced['second_moment'] = (v,)
    held = optimizer.second_moment
    optimizer.second_moment = lambda hparams, v, g2: v
  try:
    new, moved_to = optimizer.next(
        forced, (tf.zeros([4], tf.float64),), gradient
    )
  finally:
    if 'second_moment' in forced:
      optimizer.second_moment = held
  result = collections.OrderedDict(new)
  result['displacement'] = -moved_to[0].numpy()
  return result


@pytest.mark.parametrize(
    'name,hp,pull',
    [
        ('fedavg', dict(), 0.0),
        ('fedavg', dict(weight_decay=0.5), 0.5),
        ('fedprox', dict(mu=0.5), 0.5),
    ],
    ids=['plain', 'decay', 'prox'],
)
def test_local_correction_of_sgd_is_fednova(name, hp, pull):
  """u = Σ w_i (x − y_i) / N_i, by hand from uncorrected runs.

  N_i is η_l K_i; pulled by λ, of weight decay or the proximal term, it is
  (1 − (1 − η_l λ)^K_i) / λ.
  """
  problem = fedopt_test.p2('float64')
  corrected = problems.rounds(
      problem,
      [[0, 3]],
      name,
      correction='local',
      server_learning_rate=0.1,
      **hp,
  )
  x = problem.initial
  u = [np.zeros_like(w) for w in x]
  total = sum(len(problem.examples(i)[0]) for i in (0, 3))
  for i in (0, 3):
    y = problems.rounds(problem, [[i]], name, **hp)[0]
    share = len(problem.examples(i)[0]) / total
    steps = len(problem.batches(i))
    n = (1 - (1 - 0.1 * pull) ** steps) / pull if pull else 0.1 * steps
    u = [s + share * (a - b) / n for s, a, b in zip(u, x, y)]
  expected = [w - 0.1 * s for w, s in zip(x, u)]
  assert problems.distance(corrected, [expected]) < 1e-12


def test_global_correction_with_equal_n_is_no_correction():
  """SGD with equally many steps: every N_i is the same matrix."""
  problem = problems.Problem(
      problems.golden('flsimulator')['problems']['P2eq'], 'float64'
  )
  plain = problems.rounds(problem, COHORTS, 'fedavg')
  corrected = problems.rounds(problem, COHORTS, 'fedavg', correction='global')
  assert problems.distance(plain, corrected) < 1e-14
  unequal = fedopt_test.p2('float64')
  plain = problems.rounds(unequal, COHORTS, 'fedavg')
  corrected = problems.rounds(unequal, COHORTS, 'fedavg', correction='global')
  assert problems.distance(plain, corrected) > 1e-3


def _adagrad(state, g):
  v = [a + d**2 for a, d in zip(state['v'], g)]
  step = [d / (np.sqrt(a) + 0.01) for d, a in zip(g, v)]
  return dict(state, v=v), step


def _adam(state, g):
  k = state['k'] + 1
  m = [0.9 * a + 0.1 * d for a, d in zip(state['m'], g)]
  v = [0.99 * a + 0.01 * d**2 for a, d in zip(state['v'], g)]
  rate = np.sqrt(1 - 0.99**k) / (1 - 0.9**k)
  step = [rate * a / (np.sqrt(c) + 0.01) for a, c in zip(m, v)]
  return dict(k=k, m=m, v=v), step


@pytest.mark.parametrize(
    'optimizer,options',
    [
        (_adagrad, dict(client_optimizer='adagrad')),
        (
            _adam,
            dict(
                client_optimizer='adam',
                client_beta1=0.9,
                client_beta2=0.99,
                client_bias_correction=True,
            ),
        ),
    ],
    ids=['adagrad', 'adam'],
)
def test_synchronised_states_in_numpy(optimizer, options):
  """The server's state grows by the example-weighted mean growth.

  The number of steps does so too; a client starts from it rounded.
  """
  problem = fedopt_test.p2('float64')
  ours = problems.rounds(
      problem,
      COHORTS,
      'fedavg',
      client_state='sync',
      client_learning_rate=0.05,
      client_epsilon=0.01,
      client_initial_accumulator=0.1,
      **options,
  )
  x = problem.initial
  held = dict(
      k=0.0,
      m=[np.zeros_like(w) for w in x],
      v=[np.full_like(w, 0.1) for w in x],
  )
  for cohort, got in zip(COHORTS, ours):
    n_total = sum(
        len(b[0]) for i in cohort for b in problem.batches(i)
    )
    delta = [np.zeros_like(w) for w in x]
    new = dict(held)
    for i in cohort:
      y, n = x, 0
      state = dict(held, k=np.round(held['k']))
      for bx, by in problem.batches(i):
        state, step = optimizer(state, problem.gradient(y, bx, by))
        y = [w - 0.05 * d for w, d in zip(y, step)]
        n += len(bx)
      share = n / n_total
      delta = [s + share * (b - a) for s, a, b in zip(delta, x, y)]
      new['k'] += share * (state['k'] - np.round(held['k']))
      for slot in 'mv':
        new[slot] = [
            s + share * (b - a)
            for s, a, b in zip(new[slot], held[slot], state[slot])
        ]
    x = [w + d for w, d in zip(x, delta)]
    held = new
    assert problems.distance([got], [x]) < 1e-11


def test_bytes_on_the_network():
  problem = fedopt_test.p2()
  model = sum(w.nbytes for w in problem.initial)
  adagrad = dict(client_optimizer='adagrad')
  adam = dict(client_optimizer='adam')
  for options, down, up in (
      (adagrad, model, model),
      (dict(adagrad, correction='local'), model, model),
      (dict(adagrad, correction='global'), model, 2 * model),
      # What the optimizer keeps and the step count travel both ways.
      (dict(adagrad, client_state='sync'), 2 * model + 8, 2 * model + 8),
      (dict(adam, client_state='sync'), 3 * model + 8, 3 * model + 8),
  ):
    process = algorithms.build('fedavg', problem.model_fn, **options)
    assert (process.bytes_down, process.bytes_up) == (down, up), options


def test_correction_of_a_synchronised_state_is_refused():
  with pytest.raises(ValueError, match='client_state=restart'):
    algorithms.validate('fedavg', dict(client_state='sync', correction='local'))
