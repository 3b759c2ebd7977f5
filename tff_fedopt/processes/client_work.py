"""The one local training loop, as a `ClientWorkProcess`."""

import collections
from collections.abc import Callable, Mapping
import dataclasses
import functools
import inspect
import os
import typing
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.optimizers import base as optimizers
from tff_fedopt.optimizers import schedules
from tff_fedopt.optimizers import sgd
from tff_fedopt.processes import client_input
from tff_fedopt.processes import local_method
from tff_fedopt.processes import local_steps
from tff_fedopt.processes import model_check
from tff_fedopt.processes import per_client
from tff_fedopt.processes import trees


@typing.runtime_checkable
class SeededModel(Protocol):
  """A model whose randomness (dropout) is a function of seed and step."""

  def seed_randomness(self, seed: tf.Tensor, step: tf.Tensor) -> None:
    """Is called before every pass.

    Args:
      seed: Int64 scalar tensor, the client's seed in this round.
      step: Int64 scalar tensor, the number of the local step.
    """


@typing.runtime_checkable
class RoundModel(Protocol):
  """A model that wants to know when a client begins a round."""

  def begin_round(self) -> None:
    """Is called once the received weights are in place."""


@dataclasses.dataclass(frozen=True)
class LocalTraining:
  """How clients train, apart from the model and the data.

  Attributes:
    method: The algorithm's client half.
    optimizer: The client optimizer.
    optimizer_hparams: Client hyperparameter name of each hyperparameter of the
      optimizer, such as `tau='client_epsilon'`.
    schedule: The client learning rate by round.
    hparams: Numbers held in the process's state, by hyperparameter name.
    weighting: `examples`, `tokens` or `uniform`.
    clips: Whether gradients are clipped at `max_gradient_norm`.
    decays: Whether `weight_decay` acts.
    decay_after_clipping: As in FL-Simulator (the decay is added to the clipped
      direction), or inside the gradient as a term of the loss.
    store: How clients keep their memory, or None for algorithms without.
    state_dir: Where they do unless the state is given another directory.
    steps: How many steps a client takes.
    own_steps: Client id to its own numbers of steps, gone through by round.
    own_hparams: Hyperparameter to client id to the client's own value; a
      learning rate follows the schedule as the common one does.
  """

  method: local_method.LocalMethod
  optimizer: optimizers.Optimizer
  optimizer_hparams: dict[str, str]
  schedule: schedules.Schedule
  hparams: dict[str, float]
  weighting: str = 'examples'
  clips: bool = False
  decays: bool = False
  decay_after_clipping: bool = False
  store: Any = None
  state_dir: str = ''
  steps: local_steps.LocalSteps = local_steps.LocalSteps()
  own_steps: Mapping[str, tuple[int, ...]] = dataclasses.field(
      default_factory=dict
  )
  own_hparams: Mapping[str, Mapping[str, float]] = dataclasses.field(
      default_factory=dict
  )

  @property
  def max_batches(self) -> int | None:
    """Batches that a client goes through at most; None for all it has."""
    if self.own_steps or self.method.needs_gradient_at_x:
      return None
    return self.steps.high or None


