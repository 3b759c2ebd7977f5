"""Four processes make one `LearningProcess`."""

import collections
from collections.abc import Callable, Mapping, Sequence
import functools
import os
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.optimizers import base
from tff_fedopt.processes import aggregators
from tff_fedopt.processes import client_state
from tff_fedopt.processes import client_work
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import model_check

ModelFn = Callable[[], tff.learning.models.VariableModel]


class _Next(tff.framework.ConcreteComputation):
  """A process's `next` that knows the commonest mistake in calling it."""

  @classmethod
  def of(cls, computation: tff.framework.ConcreteComputation) -> '_Next':
    return cls(
        computation_proto=tff.framework.ConcreteComputation.get_proto(
            computation
        ),
        context_stack=tff.framework.get_context_stack(),
        annotated_type=computation.type_signature,
    )

  def __call__(self, *args, **kwargs):
    clients = args[1] if len(args) == 2 else ()
    if isinstance(clients, Sequence) and any(
        isinstance(client, tf.data.Dataset) for client in clients
    ):
      raise ValueError(
          "process.next: a client's data set was given as it is; expected"
          ' tff_fedopt.client_input(client_id, dataset, seed) of each client'
      )
    return super().__call__(*args, **kwargs)


class Process(tff.learning.templates.LearningProcess):
  """A `LearningProcess` that knows what crosses the network.

  Attributes:
    bytes_down: Bytes a client receives in a round (model and what is shared),
      read off the types.
    bytes_up: Bytes a client sends in a round, read off the types.
    max_batches: Batches that a client goes through in a round at most, None for
      all it is given: what need not be made for it.
  """

  def __init__(
      self,
      training: client_work.LocalTraining,
      bytes_down: int,
      bytes_up: int,
      claim: Callable[[str | os.PathLike], str] | None,
      *args: Any,
      **kwargs: Any,
  ):
    super().__init__(*args, **kwargs)
    self.bytes_down = bytes_down
    self.bytes_up = bytes_up
    self.max_batches = training.max_batches
    self._own: dict[str, Mapping[str, Any]] = {
        'local_steps': training.own_steps,
        **training.own_hparams,
    }
    self._claim = claim

  def check_clients(
      self,
      state: tff.learning.templates.LearningAlgorithmState,
      client_ids: Sequence[str],
  ) -> None:
    """Refuses clients that do not fit the hyperparameters.

    Args:
      state: A state of this process.
      client_ids: All clients that may take part.

    Raises:
      ValueError: If `num_clients` is below their number, or `per_client` lists
        one that is not among them.
    """
    # Read off the state: `get_hparams` would send all of it to the worker.
    held = dict(client_work=state.client_work, finalizer=state.finalizer)
    for number in _values_of('num_clients', held):
      if number < len(client_ids):
        raise ValueError(
            f'num_clients: {number:g}, but the data have {len(client_ids)}'
            f' clients; expected {len(client_ids)}'
        )
    listed = {i for by_id in self._own.values() for i in by_id}
    if unknown := listed.difference(client_ids):
      raise ValueError(
          f'per_client: there is no client {min(unknown)!r}; there are'
          f' {len(client_ids)}, the first is {client_ids[0]!r}'
      )

  def with_state_dir(
      self,
      state: tff.learning.templates.LearningAlgorithmState,
      state_dir: str | os.PathLike,
  ) -> tff.learning.templates.LearningAlgorithmState:
    """Returns a state whose clients keep their memory in another directory.

    Args:
      state: A state of this process.
      state_dir: The directory; made where missing.

    Returns:
      The new state, or the same where clients keep nothing.

    Raises:
      client_state.ClientStateError: If the directory cannot be used, or holds
        nothing of a state that has seen rounds.
    """
    if self._claim is None:
      return state
    client_work = collections.OrderedDict(state.client_work)
    if int(client_work['round']):
      client_state.require(state_dir, int(client_work['run']))
    client_work['state_dir'] = self._claim(state_dir)
    return tff.learning.templates.LearningAlgorithmState(
        state.global_model_weights,
        state.distributor,
        client_work,
        state.aggregator,
        state.finalizer,
    )


