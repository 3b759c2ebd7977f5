"""Adaptive client optimizers: restarted, synchronised, corrected.

```
client i: y_i = x_t after K_i steps of its optimizer, N_i alongside
none     u = Σ w_i (x_t − y_i)
local    u = Σ w_i N_i⁻¹ (x_t − y_i)
global   u = [Σ w_i N_i⁻¹]⁻¹ Σ w_i N_i⁻¹ (x_t − y_i)
server:  x_{t+1} = server optimizer's step from x_t along u
```

N_i is the displacement the client optimizer would have made, with the
preconditioners it really used, had every gradient been all ones;
`form='code'` takes the recursion of the authors' code in its place, which
leaves out η_l and bias correction. All products are element-wise, and w_i is
the client's share of the cohort's weight. With relaxed initialisation a
corrected change is measured from the client's own start, in both forms.

Source: Wang, Xu, Garrett, Charles, Liu, Joshi: Local Adaptivity in Federated
Learning: Convergence and Consistency, 2021, arXiv:2106.02305, the correction
matrix N_i and equations (5), (11).

Example:

  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'fedavg', toy.LinearModel, client_learning_rate=0.1,
  ...     client_optimizer='adagrad', correction='local')
  >>> rounds = list(tff_fedopt.run(
  ...     process, toy.Clients(), [['c0', 'c1'], ['c1', 'c3']]))
  >>> [r.round for r in rounds if not r.metrics['diverged']]
  [1, 2]
"""

import collections
from collections.abc import Callable

import tensorflow as tf

from tff_fedopt.algorithms import hparams as hparams_lib
from tff_fedopt.optimizers import base
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


class _Corrected(local_method.LocalMethod):
  """A client that follows N_i."""

  keeps_gradient = False

  def __init__(self, form):
    self.tracks_displacement = 'exact' if form == 'paper' else 'published'


class LocalCorrection(_Corrected):
  """Sends N_i⁻¹ (x_t − y_i)."""

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    change = trees.sub(client.start, result.y)
    return collections.OrderedDict(
        mean=trees.divide_no_nan(change, result.displacement)
    )


class GlobalCorrection(_Corrected):
  """Sends N_i⁻¹ (x_t − y_i) and N_i⁻¹."""

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    change = trees.sub(client.start, result.y)
    n = result.displacement
    return collections.OrderedDict(
        mean=collections.OrderedDict(
            change=trees.divide_no_nan(change, n),
            inverse=trees.divide_no_nan(trees.ones_like(n), n),
        )
    )


class GlobalCorrectionServer(finalizers.ServerMethod):
  """Divides by the average of N_i⁻¹."""

  def pseudo_gradient(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.Tensors:
    mean = aggregate['mean']
    return trees.divide_no_nan(mean['change'], mean['inverse'])


class Synchronised(local_method.LocalMethod):
  """Starts the optimizer from the server's state and sends how it changed."""

  keeps_gradient = False

  def optimizer_state(
      self,
      client: local_method.Client,
      optimizer: base.Optimizer,
      hparams: base.Hparams,
      specs: base.Specs,
  ) -> base.State:
    del specs
    held = client.shared['client_optimizer']
    state = collections.OrderedDict(hparams)
    state['step'] = tf.cast(tf.round(held['step']), tf.int64)
    state.update((k, v) for k, v in held.items() if k != 'step')
    return state

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    held = client.shared['client_optimizer']
    after = result.optimizer_state
    change = collections.OrderedDict(
        (k, tf.nest.map_structure(tf.subtract, after[k], held[k]))
        for k in held
        if k != 'step'
    )
    change['step'] = tf.cast(after['step'], tf.float64) - tf.round(held['step'])
    return collections.OrderedDict(
        mean=collections.OrderedDict(
            change=trees.sub(client.origin, result.y), client_optimizer=change
        )
    )


class SynchronisedServer(finalizers.ServerMethod):
  """Holds one client-optimizer state and adds the mean change to it.

  The step count is kept as a real number, being a mean, and rounded where a
  client starts from it.
  """

  def __init__(self, client_optimizer: base.Optimizer):
    self._optimizer = client_optimizer

  def initial_shared(self, weights: base.Tensors) -> base.State:
    specs = tuple(tf.TensorSpec(w.shape, w.dtype) for w in weights)
    state = self._optimizer.initialize(specs)
    held = collections.OrderedDict(
        (k, v)
        for k, v in state.items()
        if k != 'step' and k not in self._optimizer.HPARAMS
    )
    held['step'] = tf.zeros([], tf.float64)
    return collections.OrderedDict(client_optimizer=held)

  def pseudo_gradient(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.Tensors:
    return tuple(aggregate['mean']['change'])

  def new_shared(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.State:
    change = aggregate['mean']['client_optimizer']
    held = shared['client_optimizer']
    return collections.OrderedDict(
        client_optimizer=collections.OrderedDict(
            (k, tf.nest.map_structure(tf.add, held[k], change[k]))
            for k in held
        )
    )


def halves(
    hp: hparams_lib.LocallyAdaptive
) -> tuple[
    local_method.LocalMethod,
    Callable[[base.Optimizer], finalizers.ServerMethod],
]:
  """The client half, and the server half given the client optimizer."""
  plain_server = lambda optimizer: finalizers.ServerMethod()
  if hp.client_state == 'sync':
    return Synchronised(), SynchronisedServer
  if hp.correction == 'local':
    return LocalCorrection(hp.form), plain_server
  if hp.correction == 'global':
    return (
        GlobalCorrection(hp.form),
        lambda optimizer: GlobalCorrectionServer(),
    )
  return local_method.LocalMethod(), plain_server