def build_client_work(
    model_fn: Callable[[], tff.learning.models.VariableModel],
    checked: model_check.Checked,
    training: LocalTraining,
    received_type: tff.Type,
) -> tff.learning.templates.ClientWorkProcess:
  """Builds the client work of any algorithm.

  The state at the server is the round's number, the hyperparameters and where
  clients keep their memory, so a learning-rate schedule, a changed
  hyperparameter or another directory never retraces anything.

  Args:
    model_fn: Returns a new model; weights of any one floating dtype.
    checked: What `model_check.check` found.
    training: How clients train.
    received_type: Type of what the distributor sends, an ordered dictionary
      of `model` (`ModelWeights`) and `shared`.

  Returns:
    A `ClientWorkProcess` whose clients take `client_input`s and upload what
    `training.method` says, with a weight that says whether the client `speaks`:
    1, or 0 for one that took no step or weighs nothing. A client whose result
    is not finite uploads zeros with weight 0, keeps its old memory and is
    counted in the metric `non_finite_clients`. What is measured while training
    is not a number where no client was measured.
  """
  with checked.graph.as_default():
    model = checked.model
    data_type = client_input.client_input_type(model.input_spec)
    finalize_metrics = tff.learning.metrics.sum_then_finalize(
        model.metric_finalizers()
    )
    unfinalized = model.report_local_unfinalized_metrics()
    if training.weighting == 'tokens' and 'num_tokens' not in unfinalized:
      raise ValueError(
          'client_weighting=tokens needs a model whose metrics include'
          ' num_tokens; this one reports '
          + ', '.join(unfinalized)
          + '. Use client_weighting=examples.'
      )

  initial_state = collections.OrderedDict(
      round=np.int64(0),
      schedule_rate=np.float64(training.schedule.rate),
      schedule_steps=np.float64(training.schedule.steps),
      **{k: np.float64(v) for k, v in training.hparams.items()},
  )
  fixed = ['round']
  if training.store:
    initial_state['run'] = np.int64(0)  # Set by `initialize`.
    initial_state['state_dir'] = np.str_(os.path.abspath(training.state_dir))
    fixed += ['run', 'state_dir']
  state_type = tff.to_type(
      collections.OrderedDict(
          (k, v.dtype.type) for k, v in initial_state.items()
      )
  )

  @tff.tensorflow.computation
  def initialize():
    state = collections.OrderedDict(
        (k, tf.constant(v)) for k, v in initial_state.items()
    )
    if training.store:
      # Any number that no other run has.
      state['run'] = tf.cast(1e6 * tf.timestamp(), tf.int64)
    return state

  @tff.tensorflow.computation(state_type)
  def for_this_round(state):
    sent = collections.OrderedDict(state)
    sent['client_learning_rate'] *= _rate_factor(training, state)
    return sent

  @tff.tensorflow.computation(state_type)
  def advance(state):
    state = collections.OrderedDict(state)
    state['round'] += 1
    return state

  @tff.tensorflow.computation(state_type, received_type, data_type)
  def train_client(state, received, data):
    client_training = _build_training(_model_to_fill(model_fn), training)
    return client_training(state, received, data)

  @tff.federated_computation
  def init_fn():
    return tff.federated_eval(initialize, tff.SERVER)

  @tff.federated_computation(
      tff.FederatedType(state_type, tff.SERVER),
      tff.FederatedType(received_type, tff.CLIENTS),
      tff.FederatedType(data_type, tff.CLIENTS),
  )
  def next_fn(state, received, client_data):
    sent = tff.federated_broadcast(
        tff.federated_map(for_this_round, state)
    )
    result, metrics, counts = tff.federated_map(
        train_client, (sent, received, client_data)
    )
    return tff.templates.MeasuredProcessOutput(
        tff.federated_map(advance, state),
        result,
        tff.federated_zip(
            collections.OrderedDict(
                train=_measured(
                    finalize_metrics(metrics),
                    tff.federated_sum(counts['trained']),
                ),
                non_finite_clients=tff.federated_sum(counts['non_finite']),
                local_steps=tff.federated_sum(counts['steps']),
            )
        ),
    )

  settable = [k for k in initial_state if k not in fixed]
  hparams_type = tff.to_type(
      collections.OrderedDict((k, state_type[k]) for k in settable)
  )

  @tff.tensorflow.computation(state_type)
  def get_hparams_fn(state):
    return collections.OrderedDict((k, state[k]) for k in settable)

  @tff.tensorflow.computation(state_type, hparams_type)
  def set_hparams_fn(state, hparams):
    state = collections.OrderedDict(state)
    state.update(hparams)
    return state

  return tff.learning.templates.ClientWorkProcess(
      init_fn,
      next_fn,
      get_hparams_fn=get_hparams_fn,
      set_hparams_fn=set_hparams_fn,
  )


