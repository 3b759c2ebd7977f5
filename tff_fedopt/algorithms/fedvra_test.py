"""FedVRA against NumPy, its equations, its special cases, and its optimum."""

import collections
import glob
import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.algorithms import fedvra
from tff_fedopt.processes import client_input
from tff_fedopt.processes import local_method
from tff_fedopt.processes import local_steps
from tff_fedopt.processes import per_client
from tff_fedopt.testing import problems

OFFICIAL = problems.golden('official')
RATE = 0.05
GAMMA = 0.4
# Clients 1 and 3 come for the first time when the model has moved.
COHORTS = [[0, 2], [1, 3], [0, 1, 3], [2], [1, 2]]
EVERYBODY = [[0, 1, 2, 3]] * 3
OWN = dict(
    gamma={'1': 0.3},
    client_learning_rate={'0': 0.02},
    weight={'3': 2.5, '1': 0.5},
    local_steps={'2': [1, 9], '0': 2},
)


@pytest.fixture(scope='module')
def runner(tmp_path_factory):
  return Runner(tmp_path_factory.mktemp('client_state'))


def p2():
  return problems.Problem(OFFICIAL['problems']['P2'], 'float64')


class Runner:
  """Runs algorithms; runs that differ in numbers alone share a traced one."""

  def __init__(self, directory):
    self._directory = directory
    self._made = {}

  def start(self, problem, name, **hp):
    """A process and its first state."""
    runtime.use()
    hp = algorithms.validate(
        name,
        {'client_learning_rate': RATE, 'client_weighting': 'uniform', **hp},
    )
    key = (str(problem.initial), algorithms.trace_key(name, hp))
    if key not in self._made:
      state_dir = str(self._directory / str(len(self._made)))
      process = algorithms.build_parsed(
          name, problem.model_fn, hp.placed(len(problem.names), state_dir)
      )
      self._made[key] = process, state_dir
    process, state_dir = self._made[key]
    hp = hp.placed(len(problem.names), state_dir)
    state = algorithms.set_hyperparameters(
        process, process.initialize(), name, hp
    )
    return process, state, state_dir

  def rounds(self, problem, cohorts, name, **hp):
    """A `Round` after each of the cohorts."""
    process, state, state_dir = self.start(problem, name, **hp)
    after = []
    for cohort in cohorts:
      state, metrics = process.next(
          state, [problem.client_input(i) for i in cohort]
      )
      after.append(Round(state, metrics, state_dir))
    return after

  def weights(self, problem, cohorts, name, **hp):
    return [r.weights for r in self.rounds(problem, cohorts, name, **hp)]


class Round:
  """What is there after a round."""

  def __init__(self, state, metrics, state_dir):
    self.weights = [
        np.array(w) for w in state.global_model_weights['model'].trainable
    ]
    self.metrics = metrics
    self.state = state
    self._state_dir = state_dir

  @property
  def dual(self):
    """The server's λ as one vector."""
    return flat([np.asarray(l) for l in tuple(self.state.aggregator['mean'])])

  def client_dual(self, i):
    """λ_i as one vector, read from the client's file."""
    name = tf.io.encode_base64(str(i)).numpy().decode()
    run, rounds = self.state.client_work['run'], self.state.client_work['round']
    files = sorted(glob.glob(f'{self._state_dir}/*/{name}.{run}.*.index'))
    files = [f for f in files if int(f.split('.')[-2]) < rounds]
    if not files:
      return np.zeros(sum(w.size for w in self.weights))
    reader = tf.train.load_checkpoint(files[-1].removesuffix('.index'))
    return flat(
        [reader.get_tensor(f'dual/{j}') for j in range(len(self.weights))]
    )


def flat(weights):
  return np.concatenate([np.ravel(w) for w in weights])


class Numpy:
  """The problem's gradients on flat vectors, and clients' numbers."""

  def __init__(self, problem, gamma=GAMMA, own=None):
    self.problem = problem
    self.n = len(problem.names)
    shapes = [w.shape for w in problem.initial]
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
    self.unflat = lambda v: [
        p.reshape(s) for p, s in zip(np.split(v, ends), shapes)
    ]
    own = own or {}
    value = lambda name, common: [
        own.get(name, {}).get(str(i), common) for i in range(self.n)
    ]
    self.gamma = np.array(value('gamma', gamma))
    self.rate = np.array(value('client_learning_rate', RATE))
    weight = np.array(value('weight', 1.0))
    self.omega = weight / weight.sum()
    self.beta = 1 / np.sum(self.omega * self.gamma)
    self.own_steps = value('local_steps', None)

  def batches(self, i, r):
    batches = self.problem.batches(i)
    steps = self.own_steps[i]
    if steps is None:
      return batches
    if isinstance(steps, list):
      steps = steps[r % len(steps)]
    return [b for b, _ in zip(itertools.cycle(batches), range(steps))]

  def gradient(self, x, batch):
    return flat(self.problem.gradient(self.unflat(x), *batch))

  def shrunk(self, i, q):
    """Q̃ and the weights b of q local steps."""
    b = (1 - self.rate[i] * self.gamma[i]) ** np.arange(q - 1, -1, -1)
    return b.sum(), b


