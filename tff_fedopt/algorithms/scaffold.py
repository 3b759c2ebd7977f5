"""SCAFFOLD: control variates correct the drift of clients.

```
client: y = x_t;  y = y − η_l (∇F_i(y) + c − c_i),       c, c_i first 0
        c_i⁺ = ∇F_i(x_t), all examples                   (option 1)
        c_i⁺ = c_i − c + (x_{i,0} − y_i) / (K_i η_l)     (option 2)
server: c = c + (1/C) Σ_{i∈S} (c_i⁺ − c_i)
        x_{t+1} = x_t − η mean(x_t − y_i)
```

K_i is the number of steps that client i really took. FL-Simulator, which has
option 2 only, takes one K for all, from the size of its client 0; where all
clients are of one size that its batches divide, that is the same. With
clipping, c_i⁺ of option 2 holds the clipped gradients, that of option 1 the
whole one.

Source: Karimireddy, Kale, Mohri, Reddi, Stich, Suresh: SCAFFOLD: Stochastic
Controlled Averaging for Federated Learning, 2019, arXiv:1910.06378, Algorithm
1, equations (3) to (5).

Example:

  >>> import tempfile
  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'scaffold', toy.LinearModel, client_learning_rate=0.1,
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


class Scaffold(local_method.LocalMethod):
  """The corrected direction, and the new control variate of option 2."""

  memory = {'control_variate': 'zeros'}
  keeps_gradient = False

  def prepare(self, client: local_method.Client) -> Any:
    return trees.sub(
        client.shared['control_variate'], client.memory['control_variate']
    )

  def direction(
      self,
      client: local_method.Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: local_method.GradientAt,
  ) -> base.Tensors:
    return trees.add(gradient, client.prepared)

  def new_control_variate(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.Tensors:
    """c_i⁺, a tuple of tensors."""
    rate = client.hparams['client_learning_rate']
    path = tf.cast(result.num_steps, tf.float64) * rate
    average = trees.scaled(1 / path, trees.sub(client.start, result.y))
    return trees.sub(average, client.prepared)

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    return collections.OrderedDict(
        mean=trees.sub(client.origin, result.y),
        total=trees.sub(
            self.new_control_variate(client, result),
            client.memory['control_variate'],
        ),
    )

  def remember(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    return collections.OrderedDict(
        control_variate=self.new_control_variate(client, result)
    )


class ScaffoldOption1(Scaffold):
  """The new control variate of option 1."""

  needs_gradient_at_x = True

  def new_control_variate(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.Tensors:
    return result.gradient_at_x


class ScaffoldServer(finalizers.ServerMethod):
  """Shares the mean of all clients' control variates."""

  def initial_shared(self, weights: base.Tensors) -> base.State:
    return collections.OrderedDict(control_variate=trees.zeros_like(weights))

  def new_shared(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.State:
    return collections.OrderedDict(
        control_variate=trees.add_scaled(
            shared['control_variate'],
            1 / hparams['num_clients'],
            aggregate['total'],
        )
    )


def build(
    name: str, model_fn: composition.ModelFn, hp: hparams_lib.Scaffold
) -> composition.Process:
  """Builds SCAFFOLD from its hyperparameters."""
  del name
  method = ScaffoldOption1() if hp.option == 1 else Scaffold()
  return assembly.compose(
      model_fn,
      hp,
      assembly.local_training(hp, method),
      ScaffoldServer(),
      optimizer_choice.server_sgd(hp),
      uses=('num_clients',),
  )
