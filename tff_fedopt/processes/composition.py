"""Four processes make one `LearningProcess`."""

import collections
from collections.abc import Callable

import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.processes import aggregators
from tff_fedopt.processes import client_work
from tff_fedopt.processes import finalizers


def build_learning_process(
    model_fn: Callable[[], tff.learning.models.VariableModel],
    training: client_work.LocalTraining,
    server_method: finalizers.ServerMethod,
    server_optimizer,
    server_hparams: dict[str, float] | None = None,
) -> tff.learning.templates.LearningProcess:
  """Composes distributor, client work, aggregator and finalizer.

  The server holds and sends an ordered dictionary of `model` (`ModelWeights`)
  and `shared` (model-sized tuples such as a control variate, named in
  `server_method.shared`, zero at first). `get_model_weights` gives the model
  alone, as for any other `LearningProcess`.

  Args:
    model_fn: Returns a new model.
    training: The client half.
    server_method: The server half.
    server_optimizer: The optimizer that takes the server step.
    server_hparams: Numbers that `server_method` needs, by name.

  Returns:
    A `LearningProcess` whose `next` takes `client_input`s.
  """

  @tff.tensorflow.computation
  def initial_values():
    model = tff.learning.models.ModelWeights.from_model(model_fn())
    shared = collections.OrderedDict(
        (name, tuple(tf.zeros_like(v) for v in model.trainable))
        for name in server_method.shared
    )
    return collections.OrderedDict(model=model, shared=shared)

  global_type = initial_values.type_signature.result
  work = client_work.build_client_work(model_fn, training, global_type)
  update_type = work.next.type_signature.result.result.member.update
  aggregator = aggregators.build_aggregator(update_type)
  finalizer = finalizers.build_finalizer(
      server_method,
      server_optimizer,
      server_hparams or {},
      global_type,
      aggregator.next.type_signature.result.result.member,
  )
  composed = tff.learning.templates.compose_learning_process(
      initial_values,
      tff.learning.templates.build_broadcast_process(global_type),
      work,
      aggregator,
      finalizer,
  )
  state_type = composed.initialize.type_signature.result.member

  @tff.tensorflow.computation(state_type)
  def get_model_weights(state):
    return state.global_model_weights['model']

  @tff.tensorflow.computation(
      state_type, get_model_weights.type_signature.result
  )
  def set_model_weights(state, model):
    return tff.learning.templates.LearningAlgorithmState(
        collections.OrderedDict(
            model=model, shared=state.global_model_weights['shared']
        ),
        state.distributor,
        state.client_work,
        state.aggregator,
        state.finalizer,
    )

  return tff.learning.templates.LearningProcess(
      composed.initialize,
      composed.next,
      get_model_weights,
      set_model_weights,
      get_hparams_fn=composed.get_hparams,
      set_hparams_fn=composed.set_hparams,
  )
