"""FedVRA and federated ADMM: the primal-dual family.

```
client: x = x_0;  x = x − η_i (g_i(x) − λ_i + γ_i (x − x_0)),   Q_i times
        δ_i = x − x_0
        λ_i = λ_i − a_i γ_i δ_i                     step 14; first 0
        sends δ_i and the number a_i                step 15
server: λ = λ − Σ_{i∈A} ω_i a_i γ_i δ_i             step 19; λ = Σ_all ω_i λ_i
        x_0 = x_0 + η β Σ_{i∈A} ω_i d_i γ_i δ_i − η β λ         step 20
```

β = 1 / Σ_all ω_i γ_i, and η = 1 in the paper. `dual_step` a is a number, or
`rho:R`: a_i = R / (γ_i η_i Q̃_i) with Q̃_i = (1 − (1 − η_i γ_i)^Q_i) / (η_i γ_i),
so that by (14) R is the share of the new gradient in λ_i. `aggregation_step` d
is a number, `N/m` or `1/sum`, 1 / Σ_{i∈A} ω_i. Federated ADMM is a = d = 1.

The server knows γ_i, ω_i and d_i, as it knows in FedAvg how many examples a
client has. With relaxed initialisation x_0 at a client is its own start.

Source: Wang, Xu, Wang, Chang, Quek, Sun: Beyond ADMM: A Unified
Client-variance-reduced Adaptive Federated Learning Framework, 2022,
arXiv:2212.01519, Algorithm 1, equations (8) to (16).

Example:

  >>> import tempfile
  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'fedvra', toy.LinearModel, client_learning_rate=0.1, gamma=0.1,
  ...     num_clients=4, state_dir=tempfile.mkdtemp())
  >>> rounds = list(tff_fedopt.run(
  ...     process, toy.Clients(), [['c0', 'c1'], ['c1', 'c3']]))
  >>> [r.round for r in rounds if not r.metrics['diverged']]
  [1, 2]
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fedopt.algorithms import assembly
from tff_fedopt.algorithms import hparams as hparams_lib
from tff_fedopt.algorithms import optimizer_choice
from tff_fedopt.optimizers import base
from tff_fedopt.processes import composition
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


class FedVra(local_method.LocalMethod):
  """Steps 8 to 15."""

  memory = {'dual': 'zeros'}
  keeps_gradient = False

  def __init__(self, dual_rule: str, population: '_Population'):
    self._dual_rule = dual_rule
    self._population = population

  def prepare(self, client: local_method.Client) -> Any:
    # −λ_i − γ_i x_0
    pull = trees.scaled(-client.hparams['gamma'], client.start)
    return trees.sub(pull, client.memory['dual'])

  def direction(
      self,
      client: local_method.Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: local_method.GradientAt,
  ) -> base.Tensors:
    gamma = client.hparams['gamma']
    return tuple(
        tf.add_n([g, p, tf.cast(gamma, g.dtype) * w])
        for g, p, w in zip(gradient, client.prepared, y)
    )

  def dual_step(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> tf.Tensor:
    """a_i, a scalar in the model's dtype: what is sent is what is used."""
    step = client.hparams['dual_step']
    if self._dual_rule == 'rho':
      shrink = client.hparams['gamma'] * client.hparams['client_learning_rate']
      steps = tf.cast(result.num_steps, tf.float64)
      # γ η Q̃ = 1 − (1 − γη)^Q, exact where γη is small.
      small = tf.minimum(shrink, 0.5)
      step /= tf.where(
          shrink < 0.5,
          -tf.math.expm1(steps * tf.math.log1p(-small)),
          1 - tf.pow(1 - shrink, steps),
      )
    return tf.cast(step, client.x[0].dtype)

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    return collections.OrderedDict(
        mean=collections.OrderedDict(
            change=trees.sub(client.start, result.y),
            dual_step=self.dual_step(client, result),
        )
    )

  def weight(self, client: local_method.Client, weight: tf.Tensor) -> Any:
    present = tf.cast(weight, tf.float64)
    hparams = client.hparams
    return collections.OrderedDict(
        present=present,
        omega=present * self._population.omega(hparams),
        gamma=hparams['gamma'],
        aggregation_step=hparams['aggregation_step'],
    )

  def remember(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    step = self.dual_step(client, result)
    scale = step * tf.cast(client.hparams['gamma'], step.dtype)
    change = trees.sub(client.start, result.y)
    return collections.OrderedDict(
        dual=trees.add_scaled(client.memory['dual'], scale, change)
    )


class _Population:
  """What the server knows of all N clients.

  Clients' weights w_i are 1 but for those that are listed; ω_i = w_i / Σ w_j.
  """

  def __init__(self, own: Mapping[str, Mapping[str, Any]]):
    weights, gammas = own.get('weight', {}), own.get('gamma', {})
    self._weight = sum(weights.values()) - len(weights)
    # Σ w_i γ_i is γ times the weight of those without a γ_i, and the others'.
    others = {i: weights.get(i, 1.0) for i in gammas}
    self._others_weight = sum(others.values())
    self._others_gamma = sum(w * gammas[i] for i, w in others.items())

  def omega(self, hparams):
    """ω_i, a float64 scalar."""
    total = hparams['num_clients'] + self._weight
    return hparams.get('weight', 1.0) / total

  def beta(self, hparams):
    """1 / Σ ω_i γ_i, a float64 scalar."""
    total = hparams['num_clients'] + self._weight
    common = (total - self._others_weight) * hparams['gamma']
    return total / (common + self._others_gamma)


class DualSum(tff.aggregators.WeightedAggregationFactory):
  """Step 19, and the sum of step 20; the server's λ is the state.

  ```
  λ      = λ + Σ_{i∈A} ω_i a_i γ_i u_i
  change = Σ_{i∈A} ω_i d_i γ_i u_i        u_i = −δ_i
  ```
  """

  def __init__(self, one_for_all: bool):
    """Creates the factory.

    Args:
      one_for_all: Whether all clients have the same a_i and the same d_i, so
        that one sum of vectors serves both lines.
    """
    self._one_for_all = one_for_all

  def create(
      self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    one_for_all = self._one_for_all
    specs = tff.types.type_to_tf_tensor_specs(value_type['change'])
    specs = tuple(tf.nest.flatten(specs))

    @tff.tensorflow.computation
    def no_dual():
      return tuple(tf.zeros(s.shape, s.dtype) for s in specs)

    @tff.tensorflow.computation(value_type, weight_type)
    def terms(value, weight):
      share = weight['omega'] * weight['gamma']
      sent = tuple(value['change'])
      a, d = tf.cast(value['dual_step'], tf.float64), weight['aggregation_step']
      out = collections.OrderedDict(
          present=weight['present'],
          omega=weight['omega'],
      )
      if one_for_all:
        out['change'] = trees.scaled(share, sent)
        out['a'], out['d'] = weight['present'] * a, weight['present'] * d
      else:
        out['change'] = trees.scaled(share * d, sent)
        out['dual'] = trees.scaled(share * a, sent)
      return out

    sums_type = terms.type_signature.result

    @tff.tensorflow.computation(no_dual.type_signature.result, sums_type)
    def step_19(dual, sums):
      if one_for_all:
        a, d = (
            tf.math.divide_no_nan(sums[k], sums['present']) for k in ('a', 'd')
        )
        added = trees.scaled(a, tuple(sums['change']))
        change = trees.scaled(d, tuple(sums['change']))
      else:
        added, change = tuple(sums['dual']), tuple(sums['change'])
      old = tuple(dual)
      new = trees.add(old, added)
      # What is not finite goes to the finalizer, which drops the round.
      kept = tf.cond(trees.all_finite(new), lambda: new, lambda: old)
      return kept, collections.OrderedDict(
          change=change,
          dual=new,
          present=sums['present'],
          omega=sums['omega'],
      )

    @tff.federated_computation
    def init_fn():
      return tff.federated_eval(no_dual, tff.SERVER)

    @tff.federated_computation(
        init_fn.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS),
        tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(dual, value, weight):
      sums = tff.federated_sum(tff.federated_map(terms, (value, weight)))
      state, result = tff.federated_map(step_19, (dual, sums))
      return tff.templates.MeasuredProcessOutput(
          state, result, tff.federated_value((), tff.SERVER)
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)


class FedVraServer(finalizers.ServerMethod):
  """Step 20."""

  def __init__(self, aggregation_rule: str, population: _Population):
    self._rule = aggregation_rule
    self._population = population

  def pseudo_gradient(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.Tensors:
    mean = aggregate['mean']
    step = tf.ones([], tf.float64)
    if self._rule == 'N/m':
      step = tf.math.divide_no_nan(hparams['num_clients'], mean['present'])
    elif self._rule == '1/sum':
      step = tf.math.divide_no_nan(step, mean['omega'])
    return trees.scaled(
        self._population.beta(hparams),
        trees.add_scaled(tuple(mean['dual']), step, tuple(mean['change'])),
    )


def build(
    name: str, model_fn: composition.ModelFn, hp: hparams_lib.FedAdmm
) -> composition.Process:
  """Builds FedVRA or federated ADMM from its hyperparameters."""
  del name
  own = hp.per_client.values
  population = _Population(own)
  dual_rule, aggregation_rule = hp.dual_step.rule, hp.aggregation_step.rule
  method = FedVra(dual_rule, population)
  training = assembly.local_training(
      hp,
      method,
      uses=('gamma', 'dual_step', 'aggregation_step', 'num_clients'),
      own=own,
  )
  one_for_all = dual_rule == 'constant' and not (
      {'dual_step', 'aggregation_step'} & set(own)
  )
  return assembly.compose(
      model_fn,
      hp,
      training,
      FedVraServer(aggregation_rule, population),
      optimizer_choice.server_sgd(hp),
      uses=('gamma', 'num_clients'),
      mean_factory=DualSum(one_for_all),
  )
