"""FedSAM: clients descend along the gradient at a worse point nearby.

```
client: e = ρ g / ‖g‖,  g = ∇F_i(y; batch)
        y = y − η_l ∇F_i(y + e; same batch)
server: x_{t+1} = x_t − η mean(x_t − y_i)
```

With `form='code'` weight decay acts at y after clipping, and not in e; with
`form='paper'` it is part of F_i.

Source: Qu, Li, Duan, Liu, Tang, Lu: Generalized Federated Learning via
Sharpness Aware Minimization, 2022, arXiv:2206.02618, the algorithm box FedSAM.

Example:

  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'fedsam', toy.LinearModel, client_learning_rate=0.1, rho=0.05)
  >>> rounds = list(tff_fedopt.run(
  ...     process, toy.Clients(), [['c0', 'c1'], ['c1', 'c3']]))
  >>> [r.round for r in rounds if not r.metrics['diverged']]
  [1, 2]
"""

from collections.abc import Sequence

import tensorflow as tf

from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import hparams as hparams_lib
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.optimizers import base
from tff_fedopt.processes import composition
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


class FedSam(local_method.LocalMethod):
  """The gradient at the worse point."""

  keeps_gradient = False

  def direction(
      self,
      client: local_method.Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: local_method.GradientAt,
  ) -> base.Tensors:
    norm = tf.sqrt(trees.squared_norm(gradient))
    # A gradient of exactly zero stays where it is.
    reach = tf.cast(client.hparams['rho'], norm.dtype) / (norm + 1e-7)
    return gradient_at(trees.add_scaled(y, reach, gradient))


def build(
    name: str, model_fn: composition.ModelFn, hp: hparams_lib.FedSam
) -> composition.Process:
  """Builds FedSAM from its hyperparameters."""
  del name
  return assembly.compose(
      model_fn,
      hp,
      assembly.local_training(hp, FedSam(), uses=('rho',)),
      finalizers.ServerMethod(),
      optimizer_choice.server_sgd(hp),
  )
