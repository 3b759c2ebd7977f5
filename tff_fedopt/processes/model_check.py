"""Looks at what `model_fn` returns before anything is built of it.

The model is made once in a graph that is thrown away, and its forward pass is
traced there: nothing runs. Every mistake that shows is said in one line.
"""

from collections.abc import Callable
import inspect
from typing import Any, NamedTuple
import warnings

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.processes import graph_reading

# Frames between a warning and the call of `build` in the user's code.
_CALLERS = 8
# A graph, of which initial values become a part, takes at most 2 GB.
_MOST_BYTES = 1_900_000_000

_WRAP = (
    'tff.learning.models.from_keras_model(keras_model, loss=…, input_spec=…)'
)


class Checked(NamedTuple):
  """What is known of a model.

  Attributes:
    model: The model, in `graph`.
    graph: The graph it was made in, in which nothing runs.
    initial: Its weights if `model_fn` gave them values after making them, a
      `ModelWeights` of arrays; None if each starts as it was made.
  """

  model: tff.learning.models.VariableModel
  graph: tf.Graph
  initial: tff.learning.models.ModelWeights | None


def check(model_fn: Callable[[], tff.learning.models.VariableModel]) -> Checked:
  """Refuses what cannot be trained, in one line that says what would be right.

  Args:
    model_fn: What the user gave.

  Returns:
    What the model is.

  Raises:
    ValueError: If `model_fn` is no function that makes a new model in each
      call, or the model cannot be trained as it is. What `model_fn` and the
      forward pass raise themselves comes through as it is.
  """
  _check_function(model_fn)
  graph, first_values = tf.Graph(), set()

  def remember(next_creator, **kwargs):
    variable = next_creator(**kwargs)
    first_values.add(variable.initializer.name)
    return variable

  with graph.as_default():
    with tf.variable_creator_scope(remember):
      model = new_model(model_fn)
    _check_weights(model)
    made = graph_reading.Graph(graph.as_graph_def())
    _check_forward_pass(model)
  # Whatever is set in this graph is not set in those that will be run.
  initial = _values_of(model_fn) if made.changed(but=first_values) else None
  return Checked(model, graph, initial)


def new_model(model_fn: Callable[[], Any]) -> tff.learning.models.VariableModel:
  """Calls `model_fn` in the current graph; refuses what is not a new model."""
  model = model_fn()
  if isinstance(model, tf.keras.Model):
    raise ValueError(
        f'model_fn returned a Keras model; expected one made of it, {_WRAP}'
    )
  if isinstance(model, tff.learning.models.FunctionalModel):
    raise ValueError(
        'model_fn returned a FunctionalModel; expected'
        ' tff.learning.models.model_from_functional of it'
    )
  if not isinstance(model, tff.learning.models.VariableModel):
    raise ValueError(
        f'model_fn returned {_kind(model)}; expected a'
        ' tff.learning.models.VariableModel'
    )
  try:
    variables = _weights(model)
  except ValueError as e:
    if 'have not yet been created' not in str(e):
      raise
    raise ValueError(
        "model_fn: the Keras model has no weights yet; expected its inputs'"
        ' shape, as tf.keras.layers.Input(shape) in front or a call of build'
    ) from None
  here = tf.compat.v1.get_default_graph()
  for v in (*variables, *model.local_variables):
    # Eager variables have no graph.
    if getattr(v.handle, 'graph', None) is not here:
      raise ValueError(
          f'model_fn: {_name(v)} was made outside this call of model_fn;'
          ' expected model, layers and metrics made anew in every call'
      )
  return model


def _check_function(model_fn):
  if isinstance(
      model_fn,
      (
          tf.keras.Model,
          tff.learning.models.VariableModel,
          tff.learning.models.FunctionalModel,
      ),
  ):
    raise ValueError(
        f'model_fn is {_kind(model_fn)}; expected a function that makes and'
        ' returns a new tff.learning.models.VariableModel in every call'
    )
  if not callable(model_fn):
    raise ValueError(
        f'model_fn is {_kind(model_fn)}; expected a function without arguments'
        ' that returns a tff.learning.models.VariableModel'
    )
  try:
    inspect.signature(model_fn).bind()
  except TypeError as e:
    raise ValueError(
        f'model_fn cannot be called without arguments ({e}); give them with'
        ' functools.partial or a lambda'
    ) from None
  except ValueError:
    pass  # Built in; Python does not know what it takes.