def _measured(metrics, num_clients):
  """Metrics at the server; not a number where no client was measured.

  Counts (`num_examples` and others of such names) are then 0.
  """

  @tff.tensorflow.computation(
      metrics.type_signature.member, num_clients.type_signature.member
  )
  def missing_if_nobody(metrics, num_clients):
    def one(value):
      value = tf.convert_to_tensor(value)
      if not value.dtype.is_floating:
        return value
      nothing = tf.fill(tf.shape(value), tf.constant(np.nan, value.dtype))
      return tf.where(num_clients > 0, value, nothing)

    return collections.OrderedDict(
        (
            name,
            value
            if name.startswith('num_')
            else tf.nest.map_structure(one, value),
        )
        for name, value in metrics.items()
    )

  return tff.federated_map(missing_if_nobody, (metrics, num_clients))


def _rate_factor(training, state):
  """What the client learning rate is multiplied by this round."""
  return training.schedule.factor(
      state['round'], state['schedule_rate'], state['schedule_steps']
  )


def _model_to_fill(model_fn):
  """A new model whose weights start at zeros: they are assigned at once.

  Every client's call runs the initial values of the variables, which for a
  large model takes longer than a step.
  """
  replaced = []

  def zeros(next_creator, **kwargs):
    shape, dtype = kwargs.get('shape'), kwargs.get('dtype')
    known = shape is not None and dtype is not None
    if not (known and callable(kwargs['initial_value'])):
      return next_creator(**kwargs)
    if kwargs.get('trainable') is False:
      return next_creator(**kwargs)  # May hold what nobody assigns.
    kwargs['initial_value'] = lambda: tf.zeros(shape, dtype)
    variable = next_creator(**kwargs)
    replaced.append(variable)
    return variable

  with tf.variable_creator_scope(zeros):
    model = model_check.new_model(model_fn)
  assigned = {id(v) for v in model.trainable_variables}
  if all(id(v) in assigned for v in replaced):
    return model
  return model_fn()  # Some of them are not weights and keep their values.


