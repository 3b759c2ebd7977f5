"""The server half of an algorithm, as a `FinalizerProcess`."""

import collections
from collections.abc import Mapping

import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.optimizers import base
from tff_fedopt.processes import trees


class ServerMethod:
  """What the server does with the aggregate; the default is FedOpt's.

  ```
  x = server optimizer's step from x along the mean of x_0 − y_i
  ```
  """

  def initial_shared(self, weights: base.Tensors) -> base.State:
    """What is sent beside the model in the first round.

    Args:
      weights: The initial model's trainable weights, a tuple of tensors.

    Returns:
      An ordered dictionary of (nests of) tensors.
    """
    del weights
    return collections.OrderedDict()

  def pseudo_gradient(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.Tensors:
    """The server optimizer's gradient, a tuple of tensors."""
    del hparams, shared
    return tuple(aggregate['mean'])

  def new_shared(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.State:
    """What is sent beside the model next round, structured as `shared`."""
    del hparams, aggregate
    return shared

  def initial_kept(self, specs: base.Specs) -> base.State:
    """What the server keeps for itself, before the first round.

    Args:
      specs: Shapes and dtypes of the trainable weights, a tuple.

    Returns:
      An ordered dictionary of (nests of) tensors; it is never sent.
    """
    del specs
    return collections.OrderedDict()

  def settle(
      self,
      hparams: base.Hparams,
      aggregate: base.State,
      x: base.Tensors,
      stepped: base.Tensors,
      kept: base.State,
  ) -> tuple[base.Tensors, base.State]:
    """The new model, and what the server keeps of the round.

    Args:
      hparams: Ordered dictionary of float64 scalars.
      aggregate: What `build_aggregator` gives.
      x: The model before the round, a tuple of tensors.
      stepped: The model after the server optimizer's step, a tuple.
      kept: As `initial_kept`, from the round before.

    Returns:
      The new model's trainable weights, and the new `kept`.
    """
    del hparams, aggregate, x
    return stepped, kept

  def follow(
      self, hparams: base.Hparams, kept: base.State, moved: base.Tensors
  ) -> base.State:
    """What is kept once somebody moved the model between two rounds.

    Args:
      hparams: As for `pseudo_gradient`.
      kept: As for `settle`.
      moved: The new model minus the old one, a tuple of tensors.

    Returns:
      The new `kept`.
    """
    del hparams, moved
    return kept

  def measure(
      self, hparams: base.Hparams, kept: base.State, speakers: tf.Tensor
  ) -> Mapping[str, tf.Tensor]:
    """Metrics of the round, an ordered dictionary of scalars.

    Args:
      hparams: As for `pseudo_gradient`.
      kept: As for `settle`, after the round.
      speakers: How many clients had anything to say, an int32 scalar; where
        there are none, what is a statistic over them is not a number.
    """
    del hparams, kept, speakers
    return collections.OrderedDict()


def build_finalizer(
    method: ServerMethod,
    optimizer: base.Optimizer,
    hparams: dict[str, float],
    global_type: tff.Type,
    aggregate_type: tff.Type,
) -> tff.learning.templates.FinalizerProcess:
  """Builds the finalizer of any algorithm.

  Args:
    method: The algorithm's server half.
    optimizer: The server optimizer.
    hparams: Numbers that `method` needs beside the optimizer's, by name.
    global_type: Type of what the server holds and sends, an ordered dictionary
      of `model` (`ModelWeights`) and `shared`.
    aggregate_type: Type of what `build_aggregator` gives.

  Returns:
    A `FinalizerProcess`. An aggregate that is not finite leaves the server as
    it is and is counted in the measurement `update_non_finite`. So does a round
    in which no client had anything to say: neither model nor momentum, nor
    anything else that the server keeps or sends, moves on no data.
  """
  trainable_type = global_type['model'].trainable

  @tff.tensorflow.computation
  def initialize():
    specs = tff.types.type_to_tf_tensor_specs(trainable_type)
    specs = tuple(tf.nest.flatten(specs))
    return collections.OrderedDict(
        method=collections.OrderedDict(
            (k, tf.constant(v, tf.float64)) for k, v in hparams.items()
        ),
        optimizer=optimizer.initialize(specs),
        kept=method.initial_kept(specs),
    )

  state_type = initialize.type_signature.result

  @tff.tensorflow.computation(state_type, global_type, aggregate_type)
  def finalize(state, held, aggregate):
    gradient = method.pseudo_gradient(
        state['method'], aggregate, held['shared']
    )
    x = tuple(held['model'].trainable)
    optimizer_state, stepped = optimizer.next(state['optimizer'], x, gradient)
    new_x, kept = method.settle(
        state['method'], aggregate, x, stepped, state['kept']
    )
    new = (
        optimizer_state,
        new_x,
        method.new_shared(state['method'], aggregate, held['shared']),
        kept,
    )
    old = (state['optimizer'], x, held['shared'], state['kept'])
    finite = trees.all_finite(aggregate)
    optimizer_state, new_x, shared, kept = tf.cond(
        finite & (aggregate['speakers'] > 0), lambda: new, lambda: old
    )
    model = tff.learning.models.ModelWeights(
        tf.nest.pack_sequence_as(held['model'].trainable, new_x),
        held['model'].non_trainable,
    )
    return (
        collections.OrderedDict(
            method=state['method'], optimizer=optimizer_state, kept=kept
        ),
        collections.OrderedDict(model=model, shared=shared),
        collections.OrderedDict(
            update_non_finite=1 - tf.cast(finite, tf.int32),
            **method.measure(state['method'], kept, aggregate['speakers']),
        ),
    )

  @tff.federated_computation
  def init_fn():
    return tff.federated_eval(initialize, tff.SERVER)

  @tff.federated_computation(
      tff.FederatedType(state_type, tff.SERVER),
      tff.FederatedType(global_type, tff.SERVER),
      tff.FederatedType(aggregate_type, tff.SERVER),
  )
  def next_fn(state, held, aggregate):
    return tff.templates.MeasuredProcessOutput(
        *tff.federated_map(finalize, (state, held, aggregate))
    )

  @tff.tensorflow.computation(state_type)
  def get_hparams_fn(state):
    return collections.OrderedDict(
        method=state['method'],
        optimizer=optimizer.get_hparams(state['optimizer']),
    )

  @tff.tensorflow.computation(
      state_type, get_hparams_fn.type_signature.result
  )
  def set_hparams_fn(state, new):
    return collections.OrderedDict(
        method=new['method'],
        optimizer=optimizer.set_hparams(state['optimizer'], new['optimizer']),
        kept=state['kept'],
    )

  return tff.learning.templates.FinalizerProcess(
      init_fn,
      next_fn,
      get_hparams_fn=get_hparams_fn,
      set_hparams_fn=set_hparams_fn,
  )
