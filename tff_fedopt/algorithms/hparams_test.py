"""Hyperparameters: parsed once, one value however written, settable or not."""

import dataclasses

import numpy as np
import pytest

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.algorithms import step_rule
from tff_fedopt.optimizers import schedules
from tff_fedopt.processes import local_steps
from tff_fedopt.processes import per_client
from tff_fedopt.testing import problems

COHORTS = [[0, 1], [1, 2]]

# Two values, of one structure, of every hyperparameter that the state holds.
VALUES = dict(
    client_learning_rate=(0.05, 0.02),
    client_learning_rate_schedule=('exponential:0.5:1', 'exponential:0.9:2'),
    server_learning_rate=(1.0, 0.7),
    weight_decay=(0.1, 0.3),
    max_gradient_norm=(1.0, 0.4),
    client_momentum=(0.9, 0.5),
    client_beta1=(0.9, 0.6),
    client_beta2=(0.99, 0.8),
    client_epsilon=(0.01, 0.1),
    client_initial_accumulator=(0.0, 0.2),
    relaxation=(0.1, -0.2),
    num_clients=(4, 9),
    server_momentum=(0.9, 0.4),
    tau=(1e-3, 0.1),
    beta1=(0.9, 0.3),
    beta2=(0.99, 0.7),
    initial_accumulator=(0.1, 0.4),
    mu=(0.1, 0.5),
    alpha=(0.2, 0.6),
    rho=(0.05, 0.3),
    gamma=(0.1, 0.4),
    dual_step=('0.5', '0.8'),
    aggregation_step=('1', '0.6'),
)
CASES = [(name, 'sgd') for name in algorithms.names()] + [
    ('fedavg', 'momentum'),
    ('fedavg', 'adagrad'),
    ('fedprox', 'yogi'),
]


def _given(algorithm, client_optimizer, which):
  """The first or second value of whatever the state holds."""
  hp = algorithms.validate(
      algorithm,
      dict(
          client_optimizer=client_optimizer,
          relaxation=0.1,
          track_consistency=True,
      ),
  )
  given = dict(client_optimizer=client_optimizer, track_consistency=True)
  for field in dataclasses.fields(hp):
    is_used = client_optimizer in field.metadata['used_by']
    is_held = field.metadata['structural'] is not True
    if is_held and is_used and field.name != 'state_dir':
      given[field.name] = VALUES[field.name][which]
  return given


def _weights(process, state, problem):
  found = []
  for cohort in COHORTS:
    state, _ = process.next(state, [problem.client_input(i) for i in cohort])
    model = state.global_model_weights['model']
    found.append([np.array(w) for w in model.trainable])
  return found


@pytest.mark.parametrize('algorithm,client_optimizer', CASES)
def test_what_is_not_structural_can_be_set_after_tracing(
    algorithm, client_optimizer, tmp_path
):
  problem = problems.Problem(
      problems.golden('official')['problems']['P2'], 'float64'
  )
  runtime.use()
  first, second = (
      _given(algorithm, client_optimizer, which) for which in (0, 1)
  )
  key = algorithms.trace_key(algorithm, first)
  assert key == algorithms.trace_key(algorithm, second)
  traced = algorithms.build(
      algorithm, problem.model_fn, state_dir=tmp_path / 'traced', **first
  )
  state = traced.initialize()
  before = str(traced.get_hparams(state))
  for name in second:
    if first[name] != second[name]:
      one = algorithms.set_hyperparameters(
          traced, state, algorithm, {**first, name: second[name]}
      )
      assert str(traced.get_hparams(one)) != before, name
  state = algorithms.set_hyperparameters(traced, state, algorithm, second)
  built = algorithms.build(
      algorithm, problem.model_fn, state_dir=tmp_path / 'built', **second
  )
  assert problems.distance(
      _weights(traced, state, problem),
      _weights(built, built.initialize(), problem),
  ) == 0


@pytest.mark.parametrize(
    'parse,spellings,text',
    [
        (schedules.Schedule.parse, ['constant', ' constant'], 'constant'),
        (
            schedules.Schedule.parse,
            ['exponential:0.1:500', 'exponential:.10:5e2'],
            'exponential:0.1:500',
        ),
        (local_steps.LocalSteps.parse, ['5', ' 5', 5, 5.0, '5.0'], '5'),
        (local_steps.LocalSteps.parse, ['all'], 'all'),
        (local_steps.LocalSteps.parse, ['random:2:04'], 'random:2:4'),
        (
            per_client.PerClient.parse,
            [
                '{"gamma": {"b": 1, "a": 2.0}, "local_steps": {"c": 3}}',
                '{"local_steps":{"c":[3]}, "gamma":{"a":2,"b":1.0}}',
            ],
            '{"gamma": {"a": 2.0, "b": 1.0}, "local_steps": {"c": [3]}}',
        ),
        (
            lambda v: step_rule.StepRule.parse('d', ('N/m', 'rho'), v),
            ['rho:0.5', ' rho:.5'],
            'rho:0.5',
        ),
        (
            lambda v: step_rule.StepRule.parse('d', ('N/m', 'rho'), v),
            ['2', 2, 2.0],
            '2',
        ),
        (lambda v: step_rule.StepRule.parse('d', ('N/m',), v), ['N/m'], 'N/m'),
    ],
)
def test_spellings_of_one_value_are_one_value(parse, spellings, text):
  values = {parse(spelling) for spelling in spellings}
  assert len(values) == 1
  (value,) = values
  assert str(value) == text
  assert parse(value) is value and parse(text) == value


@pytest.mark.parametrize('name', algorithms.names())
def test_defaults_spelled_out_are_the_defaults(name):
  hp = algorithms.validate(name, {})
  assert algorithms.validate(name, hp.to_json()) == hp
  assert hash(algorithms.validate(name, hp.to_json())) == hash(hp)
  written = {
      field: f' {value} ' if isinstance(value, float) else value
      for field, value in hp.to_json().items()
  }
  assert algorithms.validate(name, written) == hp


def test_defaults_of_the_form_are_filled_in():
  hp = algorithms.validate('fedadam', dict(client_optimizer='adam'))
  assert (hp.beta2, hp.client_beta2) == (0.99, 0.999)
  assert hp.client_bias_correction is False
  # What the client optimizer does not use has no value.
  assert hp.client_momentum is None


def test_what_only_the_program_knows_is_added_where_it_is_needed():
  hp = algorithms.validate('scaffold', dict(num_clients=7)).placed(5, 'd')
  assert (hp.num_clients, hp.state_dir) == (7, 'd')
  hp = algorithms.validate('fedinit', {}).placed(5, 'd')
  assert (hp.num_clients, hp.state_dir) == (None, 'd')
  hp = algorithms.validate('fedavg', {})
  assert hp.placed(5, 'd') == hp


def test_a_warning_names_the_callers_line():
  code = """
from tff_fedopt import algorithms
algorithms.validate('fedvra', dict(
    dual_step=1.5, gamma=1.0, client_learning_rate=0.5, local_steps=9))
"""
  with pytest.warns(UserWarning, match='overshoots') as caught:
    exec(compile(code, 'theirs.py', 'exec'), {'__name__': '__main__'})
  assert [(w.filename, w.lineno) for w in caught] == [('theirs.py', 3)]