def algorithm(reference, cohorts, dual, aggregation, relaxation=0.0):
  """Steps 8, 14, 15, 19 and 20: (x_0, λ, all λ_i) after every round."""
  ref = reference
  x0 = flat(ref.problem.initial)
  server, duals = np.zeros_like(x0), np.zeros([ref.n, x0.size])
  last = np.tile(x0, [ref.n, 1])
  after = []
  for r, cohort in enumerate(cohorts):
    dual_sum, model_sum = 0, 0
    for i in cohort:
      start = x0 + relaxation * (x0 - last[i])
      x, batches = start, ref.batches(i, r)
      for batch in batches:
        g = ref.gradient(x, batch)
        x = x - ref.rate[i] * (g - duals[i] + ref.gamma[i] * (x - start))
      a, d = dual(i, len(batches)), aggregation(cohort)
      delta, last[i] = x - start, x
      duals[i] = duals[i] - a * ref.gamma[i] * delta
      dual_sum += ref.omega[i] * a * ref.gamma[i] * delta
      model_sum += ref.omega[i] * d * ref.gamma[i] * delta
    server = server - dual_sum
    x0 = x0 + ref.beta * model_sum - ref.beta * server
    after.append((x0, server, duals.copy()))
  return after


def lemma(reference, cohorts, dual, aggregation):
  """Lemma 1's form: equations (13), (14) and (10)."""
  ref = reference
  x0 = flat(ref.problem.initial)
  duals = np.zeros([ref.n, x0.size])
  anchor = x0  # x_0 before −β λ.
  after = []
  for r, cohort in enumerate(cohorts):
    server = ref.omega @ duals
    new_duals, moved = duals.copy(), np.zeros([ref.n, x0.size])
    for i in cohort:
      eta, gamma = ref.rate[i], ref.gamma[i]
      batches = ref.batches(i, r)
      q_tilde, b = ref.shrunk(i, len(batches))
      x, average = x0, 0
      for weight, batch in zip(b, batches):
        g = ref.gradient(x, batch)
        average = average + weight / q_tilde * g
        correction = gamma * ref.beta * server - duals[i]
        x = (
            (1 - eta * gamma) * x + eta * gamma * anchor - eta * (
                g + correction
            )
        )
      share = dual(i, len(batches)) * gamma * eta * q_tilde
      new_duals[i] = (1 - share) * duals[i] + share * average
      # The local result: x_i − x_0 = −η_i Q̃_i (G_i − λ_i).
      moved[i] = -eta * q_tilde * (average - duals[i])
      np.testing.assert_allclose(x - x0, moved[i], atol=1e-12)
    duals = new_duals
    step = aggregation(cohort) * ref.beta * (ref.omega * ref.gamma) @ moved
    anchor = x0 + step
    x0 = anchor - ref.beta * ref.omega @ duals
    after.append((x0, ref.omega @ duals, duals))
  return after


def assert_follows(rounds, expected, tolerance=1e-10):
  for ours, (x0, server, duals) in zip(rounds, expected, strict=True):
    assert np.abs(flat(ours.weights) - x0).max() < tolerance
    assert np.abs(ours.dual - server).max() < tolerance
    stored = [ours.client_dual(i) for i in range(len(duals))]
    assert np.abs(np.array(stored) - duals).max() < tolerance


