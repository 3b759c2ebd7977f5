"""FedDyn: dynamic regularisation.

```
client: y = x_{i,0};  y = y − η_l (∇F_i(y) + α (y − x_{i,0}) + α h_i)
        h_i = h_i + (y − x_{i,0}),                       first 0
server: h = h + (1/C) Σ_{i∈S} (y_i − x_{i,0}) = (1/C) Σ_{i=1..C} h_i
        x_{t+1} = x_t − η mean(x_t − y_i) + h
```

In the paper's letters −∇L_i(θ_i) is α h_i and its server state is −α h; it has
η = 1. The start x_{i,0} is x_t, or the relaxed one. `form='code'` is
FL-Simulator's: α (h_i − x_{i,0}) is clipped together with the gradient, α y is
added afterwards as weight decay; without clipping the two forms are the same.

Source: Acar, Zhao, Matas Navarro, Mattina, Whatmough, Saligrama: Federated
Learning Based on Dynamic Regularization, 2021, arXiv:2111.04263, Algorithm 1.

Example:

  >>> import tempfile
  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'feddyn', toy.LinearModel, client_learning_rate=0.1, alpha=0.1,
  ...     num_clients=4, state_dir=tempfile.mkdtemp())
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


class FedDyn(local_method.LocalMethod):
  """The regulariser, inside the direction."""

  memory = {'dual': 'zeros'}
  keeps_gradient = False

  def __init__(self, sends_change: bool):
    self._sends_change = sends_change

  def prepare(self, client: local_method.Client) -> Any:
    away = trees.sub(client.memory['dual'], client.start)
    return trees.scaled(client.hparams['alpha'], away)

  def direction(
      self,
      client: local_method.Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: local_method.GradientAt,
  ) -> base.Tensors:
    # In one pass: α (h_i − x_{i,0}) is prepared.
    alpha = client.hparams['alpha']
    return tuple(
        tf.add_n([g, away, tf.cast(alpha, g.dtype) * w])
        for g, away, w in zip(gradient, client.prepared, y)
    )

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    # The local models are averaged, from wherever they started.
    sent = collections.OrderedDict(mean=trees.sub(client.x, result.y))
    if self._sends_change:
      sent['total'] = trees.sub(result.y, client.start)
    else:
      sent['total'] = tf.ones([], tf.float64)
    return sent

  def remember(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    change = trees.sub(result.y, client.start)
    return collections.OrderedDict(
        dual=trees.add(client.memory['dual'], change)
    )


class FedDynAsCode(FedDyn):
  """The regulariser, half of it past the clipping."""

  def direction(
      self,
      client: local_method.Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: local_method.GradientAt,
  ) -> base.Tensors:
    return trees.add(gradient, client.prepared)

  def late_decay(self, client: local_method.Client) -> tf.Tensor | None:
    return client.hparams['alpha']


class FedDynServer(finalizers.ServerMethod):
  """Adds the mean of all clients' h_i."""

  def __init__(self, receives_change: bool):
    self._receives_change = receives_change

  def initial_kept(self, specs: base.Specs) -> base.State:
    return collections.OrderedDict(
        dual=tuple(tf.zeros(s.shape, s.dtype) for s in specs)
    )

  def settle(
      self,
      hparams: base.Hparams,
      aggregate: base.State,
      x: base.Tensors,
      stepped: base.Tensors,
      kept: base.State,
  ) -> tuple[base.Tensors, base.State]:
    if self._receives_change:
      scale, change = 1.0, aggregate['total']
    else:
      scale, change = -aggregate['total'], aggregate['mean']
    dual = trees.add_scaled(
        kept['dual'], scale / hparams['num_clients'], change
    )
    return trees.add(stepped, dual), collections.OrderedDict(dual=dual)


def build(
    name: str, model_fn: composition.ModelFn, hp: hparams_lib.FedDyn
) -> composition.Process:
  """Builds FedDyn from its hyperparameters."""
  del name
  # If all start at x_t and count alike, the sum of the changes is the number of
  # clients times the mean that is sent anyway.
  separate = bool(hp.relaxation) or hp.client_weighting != 'uniform'
  cls = FedDyn if hp.form == 'paper' else FedDynAsCode
  return assembly.compose(
      model_fn,
      hp,
      assembly.local_training(hp, cls(separate), uses=('alpha',)),
      FedDynServer(separate),
      optimizer_choice.server_sgd(hp),
      uses=('num_clients',),
  )
