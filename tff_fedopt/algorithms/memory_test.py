"""Clients with memory against other people's weights, NumPy, and identities."""

import collections
import glob
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.processes import client_state
from tff_fedopt.testing import problems

FLSIM = problems.golden('flsimulator')
OFFICIAL = problems.golden('official')
BEFORE = ('FedAvg', 'FedAdam', 'FedProx')  # Without memory: in fedopt_test.
# Clients 1 and 3 come for the first time when the model has moved.
COHORTS = [[0, 2], [1, 3], [0, 1, 3], [2], [1, 2]]
EVERYBODY = [[0, 1, 2, 3]] * 3
# What most tests ask for, so that they share traced processes.
PAPER = dict(
    client_learning_rate=0.05,
    client_weighting='uniform',
    weight_decay=0.02,
    relaxation=0.1,
    track_consistency=True,
)
CODE = dict(form='code', client_weighting='uniform', max_gradient_norm=10.0)


class Runner:
  """Runs algorithms; runs that differ in numbers alone share a traced one."""

  def __init__(self, directory):
    self._directory = directory
    self._made = {}

  def process(self, problem, name, **hp):
    """The process, its state with these hyperparameters, and its state_dir."""
    runtime.use()
    hp = algorithms.validate(name, hp)
    key = (problem.dtype, str(problem.initial), algorithms.trace_key(name, hp))
    if key not in self._made:
      state_dir = str(self._directory / str(len(self._made)))
      process = algorithms.build_parsed(
          name, problem.model_fn, hp.placed(len(problem.names), state_dir)
      )
      self._made[key] = process, state_dir
    process, state_dir = self._made[key]
    state = algorithms.set_hyperparameters(
        process,
        process.initialize(),
        name,
        hp.placed(len(problem.names), state_dir),
    )
    return process, state, state_dir

  def rounds(self, problem, cohorts, name, **hp):
    """Weights after every round, the metric Δ, and the states."""
    process, state, _ = self.process(problem, name, **hp)
    weights, consistency, states = [], [], []
    for cohort in cohorts:
      state, metrics = process.next(
          state, [problem.client_input(i) for i in cohort]
      )
      model = state.global_model_weights['model']
      weights.append([np.array(w) for w in model.trainable])
      consistency.append(metrics['finalizer'].get('consistency'))
      states.append(state)
    return weights, consistency, states

  def weights(self, problem, cohorts, name, **hp):
    return self.rounds(problem, cohorts, name, **hp)[0]


@pytest.fixture(scope='module')
def runner(tmp_path_factory):
  return Runner(tmp_path_factory.mktemp('client_state'))


def p2():
  return problems.Problem(OFFICIAL['problems']['P2'], 'float64')


def p2eq():
  return problems.Problem(FLSIM['problems']['P2eq'], 'float32')


def remembered(state_dir, state, client, slot):
  """The newest of what a client stored in a run; None if it stored nothing."""
  name = tf.io.encode_base64(client).numpy().decode()
  run = state.client_work['run']
  files = sorted(glob.glob(f'{state_dir}/*/{name}.{run}.*.index'))
  if not files:
    return None
  reader = tf.train.load_checkpoint(files[-1].removesuffix('.index'))
  return [reader.get_tensor(f'{slot}/{j}') for j in range(4)]


def simulators_hyperparameters(case):
  """A case's settings in this package's names."""
  theirs = case['hyperparameters']
  method = case['method']
  hp = dict(
      CODE,
      client_learning_rate=theirs['local_learning_rate'],
      server_learning_rate=theirs['global_learning_rate'],
  )
  assert theirs['lr_decay'] == 1 and theirs['weight_decay'] == 0
  if method == 'FedAdam':
    hp.update(
        tau=theirs['epsilon'],
        beta1=theirs['beta1'],
        beta2=theirs['beta2'],
        initial_accumulator=0.0,
        bias_correction=False,
    )
  if theirs['use_RI']:
    hp['relaxation'] = theirs['beta']
  hp.update({
      'FedProx': dict(mu=theirs['lamb']),
      'FedDyn': dict(alpha=theirs['lamb']),
      'FedCM': dict(alpha=theirs['alpha']),
      'FedSAM': dict(rho=theirs['rho']),
  }.get(method, {}))
  return hp