@pytest.mark.parametrize('form', [algorithm, lemma])
@pytest.mark.parametrize(
    'dual,aggregation,own',
    [
        ('0.7', 'N/m', {}),
        ('rho:0.6', '1/sum', OWN),
    ],
    ids=['constant', 'rule-own'],
)
def test_is_the_algorithm_and_the_lemma(form, dual, aggregation, own, runner):
  """Equations (8) to (14) and steps 14 to 20, at any participation."""
  problem = p2()
  ref = Numpy(problem, own=own)

  def a(i, q):
    if dual != 'rho:0.6':
      return 0.7
    return 0.6 / (ref.gamma[i] * ref.rate[i] * ref.shrunk(i, q)[0])

  def d(cohort):
    return ref.n / len(cohort) if aggregation == 'N/m' else (
        1 / ref.omega[cohort].sum()
    )

  rounds = runner.rounds(
      problem,
      COHORTS,
      'fedvra',
      gamma=GAMMA,
      dual_step=dual,
      aggregation_step=aggregation,
      **(dict(per_client=json.dumps(own)) if own else {}),
  )
  assert_follows(rounds, form(ref, COHORTS, a, d))
  # λ = Σ ω_i λ_i, from what is stored alone.
  for r in rounds:
    mean = ref.omega @ [r.client_dual(i) for i in range(ref.n)]
    assert np.abs(r.dual - mean).max() < 1e-14
  assert np.abs(rounds[-1].dual).max() > 1e-3


def test_relaxed_clients_have_their_own_start(runner):
  """For the penalty, for δ_i and for λ_i."""
  problem = p2()
  hp = dict(gamma=GAMMA, dual_step=0.7, relaxation=0.3)
  expected = algorithm(
      Numpy(problem), COHORTS, lambda i, q: 0.7, lambda c: 4 / len(c), 0.3
  )
  assert_follows(runner.rounds(problem, COHORTS, 'fedvra', **hp), expected)


@pytest.mark.parametrize('one_for_all', [True, False])
def test_dual_that_is_not_finite_is_not_kept(one_for_all):
  """Step 19 on its own; the finalizer is told, and drops the round."""
  runtime.use()
  vector, number = tff.TensorType(np.float64, [2]), np.float64
  value_type = collections.OrderedDict(change=[vector], dual_step=number)
  names = ('present', 'omega', 'gamma', 'aggregation_step')
  process = fedvra.DualSum(one_for_all).create(
      tff.to_type(value_type),
      tff.to_type(collections.OrderedDict.fromkeys(names, number)),
  )
  weight = collections.OrderedDict(zip(names, (1.0, 0.25, 2.0, 3.0)))

  def after(state, change):
    value = collections.OrderedDict(change=[np.array(change)], dual_step=0.5)
    output = process.next(state, [value], [weight])
    return output.state, output.result

  state, result = after(process.initialize(), [2.0, 4.0])
  np.testing.assert_allclose(state[0], [0.5, 1.0])
  np.testing.assert_allclose(result['dual'][0], [0.5, 1.0])
  np.testing.assert_allclose(result['change'][0], [3.0, 6.0])
  kept, result = after(state, [np.inf, 0.0])
  np.testing.assert_array_equal(kept[0], state[0])
  assert not np.isfinite(result['dual'][0]).all()


@pytest.mark.parametrize(
    'hp,expected',
    [
        (dict(), True),
        (dict(per_client='{"gamma": {"x": 1}, "weight": {"x": 2}}'), True),
        (dict(per_client='{"dual_step": {"x": 0.5}}'), False),
        (
            dict(
                per_client='{"aggregation_step": {"x": 2}}', aggregation_step=1
            ),
            False,
        ),
        (dict(dual_step='rho:0.5'), False),
    ],
)
def test_one_sum_serves_both_lines_only_where_steps_are_equal(
    hp, expected, monkeypatch, tmp_path
):
  class Asked(Exception):
    pass

  def asked(one_for_all):
    raise Asked(one_for_all)

  monkeypatch.setattr(fedvra, 'DualSum', asked)
  with pytest.raises(Asked) as found:
    algorithms.build(
        'fedvra', None, num_clients=4, state_dir=str(tmp_path), **hp
    )
  assert found.value.args == (expected,)


def test_clients_without_a_result_have_no_weight():
  """ω is 1/6 of four clients of which another one has weight 3."""
  method = fedvra.FedVra(
      'constant', fedvra._Population({'weight': {'x': 3.0}})
  )
  hparams = dict(gamma=0.5, aggregation_step=2.0, num_clients=4.0)
  client = local_method.Client(hparams, (), (), ())
  for present in (0.0, 1.0):
    weight = method.weight(client, tf.constant(present))
    assert weight['present'] == present
    assert float(weight['omega']) == pytest.approx(present / 6)


