"""The consistency term Δ: how far local models are from the server's.

```
paper  Δ = (1/C) Σ_{i=1..C} ‖x − x_i‖²       x_i: client i's last local model,
code   Δ = (1/|S|) Σ_{i∈S} ‖x − x_i‖²             before its first visit x_0
```

x is the model after the round's update, so what the metric says after round t
is the paper's Δ^{t+1}. For all C clients the server keeps two running sums,
s = Σ (x_i − x) and q = Σ ‖x_i − x‖². The cohort changes its terms in them; then
the server moves by d:

```
s = s + Σ_{i∈S} (x_i⁺ − x_i)      q = q + Σ_{i∈S} ‖x_i⁺ − x‖² − ‖x_i − x‖²
q = q − 2⟨d, s⟩ + C ‖d‖²          s = s − C d
```

Sums of deviations from the moving x stay as small as Δ is, and are kept in
double precision.

Source: Shen, Sun, Tao: Rethinking the Personalized Relaxed Initialization in
the Federated Learning: Consistency and Generalization, 2026, arXiv:2604.12768,
Δ^t and equation (10); FL-Simulator's divergence is that of the cohort.

Example:

  >>> import tempfile
  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'fedavg', toy.LinearModel, client_learning_rate=0.1,
  ...     track_consistency=True, num_clients=4, state_dir=tempfile.mkdtemp())
  >>> rounds = list(tff_fedopt.run(
  ...     process, toy.Clients(), [['c0', 'c1'], ['c1', 'c3']]))
  >>> [r.round for r in rounds if not r.metrics['diverged']]
  [1, 2]
"""

import collections
from collections.abc import Mapping
import math
from typing import Any

import tensorflow as tf

from tff_fedopt.optimizers import base
from tff_fedopt.processes import finalizers
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


def _double(a):
  return tuple(tf.cast(t, tf.float64) for t in a)


def _dot(a, b):
  return tf.add_n([tf.reduce_sum(t * u) for t, u in zip(a, b)])


class Tracked(local_method.Around):
  """Sends also how the client's terms in the sums change."""

  def __init__(self, inner: local_method.LocalMethod, form: str):
    super().__init__(inner)
    self.memory['last'] = 'initial_model'
    self._all_clients = form == 'paper'

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    sent = self.inner.upload(client, result)
    before = client.memory['last'] if self._all_clients else client.x
    change = trees.sub(result.y, before)
    x = _double(client.x)
    both = trees.add(
        trees.sub(_double(result.y), x), trees.sub(_double(before), x)
    )
    total = collections.OrderedDict(
        change=change,
        # ‖y − x‖² − ‖b − x‖² = ⟨y − b, (y − x) + (b − x)⟩
        squares=_dot(_double(change), both),
        clients=tf.ones([], tf.float64),
    )
    if 'total' in sent:
      total['method'] = sent['total']
    sent['total'] = total
    return sent

  def remember(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    memory = self.inner.remember(client, result)
    memory['last'] = result.y
    return memory


class TrackedServer(finalizers.ServerMethod):
  """Keeps the sums, around any server method."""

  def __init__(self, inner: finalizers.ServerMethod, form: str):
    self._inner = inner
    self._all_clients = form == 'paper'

  def initial_shared(self, weights: base.Tensors) -> base.State:
    return self._inner.initial_shared(weights)

  def pseudo_gradient(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.Tensors:
    return self._inner.pseudo_gradient(hparams, _inner_part(aggregate), shared)

  def new_shared(
      self, hparams: base.Hparams, aggregate: base.State, shared: base.State
  ) -> base.State:
    return self._inner.new_shared(hparams, _inner_part(aggregate), shared)

  def initial_kept(self, specs: base.Specs) -> base.State:
    kept: dict[str, Any] = collections.OrderedDict(
        method=self._inner.initial_kept(specs)
    )
    if self._all_clients:
      kept['deviations'] = tuple(tf.zeros(s.shape, tf.float64) for s in specs)
    kept['squares'] = tf.zeros([], tf.float64)
    kept['clients'] = tf.ones([], tf.float64)
    return kept

  def settle(
      self,
      hparams: base.Hparams,
      aggregate: base.State,
      x: base.Tensors,
      stepped: base.Tensors,
      kept: base.State,
  ) -> tuple[base.Tensors, base.State]:
    new_x, method = self._inner.settle(
        hparams, _inner_part(aggregate), x, stepped, kept['method']
    )
    total = aggregate['total']
    deviations = _double(total['change'])
    squares = total['squares']
    clients = total['clients']
    if self._all_clients:
      deviations = trees.add(kept['deviations'], deviations)
      squares += kept['squares']
      clients = hparams['num_clients']
    moved = trees.sub(_double(new_x), _double(x))
    sums = self._sums(deviations, squares, clients, moved)
    return new_x, collections.OrderedDict(method=method, **sums)

  def follow(
      self, hparams: base.Hparams, kept: base.State, moved: base.Tensors
  ) -> base.State:
    new = collections.OrderedDict(kept)
    new['method'] = self._inner.follow(hparams, kept['method'], moved)
    # The cohort's sums begin anew with every round.
    if self._all_clients:
      new.update(
          self._sums(
              kept['deviations'],
              kept['squares'],
              hparams['num_clients'],
              _double(moved),
          )
      )
    return new

  def _sums(self, deviations, squares, clients, moved):
    """The sums about a server model that has moved."""
    new = collections.OrderedDict()
    if self._all_clients:
      new['deviations'] = trees.add_scaled(deviations, -clients, moved)
    new['squares'] = (
        squares
        - 2 * _dot(moved, deviations)
        + clients * trees.squared_norm(moved)
    )
    new['clients'] = clients
    return new

  def measure(
      self, hparams: base.Hparams, kept: base.State, speakers: tf.Tensor
  ) -> Mapping[str, tf.Tensor]:
    # Rounding may leave a little below zero where all models agree.
    consistency = tf.maximum(
        tf.math.divide_no_nan(kept['squares'], kept['clients']), 0.0
    )
    if not self._all_clients:
      nothing = tf.constant(math.nan, consistency.dtype)
      consistency = tf.where(speakers > 0, consistency, nothing)
    return collections.OrderedDict(
        self._inner.measure(hparams, kept['method'], speakers),
        consistency=consistency,
    )


def _inner_part(aggregate):
  """The aggregate without what this module added."""
  part = collections.OrderedDict(mean=aggregate['mean'])
  if 'method' in aggregate['total']:
    part['total'] = aggregate['total']['method']
  return part