def _values_of(name, held):
  """All numbers of this name in nested mappings."""
  for key, value in held.items():
    if isinstance(value, Mapping):
      yield from _values_of(name, value)
    elif key == name:
      yield float(value)


def num_bytes(value_type: tff.Type) -> int:
  """Bytes of a value of this type, its tensors' shapes being known."""
  tensors = tff.types.structure_from_tensor_type_tree(
      lambda t: (
          int(np.prod(t.shape, dtype=np.int64)) * np.dtype(t.dtype).itemsize
      ),
      value_type,
  )
  return sum(tff.structure.flatten(
      tff.structure.from_container(tensors, recursive=True)
  ))


def build_learning_process(
    model_fn: Callable[[], tff.learning.models.VariableModel],
    training: client_work.LocalTraining,
    server_method: finalizers.ServerMethod,
    server_optimizer: base.Optimizer,
    server_hparams: dict[str, float] | None = None,
    mean_factory: tff.aggregators.WeightedAggregationFactory | None = None,
) -> 'Process':
  """Composes distributor, client work, aggregator and finalizer.

  The server holds and sends an ordered dictionary of `model` (`ModelWeights`)
  and `shared` (what else clients need, such as a control variate; made by
  `server_method.initial_shared`). `get_model_weights` gives the model alone, as
  for any other `LearningProcess`.

  Args:
    model_fn: Returns a new model.
    training: The client half.
    server_method: The server half.
    server_optimizer: The optimizer that takes the server step.
    server_hparams: Numbers that `server_method` needs, by name.
    mean_factory: What takes the average's place; see `build_aggregator`.

  Returns:
    A `Process` whose `next` takes `client_input`s.

  Raises:
    ValueError: If the model cannot be trained; see `model_check.check`.
    client_state.ClientStateError: If clients cannot keep their memory in
      `training.state_dir`.
  """
  checked = model_check.check(model_fn)

  @tff.tensorflow.computation
  def initial_values():
    if checked.initial is None:
      model = tff.learning.models.ModelWeights.from_model(
          model_check.new_model(model_fn)
      )
    else:
      model = tf.nest.map_structure(tf.constant, checked.initial)
    weights = tuple(tf.convert_to_tensor(v) for v in model.trainable)
    shared = server_method.initial_shared(weights)
    return collections.OrderedDict(model=model, shared=shared)

  global_type = initial_values.type_signature.result
  work = client_work.build_client_work(
      model_fn, checked, training, global_type
  )
  result_type = work.next.type_signature.result.result.member
  update_type = result_type.update
  aggregator = aggregators.build_aggregator(
      update_type, result_type.update_weight, mean_factory
  )
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
    held = state.global_model_weights
    # Before the first round clients are where the server is, and go with it.
    started = state.client_work['round'] > 0
    moved = tuple(
        tf.where(started, new - old, tf.zeros_like(old))
        for new, old in zip(model.trainable, held['model'].trainable)
    )
    finalizer = collections.OrderedDict(state.finalizer)
    finalizer['kept'] = server_method.follow(
        finalizer['method'], finalizer['kept'], moved
    )
    return tff.learning.templates.LearningAlgorithmState(
        collections.OrderedDict(model=model, shared=held['shared']),
        state.distributor,
        state.client_work,
        state.aggregator,
        finalizer,
    )

  claim = None
  if training.store:
    # Last, so that nothing is left behind if anything before is refused.
    specs = tff.types.type_to_tf_tensor_specs(global_type['model'].trainable)
    claim = functools.partial(
        training.store.claim, specs=tf.nest.flatten(specs)
    )
    claim(training.state_dir)
  return Process(
      training,
      num_bytes(global_type),
      num_bytes(update_type),
      claim,
      composed.initialize,
      _Next.of(composed.next),
      get_model_weights,
      set_model_weights,
      get_hparams_fn=composed.get_hparams,
      set_hparams_fn=composed.set_hparams,
  )
