"""FedProx: local training with a proximal term.

```
client: y = x_t;  y = y − η_l (∇F_i(y) + μ (y − x_t))
server: x_{t+1} = x_t − η mean(x_t − y_i)
```

The term is the gradient of μ/2 ‖y − x_t‖². `form='code'` is FL-Simulator's:
−μ x_t is clipped together with the gradient, +μ y is added afterwards as weight
decay; without clipping the two forms are the same.

Source: Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated Optimization in
Heterogeneous Networks, 2018, arXiv:1812.06127, Algorithm 2.

Example:

  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'fedprox', toy.LinearModel, client_learning_rate=0.1, mu=0.01)
  >>> rounds = list(tff_fedopt.run(
  ...     process, toy.Clients(), [['c0', 'c1'], ['c1', 'c3']]))
  >>> [r.round for r in rounds if not r.metrics['diverged']]
  [1, 2]
"""

from collections.abc import Sequence

import tensorflow as tf

from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import hparams as hparams_lib
from tff_fedopt.algorithms import local_adaptivity
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.optimizers import base
from tff_fedopt.processes import composition
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


class FedProx(local_method.Around):
  """The proximal term, inside the direction of any other method."""

  def __init__(self, inner: local_method.LocalMethod):
    super().__init__(inner)
    self.keeps_gradient = False

  def direction(
      self,
      client: local_method.Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: local_method.GradientAt,
  ) -> base.Tensors:
    g = self.inner.direction(client, y, gradient, gradient_at)
    mu = client.hparams['mu']
    return trees.add_scaled(g, mu, trees.sub(y, client.start))

  def linear_pull(self, client: local_method.Client) -> tf.Tensor | None:
    return client.hparams['mu']


class FedProxAsCode(FedProx):
  """The proximal term, half of it past the clipping."""

  def direction(
      self,
      client: local_method.Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: local_method.GradientAt,
  ) -> base.Tensors:
    g = self.inner.direction(client, y, gradient, gradient_at)
    return trees.add_scaled(g, -client.hparams['mu'], client.start)

  def late_decay(self, client: local_method.Client) -> tf.Tensor | None:
    return client.hparams['mu']


def build(
    name: str, model_fn: composition.ModelFn, hp: hparams_lib.FedProx
) -> composition.Process:
  """Builds FedProx from its hyperparameters."""
  del name
  local_half, server_half = local_adaptivity.halves(hp)
  cls = FedProx if hp.form == 'paper' else FedProxAsCode
  training = assembly.local_training(hp, cls(local_half), uses=('mu',))
  return assembly.compose(
      model_fn,
      hp,
      training,
      server_half(training.optimizer),
      optimizer_choice.server_sgd(hp),
  )