def test_own_steps(runner):
  """a_i and d_i by client, seven local steps."""
  problem = p2()
  own = dict(dual_step={'0': 0.5, '2': 0}, aggregation_step={'1': 2})
  ref = Numpy(problem)
  a = lambda i, q: [0.5, 0.9, 0, 0.9][i]
  rounds = runner.rounds(
      problem,
      COHORTS,
      'fedvra',
      gamma=GAMMA,
      dual_step=0.9,
      aggregation_step=1.5,
      local_steps=7,
      per_client=json.dumps(own),
  )
  ref.own_steps = [7] * 4
  x0, server = flat(problem.initial), 0
  duals = np.zeros([4, x0.size])
  for r, cohort in enumerate(COHORTS):
    model_sum = 0
    for i in cohort:
      x = x0
      for batch in ref.batches(i, r):
        g = ref.gradient(x, batch)
        x = x - RATE * (g - duals[i] + GAMMA * (x - x0))
      duals[i] = duals[i] - a(i, 0) * GAMMA * (x - x0)
      model_sum = model_sum + (2 if i == 1 else 1.5) * (x - x0) / 4
    server = duals.mean(0)
    x0 = x0 + model_sum - server / GAMMA
    assert np.abs(flat(rounds[r].weights) - x0).max() < 1e-10
    steps = rounds[r].metrics['client_work']['local_steps']
    assert steps == 7 * len(cohort)


@pytest.mark.parametrize(
    'given,name,theirs',
    [
        (dict(dual_step=0), 'fedprox', dict(mu=GAMMA)),
        (dict(dual_step=1), 'feddyn', dict(alpha=GAMMA)),
    ],
    ids=['fedprox', 'feddyn'],
)
def test_special_cases(given, name, theirs, runner):
  """a = 0 and a = 1 with d = N/m."""
  problem = p2()
  ours = runner.weights(problem, COHORTS, 'fedvra', gamma=GAMMA, **given)
  other = runner.weights(problem, COHORTS, name, **theirs)
  assert problems.distance(ours, other) < 1e-12


def test_fedavg_is_the_limit_without_penalty(runner):
  """a = 0, d = N/m; what is left of the penalty is of first order in γ."""
  problem = p2()
  fedavg = runner.weights(problem, COHORTS, 'fedprox', mu=0.0)
  distances = [
      problems.distance(
          runner.weights(problem, COHORTS, 'fedvra', gamma=g, dual_step=0),
          fedavg,
      )
      for g in (1e-4, 1e-9)
  ]
  assert 1e-8 < distances[0] < 1e-4
  assert distances[1] < 1e-9


def test_federated_admm_is_a_and_d_one(runner):
  """(7a) by local steps, (7b), (7c) in the form (7d); in NumPy, and fedvra."""
  problem = p2()
  admm = runner.rounds(problem, COHORTS, 'fedadmm', gamma=GAMMA)
  ref = Numpy(problem)
  x0 = flat(problem.initial)
  duals = np.zeros([4, x0.size])
  for r, cohort in enumerate(COHORTS):
    local = np.tile(x0, [4, 1])
    for i in cohort:
      for batch in ref.batches(i, r):
        g = ref.gradient(local[i], batch)
        local[i] -= RATE * (g - duals[i] + GAMMA * (local[i] - x0))
      duals[i] += GAMMA * (x0 - local[i])
    x0 = ref.beta * ref.omega @ (GAMMA * local - duals)
    assert np.abs(flat(admm[r].weights) - x0).max() < 1e-12
  vra = runner.weights(
      problem, COHORTS, 'fedvra', gamma=GAMMA, aggregation_step=1
  )
  assert problems.distance(vra, [r.weights for r in admm]) == 0


def test_fedpd_is_federated_admm_with_all_clients(runner):
  """FedPD with penalty 1/(2η) ‖x − x_0‖², η = 1/γ, communicating each round."""
  problem = p2()
  ref = Numpy(problem)
  eta = 1 / GAMMA
  centre = flat(problem.initial)
  duals = np.zeros([4, centre.size])
  expected = []
  for r, cohort in enumerate(EVERYBODY):
    proposals = []
    for i in cohort:
      x = centre
      for batch in ref.batches(i, r):
        g = ref.gradient(x, batch)
        x = x - RATE * (g + duals[i] + (x - centre) / eta)
      duals[i] = duals[i] + (x - centre) / eta
      proposals.append(x + eta * duals[i])
    centre = np.mean(proposals, 0)
    expected.append(centre)
  ours = runner.weights(problem, EVERYBODY, 'fedadmm', gamma=GAMMA)
  for w, x in zip(ours, expected, strict=True):
    assert np.abs(flat(w) - x).max() < 1e-12


