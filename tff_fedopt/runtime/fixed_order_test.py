"""Equal calls give equal bits, however busy the machine is."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.tensorflow_libs import serialization_utils

from tff_fedopt import runtime
from tff_fedopt.runtime import fixed_order

# So many numbers that each order of adding them rounds some differently.
_TERMS = list(np.random.default_rng(0).uniform(0.1, 9.0, size=(5, 100)))
_FROM_LEFT = (((_TERMS[0] + _TERMS[1]) + _TERMS[2]) + _TERMS[3]) + _TERMS[4]


@pytest.fixture(name='engine', params=['local', 'worker'])
def _engine(request):
  runtime.use(request.param)


@pytest.mark.parametrize('in_use', [(), (0,), (0, 1), (1, 2), (0, 1, 2)])
def test_a_sum_does_not_depend_on_who_else_still_uses_its_terms(
    engine, in_use
):
  """As on a busy machine, where it is a matter of luck."""
  del engine

  @tff.tensorflow.computation([tff.TensorType(np.float64, [100])] * 5)
  def add(values):
    terms = [tf.abs(value) for value in values]
    use = lambda term: tf.reduce_sum(tf.sin(term))
    before = [use(t) for i, t in enumerate(terms) if i not in in_use]
    with tf.control_dependencies(before):
      total = tf.add_n(terms)
    with tf.control_dependencies([total]):
      after = [use(terms[i]) for i in in_use]
    return total, before, after

  total, _, _ = add(_TERMS)
  np.testing.assert_array_equal(total, _FROM_LEFT)


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

  @tff.tensorflow.computation([tff.TensorType(np.float64, [100])] * 5)
  def add(terms):
    terms = list(terms)
    if kind == 'graph':
      return tf.add_n(terms)
    if kind == 'arrival':
      return tf.raw_ops.AccumulateNV2(inputs=terms, shape=[100])
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
def test_every_long_sum_is_one_from_the_left(engine, kind):
  del engine
  comp = _sum_of(kind)
  native = tff.backends.native.desugar_and_transform_to_native
  of = lambda c: [n for n in _nodes(c) if n.op in ('AddN', 'AccumulateNV2')]
  assert of(native(comp))
  assert not of(native(fixed_order.computation(comp)))
  np.testing.assert_array_equal(comp(_TERMS), _FROM_LEFT)


def test_sums_without_rounding_stay_as_they_are(engine):
  del engine

  @tff.tensorflow.computation([np.int64] * 3)
  def add(terms):
    return tf.add_n(list(terms))

  fixed = fixed_order.computation(add)
  assert [n.op for n in _nodes(fixed)].count('AddN') == 1
  assert add([1, 2, 3]) == 6
