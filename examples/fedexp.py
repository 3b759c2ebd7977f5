"""FedExP, an algorithm from outside the package.

```
client: y = x_t;  for each batch: y = y − η_l ∇F_i(y);    Δ_i = x_t − y
server: s = max(1, mean ‖Δ_i‖² / (2 (‖Δ‖² + ε))),         Δ = mean Δ_i
        x_{t+1} = x_t − η s Δ
```
Source: Jhunjhunwala, Wang and Joshi, FedExP: Speeding Up Federated Averaging
via Extrapolation, arXiv:2301.09604, Algorithm 1, where η = 1.
"""

import collections
import dataclasses

import tensorflow as tf

from tff_fedopt import algorithms
from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import hparams
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedExP(hparams.Hyperparameters):
  """What FedExP takes beside what all algorithms take."""

  epsilon: float = hparams.field(
      1e-3, 'ε, which bounds the extrapolation', hparams.not_negative
  )


class Client(local_method.LocalMethod):
  """FedAvg's client; it also says how far it went."""

  def upload(self, client, result):
    change = super().upload(client, result)['mean']
    return collections.OrderedDict(mean=(*change, trees.squared_norm(change)))


class Server(finalizers.ServerMethod):
  """Goes farther along the mean than the mean is long."""

  def pseudo_gradient(self, hparams, aggregate, shared):
    *change, squares = aggregate['mean']
    epsilon = tf.cast(hparams['epsilon'], squares.dtype)
    scale = squares / (2 * (trees.squared_norm(change) + epsilon))
    return trees.scaled(tf.maximum(scale, 1), change)


def build(name, model_fn, hp):
  clients, server = assembly.local_training(hp, Client()), Server()
  optimizer = optimizer_choice.server_sgd(hp)
  uses = ('epsilon',)
  return assembly.compose(model_fn, hp, clients, server, optimizer, uses)


algorithms.register('fedexp', FedExP, build)