def test_scaffold_is_the_limit_from_z(runner):
  """With share 1 and γη → 0, started at z = x_0 + β λ, no penalty to it.

  What separates FedVRA from SCAFFOLD is then only that step and that penalty.
  """
  problem = p2()
  ref = Numpy(problem)
  scaffold = [
      flat(w) for w in runner.weights(problem, COHORTS, 'scaffold', option=2)
  ]

  def from_z(gamma):
    z = flat(problem.initial)
    duals = np.zeros([4, z.size])
    path = []
    for r, cohort in enumerate(COHORTS):
      server, ends = duals.mean(0), []
      for i in cohort:
        x, batches = z, ref.batches(i, r)
        for batch in batches:
          g = ref.gradient(x, batch)
          x = x - RATE * (g + server - duals[i] + gamma * (x - z))
        q_tilde = (1 - (1 - gamma * RATE) ** len(batches)) / (gamma * RATE)
        # (14) with share 1: λ_i = G_i, read off the local result.
        duals[i] = duals[i] - server - (x - z) / (RATE * q_tilde)
        ends.append(x)
      z = np.mean(ends, 0)
      path.append(z)
    return path

  distances = [
      max(np.abs(a - b).max() for a, b in zip(from_z(g), scaffold))
      for g in (1.0, 0.1, 0.01)
  ]
  assert distances[0] > 1e-3
  for larger, smaller in zip(distances, distances[1:]):
    assert 0.07 < smaller / larger < 0.14

  # One round of the real process from no duals: z and λ are SCAFFOLD's x and c.
  first = []
  for gamma in (0.1, 0.01):
    vra = runner.rounds(
        problem, COHORTS[:1], 'fedvra', gamma=gamma, dual_step='rho:1'
    )[0]
    z = flat(vra.weights) + vra.dual / gamma
    first.append(np.abs(z - scaffold[0]).max())
  assert first[0] > 1e-5 and 0.09 < first[1] / first[0] < 0.11


def test_expectation_over_cohorts(runner):
  """(15) and (16): the mean over all cohorts of two, for d = 1 and d = N/m."""
  problem = p2()
  ref = Numpy(problem)
  for step, d in (('1', 1.0), ('N/m', 2.0)):
    hp = dict(gamma=GAMMA, dual_step=0.7, aggregation_step=step)
    process, state, state_dir = runner.start(problem, 'fedvra', **hp)
    inputs = [problem.client_input(i) for i in range(4)]
    state = process.next(state, inputs[:3]).state
    before = Round(state, None, state_dir)
    local = np.zeros([4, before.dual.size])
    for i in range(4):
      old = before.client_dual(i)
      new = Round(process.next(state, [inputs[i]]).state, None, state_dir)
      local[i] = flat(before.weights) - (new.client_dual(i) - old) / (
          0.7 * GAMMA
      )
    x, dual = [], []
    for pair in itertools.combinations(range(4), 2):
      output = process.next(state, [inputs[i] for i in pair])
      after = Round(output.state, None, state_dir)
      x.append(flat(after.weights))
      dual.append(after.dual)
    start = flat(before.weights)
    average = ref.beta * (ref.omega * GAMMA) @ local
    expected = start + 0.5 * d * (average - start)  # (15)
    if step == 'N/m':
      np.testing.assert_allclose(expected, average, atol=1e-12)  # (16)
    np.testing.assert_allclose(
        np.mean(x, 0),
        expected - ref.beta * np.mean(dual, 0),
        atol=1e-10,
    )


def quadratics(seed=0):
  """Four regressions of different difficulty; H_i and minimisers differ."""
  rng = np.random.default_rng(seed)
  clients = []
  for scale in (0.8, 0.9, 1.0, 1.1):
    x = scale * rng.normal(size=[24, 3])
    y = x @ rng.normal(size=[3, 1]) + 3 * rng.normal()
    clients.append(dict(x=x.tolist(), y=y.tolist()))
  return problems.Problem(
      dict(
          model='linreg',
          layers=[['W', [3, 1]], ['b', [1]]],
          initial_weights=dict(W=np.zeros([3, 1]).tolist(), b=[0.0]),
          batch_size=24,
          local_epochs=1,
          clients=clients,
      ),
      'float64',
  )


