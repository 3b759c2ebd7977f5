"""Clients as users have them, and what is said when their work fails."""

import collections
import re
import warnings

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt import algorithms
from tff_fedopt.experiment import failures
from tff_fedopt.experiment import rounds
from tff_fedopt.experiment import user_clients
from tff_fedopt.testing import toy


def _batches(index, size=2, **options):
  dataset = tf.data.Dataset.from_tensor_slices(toy.arrays(index))
  return dataset.batch(size, **options)


@pytest.fixture(scope='module')
def process():
  return algorithms.build('fedavgm', toy.LinearModel)


def _run(process, client_data, cohorts, **options):
  return [
      r.weights for r in rounds.run(process, client_data, cohorts, **options)
  ]


def test_any_container_and_any_ids_are_the_same_clients(process):
  expected = _run(
      process, {str(i): _batches(i) for i in range(3)}, [['0', '2']]
  )
  for client_data, cohorts in (
      ([_batches(i) for i in range(3)], [[0, 2]]),
      ({i: _batches(i) for i in range(3)}, np.array([[0, 2]])),
      ({np.int64(i): _batches(i) for i in range(3)}, iter([(0, '2')])),
  ):
    np.testing.assert_array_equal(
        _run(process, client_data, cohorts), expected
    )


@pytest.mark.parametrize(
    'client_data,cohorts,message',
    [
        ([_batches(0)], ['0'], r"cohort is '0'; expected a list.*\[\['0'\]\]"),
        ([_batches(0)], [0], r'cohort is 0; expected a list.*\[\[0\]\]'),
        ([_batches(0)], [[0.5]], 'client id 0.5 is of type float; expected'),
        (
            [_batches(0)],
            [[1]],
            "unknown client '1'; .* 1 clients.*first is '0'",
        ),
        (
            {7: _batches(0), '7': _batches(1)},
            [[7]],
            'two clients have one name',
        ),
        ([toy.arrays(0)], [[0]], 'of type OrderedDict; expected a tf.data'),
        (5, [[0]], 'client_data is of type int; expected a ClientData, a dict'),
    ],
)
def test_mistakes_are_one_line(process, client_data, cohorts, message):
  with pytest.raises(ValueError) as caught:
    _run(process, client_data, cohorts)
  assert re.search(message, str(caught.value)) and '\n' not in str(caught.value)


def test_what_nobody_seeded_is_a_function_of_the_seed():
  def draw(seed):
    dataset = tf.data.Dataset.range(20).shuffle(10)
    dataset = dataset.map(
        lambda x: (x, tf.random.uniform([], maxval=1000, dtype=tf.int32))
    )
    given = user_clients.UserClients([dataset, dataset], seed)
    return [
        [tuple(map(int, pair)) for pair in given.dataset(name, round_num)]
        for name, round_num in (('0', 1), ('1', 1), ('0', 2))
    ]

  one = draw(3)
  assert one == draw(3) and one != draw(4)
  assert len({tuple(d) for d in one}) == 3
  assert all(sorted(x for x, _ in d) == list(range(20)) for d in one)


def test_rounds_over_shuffled_clients_repeat(process):
  def weights(seed):
    clients = [_batches(i).unbatch().shuffle(4).batch(2) for i in range(2)]
    return _run(process, clients, [[0, 1]] * 2, seed=seed)

  np.testing.assert_array_equal(weights(1), weights(1))
  assert not np.array_equal(weights(1), weights(2))


@pytest.mark.parametrize(
    'dataset', [_batches(0), tf.data.Dataset.range(20).shuffle(10, seed=3)]
)
def test_what_is_no_function_of_chance_is_handed_on_as_it_is(dataset):
  assert user_clients.seeded(dataset, 1) is dataset


def test_a_round_over_nothing_changes_nothing_and_measures_nothing(process):
  clients = [_batches(0), _batches(1, 5, drop_remainder=True)]
  with pytest.warns(UserWarning) as caught:
    first, second, third = rounds.run(
        process, clients, [[0], [1], [1]], seed=1
    )
  said = [str(w.message) for w in caught]
  assert [s for s in said if "no batch of client '1'" in s] == said[:1]
  assert sum('no client of the cohort had a batch' in s for s in said) == 1
  assert np.isfinite(first.metrics['client_work']['train']['loss'])
  for result in (second, third):
    assert np.isnan(result.metrics['client_work']['train']['loss'])
    assert not result.diverged
    # Its momentum would move it.
    np.testing.assert_array_equal(result.weights, first.weights)


def _fails(process, clients, cohort):
  with pytest.raises(failures.ClientWorkError) as caught:
    _run(process, clients, [cohort])
  message = str(caught.value)
  assert '\n' not in message and len(message) < 500
  return message


class _Checked(toy.LinearModel):
  """Takes targets below 100 only."""

  def forward_pass(self, batch_input, training=True):
    with tf.control_dependencies([
        tf.debugging.assert_less(
            batch_input['y'], 100.0, 'targets are out of range. More of it.'
        )
    ]):
      batch_input = collections.OrderedDict(
          (k, tf.identity(v)) for k, v in batch_input.items()
      )
    return super().forward_pass(batch_input, training)


def test_failing_work_names_round_client_reason_and_remedy():
  process = algorithms.build('fedavg', _Checked)
  clients = [_batches(i) for i in range(5)]
  clients[3] = clients[3].map(
      lambda b: collections.OrderedDict(x=b['x'], y=b['y'] + 1000)
  )
  message = _fails(process, clients, [0, 1, 3, 4])
  assert message.startswith("round 1, client '3': ")
  assert 'targets are out of range; its labels' in message
  for noise in ('function_node', '[[', 'More of it', 'while evaluating'):
    assert noise not in message


def test_python_in_a_data_set_is_said(process, worker):
  del worker  # It has none of this process's Python.
  generated = tf.data.Dataset.from_generator(
      lambda: iter([toy.arrays(0)]),
      output_signature=toy.INPUT_SPEC,
  )
  message = _fails(process, [_batches(0), generated], [0, 1])
  assert "client '1'" in message and 'from_tensor_slices' in message


def test_nothing_is_said_where_nothing_is_wrong(process):
  with warnings.catch_warnings():
    warnings.simplefilter('error', UserWarning)
    _run(process, toy.Clients(), [['c0', 'c1']])


def test_plain_data_sets_given_to_next_are_said(process):
  state = process.initialize()
  with pytest.raises(ValueError, match='client_input.client_id, dataset, seed'):
    process.next(state, [_batches(0)])


def test_any_text_is_the_name_of_a_client_with_memory(tmp_path):
  names = [
      'a/b', '../up', '.', 'two words', '"quoted\'', 'ümläut 名', '*?[x]', ''
  ]
  clients = {name: _batches(i) for i, name in enumerate(names)}
  weights = {}
  for kind, ids in (('odd', names), ('plain', range(len(names)))):
    process = algorithms.build(
        'scaffold',
        toy.LinearModel,
        num_clients=len(names),
        state_dir=tmp_path / kind,
    )
    given = clients if kind == 'odd' else list(clients.values())
    # Noise in the targets depends on the name.
    results = list(rounds.run(process, given, [list(ids)] * 2))
    weights[kind] = results[-1].weights
  np.testing.assert_allclose(weights['odd'], weights['plain'], atol=0.02)
  assert {p.name for p in tmp_path.iterdir()} == {'odd', 'plain'}