@pytest.mark.parametrize(
    'case',
    [
        c
        for c in FLSIM['cases']
        if c['hyperparameters']['use_RI'] or c['method'] not in BEFORE
    ],
    ids=lambda c: c['id'],
)
def test_matches_fl_simulator(case, runner):
  problem = problems.Problem(FLSIM['problems'][case['problem']], case['dtype'])
  ours = runner.weights(
      problem,
      [r['cohort'] for r in case['rounds']],
      case['method'].lower(),
      **simulators_hyperparameters(case),
  )
  tolerance = 1e-9 if case['dtype'] == 'float64' else 5e-6
  assert problems.distance(
      ours, [r['weights'] for r in case['rounds']]
  ) < tolerance


def reference(
    problem,
    cohorts,
    method,
    *,
    lr,
    beta,
    decay,
    alpha=None,
    rho=None,
    option=2,
    server_lr=1.0,
    clip=None,
    sizes=None,
):
  """The algorithm boxes in NumPy on flat vectors: weights and Δ by round.

  With `clip`, a norm, in FL-Simulator's order: what is not the local model's
  own pull is clipped, then decay is added. With `sizes` those weigh the average
  of the local models.
  """
  shapes = [w.shape for w in problem.initial]
  ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
  flat = lambda ws: np.concatenate([w.ravel() for w in ws])
  unflat = lambda v: [
      p.reshape(s) for p, s in zip(np.split(v, ends), shapes)
  ]
  num = len(problem.names)
  x0 = flat(problem.initial)
  x = x0
  zero = np.zeros_like(x)
  last = [x0] * num
  c, variates = zero, [zero] * num
  dual = [zero] * num
  q = m = v = zero
  history, consistency = [], []
  for cohort in cohorts:
    locals_, averages, changes = [], [], []
    for i in cohort:
      start = x + beta * (x - last[i])
      y, steps = start, 0
      for bx, by in problem.batches(i):
        pull = decay if clip else 0.0
        f = lambda w: (
            flat(problem.gradient(unflat(w), bx, by))
            + (0.0 if clip else decay) * w
        )
        g = f(y)
        if method == 'fedsam':
          g = f(y + rho * g / (np.linalg.norm(g) + 1e-7))
        if method == 'scaffold':
          g = g + c - variates[i]
        if method == 'feddyn':
          g = g + alpha * (dual[i] - start)
          pull = pull + alpha
        if method == 'fedcm':
          g = alpha * g + (1 - alpha) * q
        if clip:
          g = g * min(1, clip / (np.linalg.norm(g) + 1e-6))
        y = y - lr * (g + pull * y)
        steps += 1
      average = (start - y) / (steps * lr)
      averages.append(average)
      if option == 1:
        new = flat(problem.gradient(unflat(x), *problem.examples(i)))
        new = new + decay * x
      else:
        new = variates[i] - c + average
      changes.append(new - variates[i])
      variates[i] = new
      dual[i] = dual[i] + y - start
      last[i] = y
      locals_.append(y)
    c = c + sum(changes) / num
    q = np.mean(averages, 0)
    weights = sizes and [sizes[i] for i in cohort]
    mean = np.average(locals_, 0, weights)
    if method == 'fedadam':
      m = 0.9 * m + 0.1 * (mean - x)
      v = 0.99 * v + 0.01 * (mean - x) ** 2
      x = x + server_lr * m / (np.sqrt(v) + 0.1)
    else:
      x = x + server_lr * (mean - x)
    if method == 'feddyn':
      x = x + np.mean(dual, 0)
    history.append(unflat(x))
    consistency.append(np.mean([np.sum((x - l) ** 2) for l in last]))
  return history, consistency