def _check_weights(model):
  if not model.trainable_variables:
    raise ValueError(
        'model_fn: the model has no trainable weights; expected one or more'
        ' (is every layer frozen?)'
    )
  dtypes = {}
  for v in model.trainable_variables:
    dtypes.setdefault(v.dtype, v)
    if not v.dtype.is_floating:
      raise ValueError(
          f'model_fn: the weight {_name(v)} is {v.dtype.name}; expected a'
          ' floating dtype, or the variable among the non-trainable ones'
      )
  if len(dtypes) > 1:
    first, second = list(dtypes.values())[:2]
    raise ValueError(
        f'model_fn: the weight {_name(first)} is {first.dtype.name},'
        f' {_name(second)} is {second.dtype.name}; expected one floating dtype'
        ' for all trainable weights'
    )
  if model.input_spec is None:
    raise ValueError(
        'model_fn: the model has no input_spec; expected the tf.TensorSpec of'
        ' each part of a batch'
    )


def _check_forward_pass(model):
  """Traces a training pass, and looks at what it does besides."""
  traced = tf.function(
      lambda batch: model.forward_pass(batch, training=True)
  ).get_concrete_function(model.input_spec)
  graph = graph_reading.Graph(traced.graph.as_graph_def())
  changed = graph.changed()
  for outside, inside in traced.graph.captures:
    for v in model.non_trainable_variables:
      if v.handle is outside and inside.op.name in changed:
        raise ValueError(
            f'model_fn: the forward pass changes {_name(v)}, which is not'
            ' trainable, so clients would lose it (batch normalisation?);'
            ' expected a layer that keeps nothing, such as'
            ' GroupNormalization, or the layer frozen (trainable=False)'
        )
  drawn = graph.random_operations()
  if drawn:
    more = f' and {len(drawn) - 1} more' if drawn[1:] else ''
    warnings.warn(
        f'model_fn: the forward pass draws random numbers ({drawn[0]}{more})'
        ' that the seed of a run does not reach, so that two runs differ; give'
        ' the model a method seed_randomness(seed, step) and draw with'
        ' tf.random.stateless_… (see tff_fedopt.algorithms.build)',
        stacklevel=_CALLERS,
    )


def _weights(model):
  return (*model.trainable_variables, *model.non_trainable_variables)


def _values_of(model_fn):
  """A model's weights as they are once `model_fn` has returned, arrays."""
  created = []

  def remember(next_creator, **kwargs):
    variable = next_creator(**kwargs)
    created.append((variable, np.array(variable)))
    return variable

  advice = (
      'give the values with process.set_model_weights(state, weights) instead'
  )
  try:
    with tf.init_scope(), tf.variable_creator_scope(remember):
      model = model_fn()
      initial = tff.learning.models.ModelWeights(
          *(
              tf.nest.map_structure(np.array, weights)
              for weights in (
                  model.trainable_variables,
                  model.non_trainable_variables,
              )
          )
      )
      moved = [v for v, first in created if not _same(np.array(v), first)]
  except Exception as e:  # Whatever works in a graph alone.
    raise ValueError(
        'model_fn sets weights after making them, and their values cannot be'
        f' read ({" ".join(str(e).split()):.100}); {advice}'
    ) from None
  known = {id(v) for v in _weights(model)}
  if lost := [v for v in moved if id(v) not in known]:
    raise ValueError(
        f'model_fn sets {_name(lost[0])}, which is none of the weights that'
        ' clients receive; expected it among non_trainable_variables, or made'
        ' with this value'
    )
  size = sum(v.nbytes for v in tf.nest.flatten(list(initial)))
  if size > _MOST_BYTES:
    raise ValueError(
        f'model_fn sets weights of {size / 1e9:.1f} GB after making them, more'
        f' than a graph can hold; {advice}'
    )
  return initial if moved else None


def _same(a, b):
  return a.shape == b.shape and np.array_equal(a, b)


def _name(variable):
  return variable.name.removesuffix(':0')


def _kind(value):
  """What a value is, in words."""
  for cls, name in (
      (tf.keras.Model, 'a Keras model'),
      (tff.learning.models.FunctionalModel, 'a FunctionalModel'),
      (tff.learning.models.VariableModel, 'a model'),
  ):
    if isinstance(value, cls):
      return name
  return 'None' if value is None else f'of type {type(value).__name__}'