def _build_training(model, training):
  """The local loop around one model, as a `tf.function`."""
  method, optimizer = training.method, training.optimizer
  variables = tuple(model.trainable_variables)
  specs = tuple(tf.TensorSpec(v.shape, v.dtype) for v in variables)
  # Sparse gradients of an embedding stay sparse only where nothing but plain
  # gradient descent touches them.
  sparse = (
      isinstance(optimizer, sgd.Sgd)
      and method.keeps_gradient
      and not (training.clips or training.decays)
      and method.tracks_displacement is None
  )

  def gradients_of(batch):
    forward_pass = _with_autograph(model.forward_pass)
    with tf.GradientTape() as tape:
      output = forward_pass(batch, training=True)
    gradients = tape.gradient(output.loss, variables)
    if not sparse:
      gradients = tuple(
          tf.zeros_like(v) if g is None else tf.convert_to_tensor(g)
          for g, v in zip(gradients, variables)
      )
    return output, gradients

  def seed_step(context, step):
    """Makes the randomness of the next passes that of a local step."""
    if isinstance(model, SeededModel):
      model.seed_randomness(context['seed'], step)

  def gradient_elsewhere(batch, seed_again):
    """A function giving the gradient of `batch` at other weights.

    Args:
      batch: The batch.
      seed_again: Gives the next pass the dropout of the pass at the weights.
    """

    def gradient_at(weights):
      here = [tf.identity(v) for v in variables]
      metrics = [tf.identity(v) for v in model.local_variables]
      _assign(variables, weights)
      seed_again()
      _, gradients = gradients_of(batch)
      with tf.control_dependencies(gradients):
        _assign(variables, here)
        _assign(model.local_variables, metrics)
      return gradients

    return gradient_at

  def whole_gradient(client, examples):
    """The gradient of the client's whole loss at the server's model."""
    metrics = [tf.identity(v) for v in model.local_variables]
    _assign(variables, client.x)
    total = trees.zeros_like(variables)
    num_examples = tf.zeros([], tf.int64)
    for batch in iter(examples):
      output, gradients = gradients_of(batch)
      rows = tf.cast(_rows(output), tf.int64)
      total = trees.add_scaled(total, rows, gradients)
      num_examples += rows
    _assign(model.local_variables, metrics)
    mean = trees.divide_no_nan(
        total, tuple(tf.cast(num_examples, t.dtype) for t in total)
    )
    if training.decays:
      mean = trees.add_scaled(mean, client.hparams['weight_decay'], client.x)
    return mean

  def direction(client, g, gradient_at):
    """The gradient after correction, clipping and decay, in that order."""
    h = client.hparams
    decay = h['weight_decay'] if training.decays else None
    if training.decays and not training.decay_after_clipping:
      g = trees.add_scaled(g, decay, variables)
      loss_gradient_at = gradient_at
      gradient_at = lambda w: trees.add_scaled(loss_gradient_at(w), decay, w)
    g = method.direction(client, variables, g, gradient_at)
    if training.clips:
      norm = tf.sqrt(trees.squared_norm(g))
      limit = tf.cast(h['max_gradient_norm'], norm.dtype)
      shrink = tf.minimum(tf.ones_like(norm), limit / (norm + 1e-6))
      g = trees.scaled(shrink, g)
    if training.decays and training.decay_after_clipping:
      g = trees.add_scaled(g, decay, variables)
    late = method.late_decay(client)
    if late is not None:
      g = trees.add_scaled(g, late, variables)
    return g

  def accumulate(client, state, trace):
    """N_i after one more step; see `Optimizer.unit_displacement`."""
    q, n = trace
    if method.tracks_displacement == 'published':
      q = optimizer.published_weights(state, q)
      return q, trees.add(n, q)
    seed = trees.ones_like(n)
    pull = method.linear_pull(client)
    if training.decays:
      pull = client.hparams['weight_decay'] + (0 if pull is None else pull)
    if pull is not None:
      seed = trees.add_scaled(seed, -pull, n)
    q, step = optimizer.unit_displacement(state, q, seed)
    return q, trees.add(n, step)

  def weight_of(num_examples):
    if training.weighting == 'tokens':
      return model.report_local_unfinalized_metrics()['num_tokens'][0]
    if training.weighting == 'uniform':
      return tf.minimum(num_examples, 1)
    return num_examples

  def own_hparams(state, client_id):
    hparams = per_client.of_client(training.own_hparams, state, client_id)
    if 'client_learning_rate' in training.own_hparams:
      ids = tf.constant(list(training.own_hparams['client_learning_rate']))
      listed = tf.reduce_any(tf.equal(ids, client_id))
      factor = _rate_factor(training, state)
      hparams['client_learning_rate'] *= tf.where(listed, factor, 1.0)
    return hparams

  def own_batches(state, data, context):
    own = None
    if training.own_steps:
      own = per_client.steps_of_client(
          training.own_steps, context['client_id']
      )
    return training.steps.batches(
        data['examples'], own, state['round'], context['seed']
    )

  @functools.partial(tf.function, autograph=False)
  @_with_loop_alone
  def train(state, received, data):
    context = data['context'].get_single_element()
    hparams = own_hparams(state, context['client_id'])
    memory = (
        training.store.read(
            context['client_id'],
            state['state_dir'],
            state['round'],
            state['run'],
            tuple(received['model'].trainable),
        )
        if training.store
        else collections.OrderedDict()
    )
    client = local_method.Client(
        hparams=hparams,
        x=tuple(received['model'].trainable),
        shared=received['shared'],
        memory=memory,
    )
    start = method.start(client)
    client = client._replace(start=start, origin=start)
    client = client._replace(prepared=method.prepare(client))
    _assign(variables, client.start)
    _assign(model.non_trainable_variables, received['model'].non_trainable)
    if isinstance(model, RoundModel):
      model.begin_round()

    optimizer_hparams = collections.OrderedDict(
        (theirs, hparams[ours])
        for theirs, ours in training.optimizer_hparams.items()
    )
    optimizer_state = method.optimizer_state(
        client, optimizer, optimizer_hparams, specs
    )
    trace = (
        (trees.zeros_like(variables), trees.zeros_like(variables))
        if method.tracks_displacement
        else ()
    )
    num_steps = tf.zeros([], tf.int64)
    num_examples = tf.zeros([], tf.int64)
    for batch in iter(own_batches(state, data, context)):
      seed_again = functools.partial(seed_step, context, num_steps)
      seed_again()
      output, gradients = gradients_of(batch)
      if sparse:
        optimizer_state = optimizer.apply_sparse(
            optimizer_state, variables, gradients
        )
      else:
        optimizer_state = optimizer.apply(
            optimizer_state,
            variables,
            direction(client, gradients, gradient_elsewhere(batch, seed_again)),
        )
      if method.tracks_displacement:
        trace = accumulate(client, optimizer_state, trace)
      num_steps += 1
      num_examples += tf.cast(_rows(output), tf.int64)

    result = local_method.LocalResult(
        y=tuple(v.read_value() for v in variables),
        num_steps=num_steps,
        optimizer_state=optimizer_state,
        displacement=trace[1] if method.tracks_displacement else (),
    )
    if method.needs_gradient_at_x:
      gradient = _with_loop_alone(whole_gradient)(client, data['examples'])
      result = result._replace(gradient_at_x=gradient)
    update = method.upload(client, result)
    # Who took no step, or weighs nothing, has nothing to say.
    finite = trees.all_finite(update) | tf.equal(num_steps, 0)
    trained = finite & (num_steps > 0)
    weight = tf.cast(weight_of(num_examples), tf.float32)
    weight = tf.where(finite, weight, 0.0)
    speaks = trained & (weight > 0)
    update = tf.cond(
        speaks,
        lambda: update,
        lambda: tf.nest.map_structure(tf.zeros_like, update),
    )
    if training.store:
      written = training.store.write(
          context['client_id'],
          state['state_dir'],
          state['round'],
          state['run'],
          method.remember(client, result),
          where=speaks,
      )
      with tf.control_dependencies([written]):
        num_steps = tf.identity(num_steps)
    if not finite:
      model.reset_metrics()
    counts = collections.OrderedDict(
        non_finite=1 - tf.cast(finite, tf.int32),
        steps=num_steps,
        trained=tf.cast(trained, tf.int32),
    )
    return (
        tff.learning.templates.ClientResult(
            update,
            collections.OrderedDict(
                speaks=tf.cast(speaks, tf.int32),
                weight=method.weight(client, weight),
            ),
        ),
        model.report_local_unfinalized_metrics(),
        counts,
    )

  return train


def _with_loop_alone(function):
  """Makes a function's own `for` and `if` part of the graph.

  AutoGraph leaves what it calls as it is: reading all of that took two thirds
  of the time of a build.
  """
  return tf.autograph.to_graph(function, recursive=False)


def _with_autograph(forward_pass):
  """The same for all of a user's forward pass, unless it is a graph already."""
  if not inspect.ismethod(forward_pass):
    return forward_pass
  autograph = tf.__internal__.autograph
  return autograph.tf_convert(forward_pass, autograph.control_status_ctx())


def _rows(output):
  """Number of examples of a batch."""
  if output.num_examples is None:
    return tf.shape(output.predictions)[0]
  return output.num_examples


def _assign(variables, values):
  for variable, value in zip(variables, values):
    variable.assign(value)
