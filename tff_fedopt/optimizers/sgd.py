"""SGD and its momentum forms."""

import collections
from collections.abc import Sequence

import tensorflow as tf

from tff_fedopt.optimizers import base


class Sgd(base.Optimizer):
  """Plain gradient descent.

  ```
  x = x − η g
  ```
  """

  HPARAMS = ('learning_rate',)

  def initial_slots(
      self, hparams: base.Hparams, specs: base.Specs
  ) -> base.State:
    del hparams, specs
    return collections.OrderedDict()

  def step(
      self,
      hparams: base.Hparams,
      t: tf.Tensor,
      slots: base.State,
      gradients: base.Tensors,
  ) -> tuple[base.State, base.Tensors]:
    del t
    lr = hparams['learning_rate']
    return slots, tuple(tf.cast(lr, g.dtype) * g for g in gradients)

  def apply_sparse(
      self,
      state: base.State,
      variables: Sequence[tf.Variable],
      gradients: base.Tensors,
  ) -> base.State:
    """As `apply`, touching only the rows that `tf.IndexedSlices` name."""
    lr = state['learning_rate']
    for v, g in zip(variables, gradients):
      if isinstance(g, tf.IndexedSlices):
        step = tf.cast(lr, g.values.dtype) * g.values
        v.scatter_sub(tf.IndexedSlices(step, g.indices, g.dense_shape))
      elif g is not None:
        v.assign_sub(tf.cast(lr, g.dtype) * g)
    return self._join(self.get_hparams(state), state['step'] + 1, {})

  def unit_displacement(
      self, state: base.State, q: base.Tensors, seed: base.Tensors
  ) -> tuple[base.Tensors, base.Tensors]:
    lr = state['learning_rate']
    return q, tuple(tf.cast(lr, s.dtype) * s for s in seed)

  def published_weights(
      self, state: base.State, a: base.Tensors
  ) -> base.Tensors:
    return tuple(tf.ones_like(x) for x in a)


class Momentum(base.Optimizer):
  """Gradient descent with momentum ρ.

  ```
  u = ρ u + c g        c = 1, or 1 − ρ if `ema`
  x = x − η u          or x − η (c g + ρ u) if `nesterov`
  ```

  Source: Adaptive Federated Optimization, FedAvgM (c = 1, as in Keras).
  """

  HPARAMS = ('learning_rate', 'momentum')

  def __init__(
      self, *, nesterov: bool = False, ema: bool = False, **hparams: float
  ):
    super().__init__(**hparams)
    self._nesterov = nesterov
    self._ema = ema

  def initial_slots(
      self, hparams: base.Hparams, specs: base.Specs
  ) -> base.State:
    del hparams
    return collections.OrderedDict(momentum_buffer=base.zeros(specs))

  def _accumulate(self, hparams, u, gradients):
    """The new u, and what the learning rate multiplies."""
    rho = hparams['momentum']
    new_u, direction = [], []
    for u_j, g in zip(u, gradients):
      r = tf.cast(rho, g.dtype)
      scaled = (1 - r) * g if self._ema else g
      u_j = r * u_j + scaled
      new_u.append(u_j)
      direction.append(r * u_j + scaled if self._nesterov else u_j)
    return tuple(new_u), tuple(direction)

  def step(
      self,
      hparams: base.Hparams,
      t: tf.Tensor,
      slots: base.State,
      gradients: base.Tensors,
  ) -> tuple[base.State, base.Tensors]:
    del t
    u, direction = self._accumulate(
        hparams, slots['momentum_buffer'], gradients
    )
    lr = hparams['learning_rate']
    displacement = tuple(tf.cast(lr, d.dtype) * d for d in direction)
    return collections.OrderedDict(momentum_buffer=u), displacement

  def unit_displacement(
      self, state: base.State, q: base.Tensors, seed: base.Tensors
  ) -> tuple[base.Tensors, base.Tensors]:
    q, direction = self._accumulate(state, q, seed)
    lr = state['learning_rate']
    return q, tuple(tf.cast(lr, d.dtype) * d for d in direction)

  def published_weights(
      self, state: base.State, a: base.Tensors
  ) -> base.Tensors:
    b = state['momentum']
    return tuple(tf.cast(b, x.dtype) * x + tf.cast(1 - b, x.dtype) for x in a)
