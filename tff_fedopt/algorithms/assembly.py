"""From hyperparameters to a process: what all builders share."""

from collections.abc import Collection, Mapping
from typing import Any

import tensorflow_federated as tff

from tff_fedopt.algorithms import consistency
from tff_fedopt.algorithms import hparams
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.algorithms import relaxation
from tff_fedopt.optimizers import base
from tff_fedopt.processes import client_state
from tff_fedopt.processes import client_work
from tff_fedopt.processes import composition
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import local_method


def local_training(
    hp: hparams.Hyperparameters,
    method: local_method.LocalMethod,
    uses: Collection[str] = (),
    own: Mapping[str, Mapping[str, Any]] | None = None,
) -> client_work.LocalTraining:
  """How clients train under these hyperparameters.

  Args:
    hp: The hyperparameters, parsed.
    method: The algorithm's client half.
    uses: Names of the hyperparameters that `method` reads.
    own: Hyperparameter to client id to the client's own value.

  Returns:
    A `LocalTraining`.
  """
  uses = list(uses)
  own = dict(own or {})
  if hp.relaxation:
    method = relaxation.Relaxed(method, hp.form)
    uses.append('relaxation')
  if hp.track_consistency:
    method = consistency.Tracked(method, hp.form)
  optimizer, names = optimizer_choice.client_optimizer(hp)
  used = list(names.values()) + uses
  used += ['weight_decay'] if hp.weight_decay else []
  clips = hp.max_gradient_norm is not None
  used += ['max_gradient_norm'] if clips else []
  return client_work.LocalTraining(
      method=method,
      optimizer=optimizer,
      optimizer_hparams=names,
      schedule=hp.client_learning_rate_schedule,
      hparams={name: hp.number(name) for name in used},
      weighting=hp.client_weighting,
      clips=clips,
      decays=bool(hp.weight_decay),
      decay_after_clipping=hp.form == 'code',
      store=client_state.Store(method.memory) if method.memory else None,
      state_dir=hp.state_dir or '',
      steps=hp.local_steps,
      own_steps=own.pop('local_steps', {}),
      own_hparams=own,
  )


def compose(
    model_fn: composition.ModelFn,
    hp: hparams.Hyperparameters,
    training: client_work.LocalTraining,
    server_method: finalizers.ServerMethod,
    server_optimizer: base.Optimizer,
    uses: Collection[str] = (),
    mean_factory: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.Process:
  """Composes an algorithm from its halves.

  Args:
    model_fn: Returns a new model.
    hp: The hyperparameters, parsed.
    training: What `local_training` returned.
    server_method: The algorithm's server half.
    server_optimizer: The optimizer that takes the server step.
    uses: Names of the hyperparameters that `server_method` reads.
    mean_factory: What takes the average's place at the server, if anything.

  Returns:
    A `Process`.
  """
  if hp.track_consistency:
    server_method = consistency.TrackedServer(server_method, hp.form)
    uses = {*uses, 'num_clients'}
  return composition.build_learning_process(
      model_fn,
      training,
      server_method,
      server_optimizer,
      {name: hp.number(name) for name in sorted(uses)},
      mean_factory,
  )
