"""FedAvg, FedAvgM, FedAdagrad, FedAdam, FedYogi, FedInit: one builder.

```
for each round t, each client i of the cohort S:
  x_i = x_t;  for each batch: x_i = client optimizer's step along ∇F_i(x_i)
Δ_t     = Σ_{i∈S} n_i (x_t − x_i) / Σ_{i∈S} n_i
x_{t+1} = server optimizer's step from x_t along Δ_t
```

Source: Adaptive Federated Optimization, Algorithms 1 and 2 (there Δ has the
opposite sign; here an update is initial minus final, as everywhere in TFF).
FedInit is FedAvg with relaxed initialisation, see `relaxation`.
"""

from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import local_adaptivity
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.optimizers import sgd


def _server_momentum(hp):
  return sgd.Momentum(
      learning_rate=hp['server_learning_rate'], momentum=hp['server_momentum']
  )


SERVER_OPTIMIZERS = dict(
    fedavg=optimizer_choice.server_sgd,
    fedavgm=_server_momentum,
    fedadagrad=lambda hp: optimizer_choice.server_adaptive('adagrad', hp),
    fedadam=lambda hp: optimizer_choice.server_adaptive('adam', hp),
    fedyogi=lambda hp: optimizer_choice.server_adaptive('yogi', hp),
    fedinit=optimizer_choice.server_sgd,
)


def build(name, model_fn, hp):
  """Builds one of `SERVER_OPTIMIZERS` from resolved hyperparameters."""
  local_half, server_half = local_adaptivity.halves(hp)
  training = assembly.local_training(hp, local_half)
  return assembly.compose(
      model_fn,
      hp,
      training,
      server_half(training.optimizer),
      SERVER_OPTIMIZERS[name](hp),
  )