def test_optimum_of_quadratics_whatever_the_local_steps(runner):
  """FedVRA reaches it; FedAvg ends where its fixed point is predicted."""
  problem = quadratics()
  steps = [1, 8, 3, 5]
  own = dict(local_steps={str(i): q for i, q in enumerate(steps)})
  hessians, targets = [], []
  for i in range(4):
    x, y = problem.examples(i)
    x = np.concatenate([x, np.ones([len(x), 1])], 1)
    hessians.append(2 * x.T @ x / len(x))
    targets.append(np.linalg.lstsq(x, y, rcond=None)[0][:, 0])

  def solution(matrices):
    return np.linalg.solve(
        sum(matrices), sum(m @ t for m, t in zip(matrices, targets))
    )

  optimum = solution(hessians)
  eye, rate = np.eye(4), 0.1
  # x = mean of x + (I − (I − η H)^Q) (x_i* − x) at FedAvg's fixed point.
  wrong = solution([
      eye - np.linalg.matrix_power(eye - rate * h, q)
      for h, q in zip(hessians, steps)
  ])
  assert np.abs(wrong - optimum).max() > 0.3
  everybody = [[0, 1, 2, 3]] * 45
  hp = dict(
      per_client=json.dumps(own), gamma=2.0, client_learning_rate=rate
  )
  vra = runner.weights(problem, everybody, 'fedvra', **hp)
  assert np.abs(flat(vra[-1]) - optimum).max() < 1e-5
  hp['gamma'] = 1e-9
  average = runner.weights(problem, everybody, 'fedvra', dual_step=0, **hp)
  assert np.abs(flat(average[-1]) - wrong).max() < 1e-5


def test_random_steps_are_a_function_of_client_and_round():
  steps = local_steps.LocalSteps.parse('random:2:4')
  batches = tf.data.Dataset.range(3)

  def count(seed, round_num=0):
    seed = tf.constant(seed, tf.int64)
    return len(list(steps.batches(batches, None, round_num, seed)))

  counts = [count(s) for s in range(60)]
  assert counts == [count(s) for s in range(60)]
  # The seed is the round's; (seed, t) is for step t of the model's randomness.
  assert counts == [count(s, tf.constant(5, tf.int64)) for s in range(60)]
  assert collections.Counter(counts).keys() == {2, 3, 4}
  assert min(collections.Counter(counts).values()) > 8


@pytest.mark.parametrize(
    'text,listed,expected',
    [
        ('all', None, [0, 1, 2]),
        ('5', None, [0, 1, 2, 0, 1]),
        ('2', [0], [0, 1]),
        ('2', [4, 1], [0]),
        ('all', [4, 1], [0]),
        ('all', [0], [0, 1, 2]),
    ],
)
def test_batches_of_local_steps(text, listed, expected):
  if listed is not None:
    listed = tf.constant(listed, tf.int64)
  one = tf.constant(1, tf.int64)
  batches = local_steps.LocalSteps.parse(text).batches(
      tf.data.Dataset.range(3), listed, one, one
  )
  assert [int(b) for b in batches] == expected
  nothing = local_steps.LocalSteps.parse(text).batches(
      tf.data.Dataset.range(0), listed, one, one
  )
  assert not list(nothing)


def test_steps_of_a_client():
  own = per_client.PerClient.parse('{"local_steps": {"a": [3, 1], "b": 7}}')
  of = lambda i: list(
      per_client.steps_of_client(own.values['local_steps'], i).numpy()
  )
  assert [of('a'), of('b'), of('c')] == [[3, 1], [7], [0]]


@pytest.mark.parametrize(
    'name,hp,expected',
    [
        ('fedavg', {}, None),
        ('fedavg', dict(local_steps=5), 5),
        ('fedvra', dict(gamma=GAMMA, local_steps='random:1:9'), 9),
        (
            'fedvra',
            dict(
                gamma=GAMMA,
                local_steps=5,
                per_client='{"local_steps": {"0": [9]}}',
            ),
            None,
        ),
        ('scaffold', dict(local_steps=5, option=2), 5),
        # All examples, for the gradient of the whole loss.
        ('scaffold', dict(local_steps=5, option=1), None),
        ('scaffold', dict(local_steps=5, option=1, relaxation=0.1), None),
    ],
)
def test_batches_that_clients_need(runner, name, hp, expected):
  assert runner.start(p2(), name, **hp)[0].max_batches == expected


def test_one_vector_and_a_number_go_up(runner):
  problem = p2()
  process, _, _ = runner.start(problem, 'fedvra', gamma=GAMMA, dual_step=0)
  model = 8 * sum(w.size for w in problem.initial)
  assert process.bytes_up == model + 8
  assert process.bytes_down == model


