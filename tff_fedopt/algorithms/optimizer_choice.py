"""From hyperparameters to the optimizers they name."""

from typing import Any

from tff_fedopt.optimizers import adaptive
from tff_fedopt.optimizers import base
from tff_fedopt.optimizers import schedules
from tff_fedopt.optimizers import sgd
from tff_fedopt.processes import client_work
from tff_fedopt.processes import local_method

_ADAPTIVE = dict(
    adagrad=adaptive.Adagrad, adam=adaptive.Adam, yogi=adaptive.Yogi
)


def server_adaptive(kind: str, hp: dict[str, Any]) -> base.Optimizer:
  """The server's Adagrad, Adam or Yogi."""
  cls = _ADAPTIVE[kind]
  options = {} if kind == 'adagrad' else dict(
      bias_correction=hp['bias_correction']
  )
  names = [n for n in cls.HPARAMS if n != 'learning_rate']
  return cls(
      learning_rate=hp['server_learning_rate'],
      **{n: hp[n] for n in names},
      **options,
  )


def server_sgd(hp: dict[str, Any]) -> base.Optimizer:
  """The server's plain step of rate η."""
  return sgd.Sgd(learning_rate=hp['server_learning_rate'])


def _client_optimizer(hp):
  """The client optimizer, and the client's name of each of its numbers."""
  kind = hp['client_optimizer']
  names = dict(learning_rate='client_learning_rate')
  if kind == 'sgd':
    cls, options = sgd.Sgd, {}
  elif kind in _ADAPTIVE:
    cls, options = _ADAPTIVE[kind], {}
    names.update(
        tau='client_epsilon',
        initial_accumulator='client_initial_accumulator',
        beta1='client_beta1',
    )
    if kind != 'adagrad':
      options = dict(bias_correction=hp['client_bias_correction'])
      names.update(beta2='client_beta2')
  else:
    cls = sgd.Momentum
    options = dict(nesterov=kind == 'nesterov', ema=kind == 'ema_momentum')
    names.update(momentum='client_momentum')
  values = {theirs: hp[ours] for theirs, ours in names.items()}
  return cls(**values, **options), names


def local_training(
    hp: dict[str, Any],
    method: local_method.LocalMethod,
    uses: tuple[str, ...] = (),
) -> client_work.LocalTraining:
  """How clients train under these hyperparameters.

  Args:
    hp: Resolved hyperparameters.
    method: The algorithm's client half.
    uses: Names of the hyperparameters that `method` reads.

  Returns:
    A `LocalTraining`.
  """
  if hp['client_optimizer'] == 'adagrad':
    hp = dict(hp, client_beta1=0.0)
  optimizer, names = _client_optimizer(hp)
  used = list(names.values()) + list(uses)
  used += ['weight_decay'] if hp['weight_decay'] else []
  clips = hp['max_gradient_norm'] is not None
  used += ['max_gradient_norm'] if clips else []
  return client_work.LocalTraining(
      method=method,
      optimizer=optimizer,
      optimizer_hparams=names,
      schedule=schedules.parse(hp['client_learning_rate_schedule']),
      hparams={name: hp[name] for name in used},
      weighting=hp['client_weighting'],
      clips=clips,
      decays=bool(hp['weight_decay']),
      decay_after_clipping=hp['form'] == 'code',
  )