@pytest.mark.parametrize('beta', [0.15, 0.0])
@pytest.mark.parametrize(
    'method,hp',
    [
        ('fedinit', dict()),
        ('fedadam', dict(server_lr=0.3)),
        ('scaffold', dict(option=1, server_lr=0.7)),
        ('scaffold', dict(option=2, server_lr=0.7)),
        ('feddyn', dict(alpha=0.4)),
        ('fedcm', dict(alpha=0.3)),
        ('fedsam', dict(rho=0.2)),
    ],
    ids=lambda x: x if isinstance(x, str) else '-'.join(map(str, x.values())),
)
def test_paper_form_is_the_algorithm_box(method, hp, beta, runner):
  """Unequal sizes, partial cohorts, relaxed or not; and Δ of all clients."""
  problem = p2()
  given = {k: v for k, v in hp.items() if k != 'server_lr'}
  if method == 'fedadam':
    given.update(initial_accumulator=0.0, tau=0.1)
  process_hp = dict(
      PAPER, server_learning_rate=hp.get('server_lr', 1.0), **given
  )
  expected, distances = reference(
      problem, COHORTS, method, lr=0.05, beta=beta, decay=0.02, **hp
  )
  process, state, _ = runner.process(problem, method, **process_hp)
  # β is a number in the state, so that one trace serves both.
  state = algorithms.set_hyperparameters(
      process,
      state,
      method,
      dict(process_hp, relaxation=beta, num_clients=4),
  )
  for cohort, want, distance in zip(COHORTS, expected, distances):
    state, metrics = process.next(
        state, [problem.client_input(i) for i in cohort]
    )
    ours = list(state.global_model_weights['model'].trainable)
    assert problems.distance([ours], [want]) < 1e-10
    assert metrics['finalizer']['consistency'] == pytest.approx(
        distance, rel=1e-9
    )


@pytest.mark.parametrize(
    'method,hp',
    [
        ('scaffold', dict()),
        ('feddyn', dict(alpha=0.4)),
        ('fedsam', dict(rho=0.2)),
    ],
    ids=lambda x: x if isinstance(x, str) else '',
)
def test_code_form_clips_then_decays(method, hp, runner):
  problem = p2()
  box = lambda clip: reference(
      problem, COHORTS, method, lr=0.05, beta=0.0, decay=0.3, clip=clip, **hp
  )[0]
  ours = runner.weights(
      problem,
      COHORTS,
      method,
      form='code',
      client_weighting='uniform',
      client_learning_rate=0.05,
      weight_decay=0.3,
      max_gradient_norm=0.4,
      **hp,
  )
  assert problems.distance(ours, box(0.4)) < 1e-10
  # Something was clipped.
  assert problems.distance(ours, box(1e9)) > 1e-3


def test_feddyn_weighs_models_by_examples_and_changes_equally(runner):
  problem = p2()
  sizes = [len(problem.examples(i)[0]) for i in range(4)]
  expected, _ = reference(
      problem,
      COHORTS,
      'feddyn',
      lr=0.05,
      beta=0.0,
      decay=0.0,
      alpha=0.4,
      sizes=sizes,
  )
  ours = runner.weights(
      problem,
      COHORTS,
      'feddyn',
      client_learning_rate=0.05,
      client_weighting='examples',
      alpha=0.4,
  )
  assert problems.distance(ours, expected) < 1e-10


def test_consistency_of_the_code_is_the_cohorts(runner):
  problem = p2()
  hp = dict(form='code', client_weighting='uniform', track_consistency=True)
  _, _, state_dir = runner.process(problem, 'fedinit', **hp)
  weights, consistency, states = runner.rounds(
      problem, COHORTS, 'fedinit', **hp
  )
  # The newest files of the last cohort are from the last round.
  expected = [
      sum(
          np.sum((a - b) ** 2)
          for a, b in zip(
              weights[-1], remembered(state_dir, states[-1], str(i), 'last')
          )
      )
      for i in COHORTS[-1]
  ]
  assert consistency[-1] == pytest.approx(np.mean(expected), rel=1e-9)


def test_consistency_follows_a_model_that_is_set(runner):
  problem = p2()
  process, state, state_dir = runner.process(problem, 'fedinit', **PAPER)
  inputs = [problem.client_input(i) for i in range(4)]

  def shifted(state):
    model = process.get_model_weights(state)
    return process.set_model_weights(
        state,
        tff.learning.models.ModelWeights(
            [np.asarray(w) + 0.25 for w in model.trainable], []
        ),
    )

  # Before the first round all clients are at the new model.
  state = shifted(state)
  for i in (0, 2, 1):
    output = process.next(shifted(state) if i == 1 else state, [inputs[i]])
    state = output.state
  x = process.get_model_weights(state).trainable
  first = remembered(state_dir, state, '0', 'last')
  assert first is not None
  initial = [w + 0.25 for w in problem.initial]
  expected = np.mean([
      sum(
          np.sum((np.asarray(a) - b) ** 2)
          for a, b in zip(
              x, remembered(state_dir, state, str(i), 'last') or initial
          )
      )
      for i in range(4)
  ])
  found = output.metrics['finalizer']['consistency']
  assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize('option', [1, 2])
