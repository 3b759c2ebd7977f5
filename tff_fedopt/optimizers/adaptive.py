"""Adagrad, Adam and Yogi with one shared denominator, √v + τ."""

import abc
import collections

import tensorflow as tf

from tff_fedopt.optimizers import base


class Adaptive(base.Optimizer):
  """Adaptive steps as in FedOpt's algorithm box.

  ```
  m_t = β₁ m_{t−1} + (1 − β₁) g
  v_t = second_moment(v_{t−1}, g)
  x   = x − η k_t m_t / (√v_t + τ)
  k_t = √(1 − β₂^t) / (1 − β₁^t) with bias correction, else 1
  ```

  τ stands outside the root and is not bias-corrected. v starts at
  `initial_accumulator` (the box asks for v_{−1} ≥ τ²; published code uses 0).

  Source: Adaptive Federated Optimization, Algorithm 2; the bias correction is
  that of Keras, which the authors' code runs on.
  """

  HPARAMS: tuple[str, ...] = (
      'learning_rate',
      'tau',
      'initial_accumulator',
      'beta1',
  )

  def __init__(self, *, bias_correction: bool = False, **hparams: float):
    super().__init__(**hparams)
    self._bias_correction = bias_correction

  @abc.abstractmethod
  def second_moment(
      self, hparams: base.Hparams, v: tf.Tensor, g_squared: tf.Tensor
  ) -> tf.Tensor:
    """v_t of one tensor from v_{t−1} and g²."""

  def initial_slots(
      self, hparams: base.Hparams, specs: base.Specs
  ) -> base.State:
    return collections.OrderedDict(
        first_moment=base.zeros(specs),
        second_moment=base.full(specs, hparams['initial_accumulator']),
    )

  def _first_moment(self, hparams, m, gradients):
    b1 = hparams['beta1']
    return tuple(
        tf.cast(b1, g.dtype) * m_j + tf.cast(1 - b1, g.dtype) * g
        for m_j, g in zip(m, gradients)
    )

  def _rate(self, hparams, t):
    """η k_t, a float64 scalar."""
    lr = hparams['learning_rate']
    if not self._bias_correction:
      return lr
    t = tf.cast(t, base.HPARAM_DTYPE)
    one = tf.ones([], base.HPARAM_DTYPE)
    return (
        lr
        * tf.sqrt(one - tf.pow(hparams['beta2'], t))
        / (one - tf.pow(hparams['beta1'], t))
    )

  def _precondition(self, hparams, t, v, direction):
    rate, tau = self._rate(hparams, t), hparams['tau']
    return tuple(
        tf.cast(rate, d.dtype) * d / (tf.sqrt(v_j) + tf.cast(tau, d.dtype))
        for v_j, d in zip(v, direction)
    )

  def step(
      self,
      hparams: base.Hparams,
      t: tf.Tensor,
      slots: base.State,
      gradients: base.Tensors,
  ) -> tuple[base.State, base.Tensors]:
    m = self._first_moment(hparams, slots['first_moment'], gradients)
    v = tuple(
        self.second_moment(hparams, v_j, tf.square(g))
        for v_j, g in zip(slots['second_moment'], gradients)
    )
    new_slots = collections.OrderedDict(first_moment=m, second_moment=v)
    return new_slots, self._precondition(hparams, t, v, m)

  def unit_displacement(
      self, state: base.State, q: base.Tensors, seed: base.Tensors
  ) -> tuple[base.Tensors, base.Tensors]:
    q = self._first_moment(state, q, seed)
    return q, self._precondition(
        state, state['step'], state['second_moment'], q
    )

  def published_weights(
      self, state: base.State, a: base.Tensors
  ) -> base.Tensors:
    b, tau = state['beta1'], state['tau']
    return tuple(
        tf.cast(b, x.dtype) * x
        + tf.cast(1 - b, x.dtype) / (tf.sqrt(v) + tf.cast(tau, x.dtype))
        for x, v in zip(a, state['second_moment'])
    )


class Adagrad(Adaptive):
  """v_t = v_{t−1} + g²."""

  def __init__(self, **hparams: float):
    # v is a sum, not an average: there is no bias to correct.
    super().__init__(bias_correction=False, **hparams)

  def second_moment(
      self, hparams: base.Hparams, v: tf.Tensor, g_squared: tf.Tensor
  ) -> tf.Tensor:
    del hparams
    return v + g_squared


class PlainAdagrad(Adagrad):
  """Adagrad with β₁ = 0, as clients run it: nothing is kept but v."""

  HPARAMS = ('learning_rate', 'tau', 'initial_accumulator')

  def initial_slots(
      self, hparams: base.Hparams, specs: base.Specs
  ) -> base.State:
    slots = super().initial_slots(hparams, specs)
    del slots['first_moment']
    return slots

  def step(
      self,
      hparams: base.Hparams,
      t: tf.Tensor,
      slots: base.State,
      gradients: base.Tensors,
  ) -> tuple[base.State, base.Tensors]:
    v = tuple(
        self.second_moment(hparams, v_j, tf.square(g))
        for v_j, g in zip(slots['second_moment'], gradients)
    )
    new_slots = collections.OrderedDict(second_moment=v)
    return new_slots, self._precondition(hparams, t, v, gradients)

  def unit_displacement(
      self, state: base.State, q: base.Tensors, seed: base.Tensors
  ) -> tuple[base.Tensors, base.Tensors]:
    return q, self._precondition(
        state, state['step'], state['second_moment'], seed
    )

  def published_weights(
      self, state: base.State, a: base.Tensors
  ) -> base.Tensors:
    del a
    tau = state['tau']
    return tuple(
        1 / (tf.sqrt(v) + tf.cast(tau, v.dtype))
        for v in state['second_moment']
    )


class Adam(Adaptive):
  """v_t = β₂ v_{t−1} + (1 − β₂) g²."""

  HPARAMS = Adaptive.HPARAMS + ('beta2',)

  def second_moment(
      self, hparams: base.Hparams, v: tf.Tensor, g_squared: tf.Tensor
  ) -> tf.Tensor:
    b2 = hparams['beta2']
    return tf.cast(b2, v.dtype) * v + tf.cast(1 - b2, v.dtype) * g_squared


class Yogi(Adaptive):
  """v_t = v_{t−1} − (1 − β₂) g² sign(v_{t−1} − g²)."""

  HPARAMS = Adaptive.HPARAMS + ('beta2',)

  def second_moment(
      self, hparams: base.Hparams, v: tf.Tensor, g_squared: tf.Tensor
  ) -> tf.Tensor:
    b2 = hparams['beta2']
    return v - tf.cast(1 - b2, v.dtype) * g_squared * tf.sign(v - g_squared)
