"""FedAvg, FedAvgM, FedAdagrad, FedAdam, FedYogi, FedInit: one builder.

```
for each round t, each client i of the cohort S:
  x_i = x_t;  for each batch: x_i = client optimizer's step along ∇F_i(x_i)
Δ_t     = Σ_{i∈S} n_i (x_t − x_i) / Σ_{i∈S} n_i
x_{t+1} = server optimizer's step from x_t along Δ_t
```

Source: Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan: Adaptive
Federated Optimization, 2020, arXiv:2003.00295, Algorithms 1 and 2 (there Δ has
the opposite sign; here an update is initial minus final, as everywhere in TFF).
FedAvg itself: McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-
Efficient Learning of Deep Networks from Decentralized Data, 2016,
arXiv:1602.05629, Algorithm 1. FedInit is FedAvg with relaxed initialisation,
see `relaxation`.

Example:

  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'fedadam', toy.LinearModel, client_learning_rate=0.1,
  ...     server_learning_rate=0.03, tau=1e-3)
  >>> rounds = list(tff_fedopt.run(
  ...     process, toy.Clients(), [['c0', 'c1'], ['c1', 'c3']]))
  >>> [r.round for r in rounds if not r.metrics['diverged']]
  [1, 2]
"""

from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import hparams as hparams_lib
from tff_fedopt.algorithms import local_adaptivity
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.optimizers import sgd
from tff_fedopt.processes import composition


def _server_momentum(hp):
  return sgd.Momentum(
      learning_rate=hp.server_learning_rate, momentum=hp.server_momentum
  )


SERVER_OPTIMIZERS = dict(
    fedavg=optimizer_choice.server_sgd,
    fedavgm=_server_momentum,
    fedadagrad=lambda hp: optimizer_choice.server_adaptive('adagrad', hp),
    fedadam=lambda hp: optimizer_choice.server_adaptive('adam', hp),
    fedyogi=lambda hp: optimizer_choice.server_adaptive('yogi', hp),
    fedinit=optimizer_choice.server_sgd,
)


def build(
    name: str, model_fn: composition.ModelFn, hp: hparams_lib.LocallyAdaptive
) -> composition.Process:
  """Builds one of `SERVER_OPTIMIZERS` from its hyperparameters."""
  local_half, server_half = local_adaptivity.halves(hp)
  training = assembly.local_training(hp, local_half)
  return assembly.compose(
      model_fn,
      hp,
      training,
      server_half(training.optimizer),
      SERVER_OPTIMIZERS[name](hp),
  )
