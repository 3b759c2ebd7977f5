"""From hyperparameters to the optimizers they name."""

from typing import Any

from tff_fedopt.algorithms import hparams
from tff_fedopt.optimizers import adaptive
from tff_fedopt.optimizers import base
from tff_fedopt.optimizers import sgd

_ADAPTIVE = dict(
    adagrad=adaptive.Adagrad, adam=adaptive.Adam, yogi=adaptive.Yogi
)


def server_adaptive(kind: str, hp: Any) -> base.Optimizer:
  """The server's Adagrad, Adam or Yogi."""
  cls = _ADAPTIVE[kind]
  options = {} if kind == 'adagrad' else dict(
      bias_correction=hp.bias_correction
  )
  names = [n for n in cls.HPARAMS if n != 'learning_rate']
  return cls(
      learning_rate=hp.server_learning_rate,
      **{n: getattr(hp, n) for n in names},
      **options,
  )


def server_sgd(hp: hparams.Hyperparameters) -> base.Optimizer:
  """The server's plain step of rate η."""
  return sgd.Sgd(learning_rate=hp.server_learning_rate)


def client_optimizer(
    hp: hparams.Hyperparameters,
) -> tuple[base.Optimizer, dict[str, str]]:
  """The client optimizer, and the client's name of each of its numbers."""
  kind = hp.client_optimizer
  names = dict(learning_rate='client_learning_rate')
  if kind == 'sgd':
    cls, options = sgd.Sgd, {}  # type: Any, dict[str, Any]
  elif kind in _ADAPTIVE:
    names.update(
        tau='client_epsilon',
        initial_accumulator='client_initial_accumulator',
    )
    if kind == 'adagrad':
      cls, options = adaptive.PlainAdagrad, {}
    else:
      cls = _ADAPTIVE[kind]
      options = dict(bias_correction=hp.client_bias_correction)
      names.update(beta1='client_beta1', beta2='client_beta2')
  else:
    cls = sgd.Momentum
    options = dict(nesterov=kind == 'nesterov', ema=kind == 'ema_momentum')
    names.update(momentum='client_momentum')
  values = {theirs: getattr(hp, ours) for theirs, ours in names.items()}
  return cls(**values, **options), names