@pytest.mark.parametrize('cohorts', [EVERYBODY, COHORTS], ids=['all', 'some'])
def test_server_variate_is_the_mean_of_the_clients(option, cohorts, runner):
  problem = p2()
  _, _, state_dir = runner.process(problem, 'scaffold', option=option, **PAPER)
  _, _, states = runner.rounds(
      problem, cohorts, 'scaffold', option=option, **PAPER
  )
  state = states[-1]
  stored = [
      remembered(state_dir, state, name, 'control_variate')
      for name in problem.names
  ]
  mean = [sum(parts) / len(stored) for parts in zip(*stored)]
  shared = state.global_model_weights['shared']['control_variate']
  assert problems.distance([list(shared)], [mean]) < 1e-13
  assert max(np.abs(m).max() for m in mean) > 1e-3


def test_first_visits_leave_no_memory_to_others(runner):
  problem = p2()
  _, _, state_dir = runner.process(problem, 'scaffold', option=2, **PAPER)
  _, _, states = runner.rounds(
      problem, COHORTS[:1], 'scaffold', option=2, **PAPER
  )
  assert remembered(state_dir, states[0], '0', 'control_variate')
  assert remembered(state_dir, states[0], '1', 'control_variate') is None


def test_scaffolds_first_round_is_fedavgs(runner):
  fedavg = runner.weights(p2eq(), [[0, 1, 3]], 'fedavg', **CODE)
  ours = runner.weights(p2eq(), [[0, 1, 3]], 'scaffold', **CODE)
  assert problems.distance(ours, fedavg) == 0


@pytest.mark.parametrize(
    'name,hp',
    [
        ('fedinit', dict(relaxation=0.0)),
        ('fedinit', dict(relaxation=0.0, track_consistency=True)),
        ('fedsam', dict(rho=0.0)),
        ('fedcm', dict(alpha=1.0)),
    ],
    ids=['fedinit', 'fedinit-tracked', 'fedsam', 'fedcm'],
)
def test_reduces_to_fedavg_bit_for_bit(name, hp, runner):
  fedavg = runner.weights(p2eq(), COHORTS, 'fedavg', **CODE)
  ours = runner.weights(p2eq(), COHORTS, name, **CODE, **hp)
  assert problems.distance(ours, fedavg) == 0


def test_without_relaxation_nothing_is_kept():
  problem = p2eq()
  process = algorithms.build('fedadam', problem.model_fn, relaxation=0.0)
  state_type = process.initialize.type_signature.result.member
  assert 'run' not in dir(state_type.client_work)
  assert process.bytes_up == process.bytes_down == 4 * sum(
      w.size for w in problem.initial
  )


def test_order_of_the_cohort_does_not_matter(runner):
  problem = p2()
  for name in ('scaffold', 'feddyn', 'fedcm', 'fedinit'):
    one = runner.weights(problem, [[0, 1, 3], [3, 2, 0]], name, **PAPER)
    other = runner.weights(problem, [[3, 0, 1], [0, 3, 2]], name, **PAPER)
    assert problems.distance(one, other) < 1e-14


def test_client_without_examples_leaves_everything_as_it_was(runner):
  problem = p2()
  process, state, state_dir = runner.process(problem, 'scaffold', **PAPER)
  inputs = [problem.client_input(i) for i in (0, 1)]
  inputs[1]['examples'] = inputs[1]['examples'].take(0)
  output = process.next(state, inputs)
  alone = process.next(state, inputs[:1])
  assert output.metrics['client_work']['non_finite_clients'] == 0
  assert (
      output.metrics['finalizer']['consistency']
      == alone.metrics['finalizer']['consistency']
  )
  for a, b in zip(
      tf.nest.flatten(output.state.global_model_weights['shared']),
      tf.nest.flatten(alone.state.global_model_weights['shared']),
  ):
    np.testing.assert_array_equal(a, b)
  assert remembered(state_dir, state, '1', 'last') is None


