"""Equal calls give equal bits, however busy the machine is."""

import collections
import hashlib
import os
import sys

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.tensorflow_libs import serialization_utils

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.runtime import fixed_order
from tff_fedopt.testing import problems

_CORES = len(os.sched_getaffinity(0))
# Terms of very different size: each order of adding them rounds differently.
_TERMS = [np.array([10.0**e / 3], np.float64) for e in (0, 5, -4, 3, -6)]
_FROM_LEFT = (((_TERMS[0] + _TERMS[1]) + _TERMS[2]) + _TERMS[3]) + _TERMS[4]


@pytest.fixture(name='busy')
def _busy(processes):
  """More work than cores, and more clients at a time."""
  for _ in range(_CORES):
    processes.start([sys.executable, '-c', 'while True: pass'], seconds=300)
  runtime.use(max_concurrent_clients=2 * _CORES)
  yield
  runtime.use(max_concurrent_clients=_CORES)


def _digest(arrays):
  data = b''.join(np.asarray(a).tobytes() for a in tf.nest.flatten(arrays))
  return hashlib.sha256(data).hexdigest()


def test_a_sum_of_three_does_not_race(busy):
  del busy

  @tff.tensorflow.computation((np.float64, [100, 100]))
  def sums(m):
    # Whether `a` is still in use when `c` comes is a matter of luck.
    a, b, c = m * 1.1, tf.sin(m), tf.matmul(m, m)
    users = [tf.reduce_sum(tf.matmul(t, m)) for t in (a, b)]
    return tf.add_n([a, b, c]), users

  @tff.federated_computation(
      tff.FederatedType((np.float64, [100, 100]), tff.CLIENTS)
  )
  def of_each(values):
    return tff.federated_map(sums, values)

  value = np.random.default_rng(1).normal(size=(100, 100))
  seen = collections.Counter()
  for _ in range(50):
    seen.update(_digest(total) for total, _ in of_each([value] * 6))
  assert len(seen) == 1, seen


@pytest.mark.parametrize(
    'name, hyperparameters',
    [
        (
            'scaffold',
            dict(
                max_gradient_norm=0.5,
                relaxation=0.1,
                track_consistency=True,
                weight_decay=0.02,
            ),
        ),
        ('fedadmm', dict(gamma=0.4)),
    ],
)
def test_a_round_repeats_to_the_last_bit(busy, tmp_path, name, hyperparameters):
  del busy
  problem = problems.Problem(
      problems.golden('official')['problems']['P2'], 'float64'
  )
  process = algorithms.build(
      name,
      problem.model_fn,
      client_learning_rate=0.05,
      num_clients=4,
      state_dir=str(tmp_path),
      **hyperparameters,
  )
  inputs = [problem.client_input(i) for i in range(4)]
  before = process.next(process.initialize(), inputs).state
  seen = collections.Counter(
      _digest(process.next(before, inputs)) for _ in range(50)
  )
  assert len(seen) == 1, seen


def _nodes(comp):
  """All nodes of all graphs of a computation."""
  found = []

  def look(block):
    if isinstance(block, tff.framework.CompiledComputation):
      graph = serialization_utils.unpack_graph_def(
          block.proto.tensorflow.graph_def
      )
      found.extend(graph.node)
      for function in graph.library.function:
        found.extend(function.node_def)
    return block, False

  tff.framework.transform_postorder(comp.to_building_block(), look)
  return found


def _sum_of(kind):
  """A computation that adds its five arguments in one of several ways."""

  @tff.tensorflow.computation([tff.TensorType(np.float64, [1])] * 5)
  def add(terms):
    terms = list(terms)
    if kind == 'graph':
      return tf.add_n(terms)
    if kind == 'arrival':
      return tf.raw_ops.AccumulateNV2(inputs=terms, shape=[1])
    if kind == 'controlled':
      with tf.control_dependencies([tf.debugging.assert_positive(terms[0])]):
        return tf.add_n(terms)

    @tf.function
    def inner():
      if kind == 'branch' and terms[0][0] > 0:
        return 1.0 * tf.add_n(terms)
      if kind == 'plus':  # Grappler's own work.
        return terms[0] + terms[1] + terms[2] + terms[3] + terms[4]
      return tf.add_n(terms)

    return inner()

  return add


@pytest.mark.parametrize(
    'kind', ['graph', 'arrival', 'controlled', 'function', 'branch', 'plus']
)
def test_every_long_sum_is_one_from_the_left(kind):
  comp = _sum_of(kind)
  native = tff.backends.native.desugar_and_transform_to_native
  of = lambda c: [n for n in _nodes(c) if n.op in ('AddN', 'AccumulateNV2')]
  assert of(native(comp))
  assert not of(native(fixed_order.computation(comp)))
  runtime.use()
  np.testing.assert_array_equal(comp(_TERMS), _FROM_LEFT)


def test_sums_without_rounding_stay_as_they_are():
  @tff.tensorflow.computation([np.int64] * 3)
  def add(terms):
    return tf.add_n(list(terms))

  fixed = fixed_order.computation(add)
  assert [n.op for n in _nodes(fixed)].count('AddN') == 1
  runtime.use()
  assert add([1, 2, 3]) == 6
