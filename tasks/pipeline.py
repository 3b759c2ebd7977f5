"""From opened data, preprocessing and a network to a `Task`."""

import collections
from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tasks import task as task_lib
from tasks.data import client_data
from tasks.data import plain_clients
from tasks.data import pooled
from tasks.data import sources
from tasks.models import objectives
from tasks.models import two_block
from tasks.models import wrapper

# Rows in a batch of evaluation, where a task does not say.
_EVAL_BATCH_SIZE = 100


@dataclasses.dataclass(frozen=True)
class Pipeline:
  """How raw examples become batches.

  Attributes:
    prepare_eval: Decoded examples -> (x, y) for evaluation.
    x: (shape of a row, dtype) of the inputs; None for a size that varies.
    y: The same of the targets.
    shuffle_buffer: Examples that are shuffled together.
    eval_batch_size: Rows in a batch of evaluation.
    prepare: (decoded examples, generator) -> (x, y) for training; None if that
      is the same and draws nothing.
    decode: Raw examples -> what `prepare` wants; None if that is the same.
    max_examples: First examples of a client that are used, at most.
    validation_examples: How many examples of the test split are the validation
      set: clients in a random order, the first so many of their examples; None
      for the whole split.
    validation_seed: Seed of that order.
    relabel: (client id, decoded examples) -> what the client knows of them.
  """

  prepare_eval: Callable[..., Any]
  x: tuple[tuple[int | None, ...], str]
  y: tuple[tuple[int | None, ...], str]
  shuffle_buffer: int
  eval_batch_size: int
  prepare: Callable[..., Any] | None = None
  decode: Callable[..., Any] | None = None
  max_examples: int | None = None
  validation_examples: int | None = None
  validation_seed: int = 0
  relabel: Callable[..., Any] | None = None


def assemble(
    info: task_lib.TaskInfo,
    request: task_lib.Request,
    opened: sources.Opened,
    pipeline: Pipeline,
    network_fn: Callable[[], Any],
    objective: objectives.Objective,
    weight_decay: float = 0.0,
) -> task_lib.Task:
  """Puts a task together.

  Args:
    info: The task.
    request: What was asked for.
    opened: The data.
    pipeline: From raw examples to batches.
    network_fn: Returns a new network, see `models.wrapper`.
    objective: Loss and metrics.
    weight_decay: λ of the penalty λ Σ w² on the network's kernels.

  Returns:
    The `Task`.
  """
  x_spec, y_spec = (
      tf.TensorSpec([None, *shape], tf.dtypes.as_dtype(dtype))
      for shape, dtype in (pipeline.x, pipeline.y)
  )

  options = request.options

  def model_fn():
    if options.get('labels', 'all') != 'all':
      return two_block.TwoBlockModel(
          network_fn(),
          network_fn(),
          objective,
          collections.OrderedDict(x=x_spec, y=y_spec),
          unlabelled=options['unlabelled'],
          temperature=options['temperature'],
          unlabelled_weight=options['unlabelled_weight'],
          weight_decay=weight_decay,
      )
    return wrapper.TaskModel(
        network_fn(),
        objective,
        collections.OrderedDict(x=x_spec, y=y_spec),
        weight_decay=weight_decay,
    )

  @functools.cache  # One data set serves all evaluations.
  def evaluation(limit, order_seed):
    return client_data.evaluation_batches(
        opened['test'],
        pipeline.decode,
        pipeline.prepare_eval,
        pipeline.eval_batch_size,
        limit,
        order_seed=order_seed,
        element_spec=(x_spec, y_spec),
    )

  def validation():
    limit = pipeline.validation_examples
    return evaluation(limit, pipeline.validation_seed if limit else None)

  @functools.cache
  def summary():
    return dict(
        task=info.name,
        options=dict(request.options),
        parameters=num_parameters(model_fn),
        data=opened.summary(),
        batch_size=request.batch_size,
        local_epochs=request.local_epochs,
        max_examples=pipeline.max_examples,
        shuffle_buffer=pipeline.shuffle_buffer,
        validation_examples=pipeline.validation_examples,
        validation_seed=pipeline.validation_seed,
    )

  train = client_data.PreparedClients(
      opened['train'],
      pipeline.prepare
      or (lambda examples, rng: pipeline.prepare_eval(examples)),
      batch_size=request.batch_size,
      decode=pipeline.decode,
      local_epochs=request.local_epochs,
      max_examples=pipeline.max_examples,
      take_before_shuffle=True,
      shuffle_buffer=pipeline.shuffle_buffer,
      sizes=opened.sizes('train'),
      element_spec=(x_spec, y_spec),
      relabel=pipeline.relabel,
  )
  if request.options.get('pooled'):
    train = pooled.PooledClients(train, batch_size=request.batch_size)
  return task_lib.Task(
      info=info,
      model_fn=model_fn,
      train=train,
      validation=validation,
      test=lambda: evaluation(None, None),
      data_kind=opened.kind,
      summary=summary,
  )


def from_client_data(
    info: task_lib.TaskInfo,
    request: task_lib.Request,
    train: tff.simulation.datasets.ClientData,
    test: tff.simulation.datasets.ClientData,
    model_fn: Callable[[], tff.learning.models.VariableModel],
) -> task_lib.Task:
  """Puts a task together from client data and a model, as TFF has them.

  Args:
    info: The task.
    request: What was asked for.
    train: Training clients, one example per element.
    test: Clients whose examples are validated and tested on.
    model_fn: Returns a new model, always with the same initial weights.

  Returns:
    The `Task`.

  Raises:
    ValueError: If a folder of other data is asked for.
  """
  if request.data_dir is not None:
    raise ValueError(
        f'{info.name}: its data come with it; expected no data_dir, got'
        f' {request.data_dir}'
    )
  order = dict(
      batch_size=request.batch_size, local_epochs=request.local_epochs
  )
  clients = plain_clients.PlainClients(train, **order)
  tested = plain_clients.PlainClients(test, **order)

  @functools.cache
  def evaluation():
    return tested.evaluation_batches(_EVAL_BATCH_SIZE)

  @functools.cache
  def summary():
    return dict(
        task=info.name,
        options=dict(request.options),
        # Not in a graph: Keras would take all its models for TensorFlow 1's
        # from then on.
        parameters=_num_elements(model_fn()),
        data=dict(kind='own', train=clients.digest(), test=tested.digest()),
        **order,
    )

  return task_lib.Task(
      info=info,
      model_fn=model_fn,
      train=clients,
      validation=evaluation,
      test=evaluation,
      data_kind='own',
      summary=summary,
  )


def num_parameters(model_fn: Callable[[], Any]) -> int:
  """Returns how many trainable numbers a model has, without making them."""
  with tf.Graph().as_default():
    return _num_elements(model_fn())


def _num_elements(model):
  return sum(v.shape.num_elements() for v in model.trainable_variables)
