"""FedCM: clients mix in the cohort's last average gradient.

```
client: y = x_t;  y = y − η_l (α ∇F_i(y) + (1 − α) q)
server: q = mean((x_{i,0} − y_i) / (K_i η_l)),           first 0
        x_{t+1} = x_t − η mean(x_t − y_i)
```

K_i is the number of steps that client i really took. `form='code'` divides the
mean change by the mean of K_i η_l, one number for the cohort as in FL-Simulator
(which takes K from the size of its client 0), and so needs no second upload.

Source: Xu, Wang, Wang, Yao: FedCM: Federated Learning with Client-level
Momentum, 2021, arXiv:2106.10874, the algorithm box of that name.

Example:

  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'fedcm', toy.LinearModel, client_learning_rate=0.1, alpha=0.1)
  >>> rounds = list(tff_fedopt.run(
  ...     process, toy.Clients(), [['c0', 'c1'], ['c1', 'c3']]))
  >>> [r.round for r in rounds if not r.metrics['diverged']]
  [1, 2]
"""

import collections
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import hparams as hparams_lib
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.optimizers import base
from tff_fedopt.processes import composition
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


def _path(client, result):
  """K_i η_l, a float64 scalar."""
  rate = client.hparams['client_learning_rate']
  return tf.cast(result.num_steps, tf.float64) * rate


class FedCm(local_method.LocalMethod):
  """The mixed direction; sends the average gradient too."""

  keeps_gradient = False

  def prepare(self, client: local_method.Client) -> Any:
    return trees.scaled(
        1 - client.hparams['alpha'], client.shared['momentum']
    )

  def direction(
      self,
      client: local_method.Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: local_method.GradientAt,
  ) -> base.Tensors:
    return trees.add_scaled(
        client.prepared, client.hparams['alpha'], gradient
    )

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    local = trees.sub(client.start, result.y)
    return collections.OrderedDict(
        mean=collections.OrderedDict(
            change=trees.sub(client.origin, result.y),
            gradient=trees.scaled(1 / _path(client, result), local),
        )
    )


class FedCmServer(finalizers.ServerMethod):
  """Shares the mean of what clients say is their average gradient."""

  def initial_shared(self, weights: base.Tensors) -> base.State:
    return collections.OrderedDict(momentum=trees.zeros_like(weights))

  def pseudo_gradient(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.Tensors:
    return tuple(aggregate['mean']['change'])

  def new_shared(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.State:
    return collections.OrderedDict(
        momentum=tuple(aggregate['mean']['gradient'])
    )


class FedCmAsCode(FedCm):
  """The mixed direction; sends K_i η_l."""

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    return collections.OrderedDict(
        mean=collections.OrderedDict(
            change=trees.sub(client.start, result.y),
            path=_path(client, result),
        )
    )


class FedCmServerAsCode(FedCmServer):
  """Shares the mean change divided by the mean of K_i η_l."""

  def new_shared(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.State:
    mean = aggregate['mean']
    inverse = tf.math.divide_no_nan(tf.ones([], tf.float64), mean['path'])
    return collections.OrderedDict(
        momentum=trees.scaled(inverse, mean['change'])
    )


def build(
    name: str, model_fn: composition.ModelFn, hp: hparams_lib.FedCm
) -> composition.Process:
  """Builds FedCM from its hyperparameters."""
  del name
  if hp.form == 'paper':
    local, server = FedCm(), FedCmServer()
  else:
    local, server = FedCmAsCode(), FedCmServerAsCode()
  return assembly.compose(
      model_fn,
      hp,
      assembly.local_training(hp, local, uses=('alpha',)),
      server,
      optimizer_choice.server_sgd(hp),
  )
