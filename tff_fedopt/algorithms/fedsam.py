"""FedSAM: clients descend along the gradient at a worse point nearby.

```
client: e = ρ g / ‖g‖,  g = ∇F_i(y; batch)
        y = y − η_l ∇F_i(y + e; same batch)
server: x_{t+1} = x_t − η mean(x_t − y_i)
```

With `form='code'` weight decay acts at y after clipping, and not in e; with
`form='paper'` it is part of F_i.
"""

import tensorflow as tf

from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


class FedSam(local_method.LocalMethod):
  """The gradient at the worse point."""

  keeps_gradient = False

  def direction(self, client, y, gradient, gradient_at):
    norm = tf.sqrt(trees.squared_norm(gradient))
    # A gradient of exactly zero stays where it is.
    reach = tf.cast(client.hparams['rho'], norm.dtype) / (norm + 1e-7)
    return gradient_at(trees.add_scaled(y, reach, gradient))


def build(name, model_fn, hp):
  """Builds FedSAM from resolved hyperparameters."""
  del name
  return assembly.compose(
      model_fn,
      hp,
      assembly.local_training(hp, FedSam(), uses=('rho',)),
      finalizers.ServerMethod(),
      optimizer_choice.server_sgd(hp),
  )