def test_silent_clients_leave_the_duals_as_they_are(runner):
  """One has no examples, one has examples that are not finite."""
  problem = p2()
  hp = dict(gamma=GAMMA, dual_step=1)
  process, state, state_dir = runner.start(problem, 'fedvra', **hp)
  inputs = [problem.client_input(i) for i in range(4)]
  state = process.next(state, inputs).state
  before = Round(state, None, state_dir)
  empty = client_input.client_input('1', inputs[1]['examples'].take(0))
  broken = client_input.client_input(
      '2',
      inputs[2]['examples'].map(
          lambda b: collections.OrderedDict(x=b['x'] * np.nan, y=b['y'])
      ),
  )
  output = process.next(state, [inputs[0], empty, broken])
  after = Round(output.state, output.metrics, state_dir)
  alone = Round(process.next(state, inputs[:1]).state, None, state_dir)
  assert output.metrics['client_work']['non_finite_clients'] == 1
  assert problems.distance([after.weights], [alone.weights]) == 0
  np.testing.assert_array_equal(after.dual, alone.dual)
  for i in (1, 2):
    np.testing.assert_array_equal(after.client_dual(i), before.client_dual(i))


@pytest.mark.parametrize(
    'name,hp,message',
    [
        ('fedvra', dict(num_clients=4), 'state_dir: no value given'),
        ('fedvra', dict(dual_step='N/m'), 'expected 0 or above, or rho:R'),
        ('fedvra', dict(dual_step='rho:1.5'), 'or rho:R with R in'),
        ('fedvra', dict(dual_step=-1), 'dual_step: .*; expected 0 or above'),
        (
            'fedvra',
            dict(aggregation_step='rho:1'),
            'expected 0 or above, or N/m',
        ),
        (
            'fedvra',
            dict(client_weighting='examples'),
            'list them as per_client',
        ),
        ('fedvra', dict(gamma=30), 'is 3, and local steps diverge'),
        (
            'fedvra',
            dict(dual_step=300, local_steps=100),
            'makes a γ η Q̃ = 190.2 in 100 local steps, .*use at most 3.155,',
        ),
        (
            'fedvra',
            dict(
                per_client='{"local_steps": {"x": [1, 100]}}', dual_step=300
            ),
            "dual_step of client 'x': 300 makes a γ η Q̃ = 190.2 in 100 ",
        ),
        (
            'fedvra',
            dict(per_client='{"dual_step": {"x": 500}}', local_steps=100),
            "dual_step of client 'x': 500 makes a γ η Q̃ = 317 ",
        ),
        (
            'fedvra',
            dict(dual_step='rho:1', client_optimizer='adam'),
            'use client_optimizer=sgd',
        ),
        (
            'fedvra',
            dict(dual_step='rho:1', per_client='{"dual_step": {"x": 2}}'),
            'ρ is 2; expected at most 1',
        ),
        ('fedvra', dict(per_client='{"rho": {"x": 2}}'), 'gamma, client_lea'),
        ('fedvra', dict(per_client='gamma=1'), 'expected JSON such as'),
        (
            'fedvra',
            dict(per_client='{"gamma": 1}'),
            'expected values by client',
        ),
        (
            'fedvra',
            dict(per_client='{"gamma": {"x": 0}}'),
            "gamma of 'x' is 0; expected a number above 0",
        ),
        ('fedvra', dict(per_client='{"gamma": {"x": NaN}}'), "'x' is nan; exp"),
        ('fedvra', dict(per_client='{"gamma": {"x": true}}'), "'x' is True; e"),
        (
            'fedvra',
            dict(per_client='{"local_steps": {"x": [2, 0]}}'),
            'expected a whole number from 1 to 2147483647 or a list',
        ),
        (
            'fedvra',
            dict(per_client='{"aggregation_step": {"x": 2}}'),
            'goes with a number as the common',
        ),
        (
            'fedadmm',
            dict(per_client='{"dual_step": {"x": 2}}'),
            'dual_step is 1 in federated ADMM',
        ),
        (
            'fedadmm',
            dict(dual_step=1),
            'fedadmm has no hyperparameter dual_step',
        ),
        # Where steps jump back and forth, few of them may be worse than many.
        (
            'fedvra',
            dict(gamma=15.0, dual_step=1.5, local_steps='random:1:9'),
            'dual_step: 1.5 makes a γ η Q̃ = 2.25 in 1 local steps',
        ),
        (
            'fedvra',
            dict(gamma=15.0, dual_step=1.9, local_steps='random:2:9'),
            'dual_step: 1.9 makes a γ η Q̃ = 2.137 in 3 local steps',
        ),
        (
            'feddyn',
            dict(alpha=60, client_learning_rate=0.05),
            'alpha · client_learning_rate is 3, and local .* alpha below 40$',
        ),
        (
            'fedprox',
            dict(mu=20),
            'mu · client_learning_rate is 2, and local .* use mu below 20$',
        ),
        (
            'fedvra',
            dict(per_client='{"weight": {"x": 1e101}}'),
            'expected a number above 0, at most 1e.100$',
        ),
        # Beyond 1 a step jumps back, but the dual may diverge as well.
        (
            'fedvra',
            dict(gamma=15.0, dual_step=50, local_steps=5),
            'dual_step: 50 makes a γ η Q̃ = 51.56 in 5 local steps',
        ),
        (
            'fedvra',
            dict(per_client='{"gamma": {"x": 1%s}}' % ('0' * 400)),
            'expected a number above 0',
        ),
        (
            'fedvra',
            dict(per_client='{"gamma": {"\\ud800": 1}}'),
            'expected a client id that can be printed',
        ),
        (
            'fedvra',
            dict(per_client='{"local_steps": {"x": 3000000000}}'),
            "'x' is 3000000000; expected a whole number from 1 to 2147483647",
        ),
        ('fedvra', dict(per_client='[' * 100_000), 'expected JSON such as'),
        (
            'fedvra',
            dict(per_client='{"gamma": {"x": 1, "y": 1, "x": 2}}'),
            "per_client: 'x' is given twice; expected once",
        ),
        (
            'fedvra',
            dict(per_client='{"gamma": {"x": 1}, "gamma": {"y": 1}}'),
            "per_client: 'gamma' is given twice; expected once",
        ),
        (
            'fedvra',
            dict(per_client='{"gamma": {"x": 1, "y": 1}}', num_clients=1),
            '2 clients are listed, and num_clients is 1',
        ),
        ('scaffold', dict(state_dir=''), "state_dir: ''; expected a directory"),
        (
            'fedavg',
            dict(local_steps='random:1:3000000000'),
            '≤ HIGH ≤ 2147483647',
        ),
        ('fedavg', dict(local_steps='random:5:2'), 'random:LOW:HIGH with 1 ≤'),
        ('fedavg', dict(local_steps=0), 'expected all, a whole number above 0'),
    ],
)
def test_one_line_says_what_is_wrong(name, hp, message):
  with pytest.raises(ValueError, match=message) as e:
    algorithms.build(name, None, **hp)
  assert '\n' not in str(e.value)