def test_client_that_is_not_finite_remembers_what_it_did(runner):
  problem = p2()
  process, state, state_dir = runner.process(problem, 'scaffold', **PAPER)
  inputs = [problem.client_input(i) for i in (0, 1)]
  state = process.next(state, inputs).state
  before = remembered(state_dir, state, '1', 'control_variate')
  inputs[1]['examples'] = inputs[1]['examples'].map(
      lambda batch: collections.OrderedDict(batch, x=batch['x'] * np.inf)
  )
  output = process.next(state, inputs)
  alone = process.next(state, inputs[:1])
  assert output.metrics['client_work']['non_finite_clients'] == 1
  for a, b in zip(
      tf.nest.flatten(output.state.global_model_weights['shared']),
      tf.nest.flatten(alone.state.global_model_weights['shared']),
  ):
    np.testing.assert_array_equal(a, b)
  after = remembered(state_dir, state, '1', 'control_variate')
  assert problems.distance([after], [before]) == 0


def test_interrupted_round_is_repeated_and_runs_go_on_from_files(runner):
  problem = p2eq()
  hp = dict(CODE, relaxation=0.3)
  whole = runner.weights(problem, COHORTS, 'scaffold', **hp)
  process, state, state_dir = runner.process(problem, 'scaffold', **hp)

  def after(process, state, cohort):
    inputs = [problem.client_input(i) for i in cohort]
    state, _ = process.next(state, inputs)
    return state

  other = process.initialize()
  for cohort in COHORTS[:2]:
    state = after(process, state, cohort)
  # Another run in the same directory, and rounds whose results were lost.
  after(process, other, [3, 1])
  after(process, after(process, state, COHORTS[2]), COHORTS[3])
  # A new program goes on from the state and the files.
  again = algorithms.build(
      'scaffold',
      problem.model_fn,
      state_dir=state_dir,
      num_clients=4,
      **hp,
  )
  ours = []
  for cohort in COHORTS[2:]:
    state = after(again, state, cohort)
    model = state.global_model_weights['model']
    ours.append([np.array(w) for w in model.trainable])
  assert problems.distance(ours, whole[2:]) == 0


def test_after_damage_nothing_is_lost(runner):
  problem = p2()
  process, state, state_dir = runner.process(problem, 'fedinit', **PAPER)
  inputs = [problem.client_input(0)]
  state, _ = process.next(state, inputs)
  run = client_state.run_number(state)
  before = process.next(state, inputs).state
  (path,) = pathlib.Path(state_dir).glob(f'*/*.{run}.0000000000.data*')
  whole = path.read_bytes()
  path.write_bytes(whole[:5] + b'?' + whole[6:])
  with pytest.raises(RuntimeError) as raised:
    process.next(state, inputs)
  error = client_state.translate(raised.value, state_dir)
  assert 'is damaged or from another program' in str(error)
  assert state_dir in str(error) and '\n' not in str(error)
  path.write_bytes(whole)
  after = process.next(state, inputs).state
  one, other = (
      list(s.global_model_weights['model'].trainable) for s in (before, after)
  )
  assert problems.distance([one], [other]) == 0


def test_directory_that_went_away(runner):
  problem = p2()
  process, state, state_dir = runner.process(problem, 'fedinit', **PAPER)
  state, _ = process.next(state, [problem.client_input(0)])
  os.rename(state_dir, state_dir + '_away')
  try:
    with pytest.raises(RuntimeError) as raised:
      process.next(state, [problem.client_input(1)])
    error = client_state.translate(raised.value, state_dir)
    assert 'is missing; resume with the state_dir' in str(error)
  finally:
    os.rename(state_dir + '_away', state_dir)


