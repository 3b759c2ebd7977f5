"""The server half of an algorithm, as a `FinalizerProcess`."""

import collections

import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.processes import trees


class ServerMethod:
  """What the server does with the aggregate; the default is FedOpt's.

  ```
  x = server optimizer's step from x along the mean of x_0 − y_i
  ```
  """

  def initial_shared(self, weights):
    """What is sent beside the model in the first round.

    Args:
      weights: The initial model's trainable weights, a tuple of tensors.

    Returns:
      An ordered dictionary of (nests of) tensors.
    """
    del weights
    return collections.OrderedDict()

  def pseudo_gradient(self, hparams, aggregate, shared):
    """The server optimizer's gradient, a tuple of tensors."""
    del hparams, shared
    return tuple(aggregate['mean'])

  def new_shared(self, hparams, aggregate, shared):
    """What is sent beside the model next round, structured as `shared`."""
    del hparams, aggregate
    return shared


def build_finalizer(
    method: ServerMethod,
    optimizer,
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
    it is and is counted in the measurement `update_non_finite`.
  """
  trainable_type = global_type['model'].trainable

  @tff.tensorflow.computation
  def initialize():
    specs = tff.types.type_to_tf_tensor_specs(trainable_type)
    return collections.OrderedDict(
        method=collections.OrderedDict(
            (k, tf.constant(v, tf.float64)) for k, v in hparams.items()
        ),
        optimizer=optimizer.initialize(tuple(tf.nest.flatten(specs))),
    )

  state_type = initialize.type_signature.result

  @tff.tensorflow.computation(state_type, global_type, aggregate_type)
  def finalize(state, held, aggregate):
    gradient = method.pseudo_gradient(
        state['method'], aggregate, held['shared']
    )
    x = tuple(held['model'].trainable)
    optimizer_state, new_x = optimizer.next(state['optimizer'], x, gradient)
    new = (
        optimizer_state,
        new_x,
        method.new_shared(state['method'], aggregate, held['shared']),
    )
    old = (state['optimizer'], x, held['shared'])
    finite = trees.all_finite(aggregate)
    optimizer_state, new_x, shared = tf.cond(
        finite, lambda: new, lambda: old
    )
    model = tff.learning.models.ModelWeights(
        tf.nest.pack_sequence_as(held['model'].trainable, new_x),
        held['model'].non_trainable,
    )
    return (
        collections.OrderedDict(
            method=state['method'], optimizer=optimizer_state
        ),
        collections.OrderedDict(model=model, shared=shared),
        collections.OrderedDict(
            update_non_finite=1 - tf.cast(finite, tf.int32)
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
    )

  return tff.learning.templates.FinalizerProcess(
      init_fn,
      next_fn,
      get_hparams_fn=get_hparams_fn,
      set_hparams_fn=set_hparams_fn,
  )