@pytest.mark.parametrize(
    'hp,message',
    [
        (
            dict(dual_step=3),
            'from 41 local steps on, and above 2, .* from 110 on',
        ),
        (dict(dual_step=1.5), 'overshoots, from 110 local steps on$'),
        (
            dict(dual_step=3, local_steps=50),
            'a γ η Q̃ = 1.185 in 50 .* up to 2.53',
        ),
        (dict(gamma=15.0), 'is 1.5: from 1 on local steps jump back'),
        # γη so small that 1 − γη is 1.
        (dict(gamma=1e-17, dual_step=2), 'overshoots, from 6931471805'),
    ],
)
def test_a_warning_names_the_number(hp, message):
  with pytest.warns(UserWarning, match=message):
    algorithms.validate('fedvra', hp)


def test_other_steps_than_plain_ones_have_other_limits(recwarn):
  for name, pull in (
      ('fedvra', 'gamma'), ('feddyn', 'alpha'), ('fedprox', 'mu')
  ):
    for hp in (dict(client_optimizer='adam'), dict(max_gradient_norm=1.0)):
      algorithms.validate(name, {pull: 30.0, **hp})
  assert not recwarn


def test_stable_values_do_not_warn(recwarn):
  for hp in (
      dict(),
      dict(dual_step=1),
      dict(dual_step='rho:1'),
      dict(dual_step=20, local_steps=5),
  ):
    algorithms.validate('fedvra', hp)
  assert not recwarn


def test_dual_step_of_a_tiny_penalty(runner):
  """a = ρ/(γηQ̃) where 1 − γη is 1 in floating point: ρ/(γηQ)."""
  problem = p2()
  gamma, rate, steps = 1e-17, 0.1, 5
  hp = dict(
      gamma=gamma,
      client_learning_rate=rate,
      local_steps=steps,
      dual_step='rho:0.5',
  )
  ours = runner.rounds(problem, [[0]], 'fedvra', **hp)[0].client_dual(0)
  assert np.abs(ours).max() > 1e-3
  # By (14) λ_i is ρ times the mean gradient, whatever γ.
  hp['gamma'] = 1e-6
  other = runner.rounds(problem, [[0]], 'fedvra', **hp)[0].client_dual(0)
  np.testing.assert_allclose(ours, other, rtol=1e-4)


def test_clients_that_do_not_exist(runner):
  process, state, _ = runner.start(
      p2(), 'fedvra', gamma=GAMMA, per_client='{"weight": {"9": 5}}'
  )
  with pytest.raises(ValueError, match="there is no client '9'; there are 2"):
    process.check_clients(state, ['0', '1'])