def test_one_traced_process_serves_several_directories(runner, tmp_path):
  problem = p2()
  process, state, state_dir = runner.process(problem, 'fedinit', **PAPER)
  before = set(glob.glob(f'{state_dir}/*/*'))
  there = str(tmp_path / 'there')
  hp = dict(PAPER, num_clients=4, state_dir=there)
  moved = algorithms.set_hyperparameters(process, state, 'fedinit', hp)
  assert client_state.directory(moved) == there
  assert client_state.directory(state) == state_dir
  ours, theirs = moved, state
  for cohort in COHORTS[:3]:
    inputs = [problem.client_input(i) for i in cohort]
    ours = process.next(ours, inputs).state
  assert set(glob.glob(f'{state_dir}/*/*')) == before
  assert remembered(there, ours, '0', 'last')
  for cohort in COHORTS[:3]:
    inputs = [problem.client_input(i) for i in cohort]
    theirs = process.next(theirs, inputs).state
  one, other = (
      list(s.global_model_weights['model'].trainable) for s in (ours, theirs)
  )
  assert problems.distance([one], [other]) == 0


def test_run_number(runner):
  _, state, _ = runner.process(p2(), 'fedinit', **PAPER)
  assert client_state.run_number(state) == state.client_work['run'] > 0
  _, state, _ = runner.process(p2eq(), 'fedavg', **CODE)
  assert client_state.run_number(state) is None
  assert client_state.run_number(()) is None
  assert client_state.directory(state) is None


def test_registered_clients_cost_nothing(tmp_path):
  problem = p2eq()
  algorithms.build(
      'scaffold',
      problem.model_fn,
      num_clients=1_000_000,
      state_dir=str(tmp_path / 'state'),
  )
  assert os.listdir(tmp_path / 'state') == ['manifest.json']


@pytest.mark.parametrize(
    'name,hp,message',
    [
        ('scaffold', dict(num_clients=4), 'state_dir: no value given'),
        ('scaffold', dict(state_dir='x'), 'num_clients: no value given'),
        ('fedvra', {}, 'state_dir, num_clients: no value given.*directory.*C,'),
        ('fedavg', dict(client_lr=1), 'did you mean client_learning_rate'),
        ('fedavg', dict(lr=1), 'did you mean .*learning_rate'),
        ('fedadam', dict(relaxation=0.1), 'state_dir: no value given'),
        ('scaffold', dict(option=3), 'option: 3; expected one of 1, 2'),
        ('fedcm', dict(alpha=0.0), 'alpha: 0.0; expected above 0'),
        ('fedcm', dict(client_optimizer='adam'), 'use client_optimizer=sgd'),
        ('scaffold', dict(num_clients=1.5), 'expected a whole number'),
        ('fedavg', dict(state_dir='x'), 'state_dir is not used here'),
        ('fedinit', dict(num_clients=4), 'num_clients is not used here'),
    ],
    ids=lambda x: x if isinstance(x, str) else '',
)
def test_one_line_says_what_is_missing(name, hp, message):
  with pytest.raises(ValueError, match=message) as e:
    algorithms.build(name, None, **hp)
  assert '\n' not in str(e.value)


def test_trace_key_follows_what_is_kept():
  key = algorithms.trace_key
  assert key('fedinit', dict(state_dir='a')) == key(
      'fedinit', dict(state_dir='b')
  )
  assert key('fedinit', dict(relaxation=0.1)) == key(
      'fedinit', dict(relaxation=-0.2)
  )
  assert key('scaffold', dict(option=1)) != key('scaffold', dict(option=2))


def test_memory_does_not_stay_behind(runner, tmp_path):
  process, state, _ = runner.process(p2(), 'scaffold', **PAPER)
  process.with_state_dir(state, tmp_path / 'first')
  state = runner.rounds(p2(), EVERYBODY[:1], 'scaffold', **PAPER)[2][0]
  with pytest.raises(client_state.ClientStateError, match='holds nothing that'):
    process.with_state_dir(state, tmp_path / 'second')
  assert not (tmp_path / 'second').exists()


def test_clients_that_do_not_fit(runner):
  process, state, _ = runner.process(
      p2(), 'scaffold', **PAPER, num_clients=2
  )
  process.check_clients(state, ['a', 'b'])
  process.check_clients(state, ['a'])  # There may be others elsewhere.
  with pytest.raises(ValueError, match='num_clients: 2, but the data have 3'):
    process.check_clients(state, ['a', 'b', 'c'])
