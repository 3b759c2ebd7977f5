"""What all optimizers of this package share: the state layout and its use."""

import abc
import collections
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

# Hyperparameters are kept in double precision and cast to the weights' dtype
# where they are used, so that 0.1 means 0.1 in a float64 model too.
HPARAM_DTYPE = tf.float64

# Tensors of one model, in its weights' order, and their specs.
Tensors = tuple[tf.Tensor, ...]
Specs = Sequence[tf.TensorSpec]
# Ordered dictionaries by name: float64 scalars; tensors or tuples of them.
Hparams = dict[str, tf.Tensor]
State = dict[str, Any]


def densify(gradients: Tensors) -> tuple[tf.Tensor | None, ...]:
  """Turns the `tf.IndexedSlices` of embedding gradients into dense tensors."""
  return tuple(
      None if g is None else tf.convert_to_tensor(g) for g in gradients
  )


def zeros(specs: Specs) -> Tensors:
  """A tuple of zeros with the shapes and dtypes of `specs`."""
  return tuple(tf.zeros(s.shape, s.dtype) for s in tf.nest.flatten(specs))


def full(specs: Specs, value: tf.Tensor | float) -> Tensors:
  """A tuple of tensors like `specs`, each filled with the scalar `value`."""
  return tuple(
      tf.fill(s.shape, tf.cast(value, s.dtype)) for s in tf.nest.flatten(specs)
  )


class Optimizer(tff.learning.optimizers.Optimizer):
  """A `tff.learning.optimizers.Optimizer` whose numbers all live in its state.

  The state is an ordered dictionary: the hyperparameters (float64 scalars, so
  `set_hparams` changes any of them without retracing), `step` (int64 scalar,
  the number of steps taken), and one tuple of tensors a slot, shaped like the
  weights. Weights and gradients are (nests of) tensors; a `None` gradient
  counts as zeros.

  Subclasses name their hyperparameters in `HPARAMS`, their slots in
  `initial_slots`, and give one step in `step`.
  """

  HPARAMS: tuple[str, ...] = ()

  def __init__(self, **hparams: float):
    self._hparams = collections.OrderedDict(
        (name, float(hparams[name])) for name in self.HPARAMS
    )

  @abc.abstractmethod
  def initial_slots(self, hparams: Hparams, specs: Specs) -> State:
    """Ordered dictionary of the slots before the first step."""

  @abc.abstractmethod
  def step(
      self, hparams: Hparams, t: tf.Tensor, slots: State, gradients: Tensors
  ) -> tuple[State, Tensors]:
    """One step for dense gradients.

    Args:
      hparams: Ordered dictionary of float64 scalars.
      t: The step's number counted from 1, an int64 scalar.
      slots: The slots before the step.
      gradients: A tuple of dense tensors.

    Returns:
      The new slots, and the tuple of tensors to subtract from the weights.
    """

  @abc.abstractmethod
  def unit_displacement(
      self, state: State, q: Tensors, seed: Tensors
  ) -> tuple[Tensors, Tensors]:
    """How far the step just taken would have gone for all-ones gradients.

    Source: Local Adaptivity, the correction matrix N_i: the displacement the
    optimizer would have made, with the preconditioners it really used, had
    every gradient been all ones.

    Args:
      state: The state after the step.
      q: Tuple of tensors: the momentum of the all-ones gradients before it.
      seed: Tuple of tensors to feed in place of ones (a proximal term and
        weight decay pull it below one).

    Returns:
      A pair: the new `q`, and the displacement of this step.
    """

  @abc.abstractmethod
  def published_weights(self, state: State, a: Tensors) -> Tensors:
    """The weights the authors' published code accumulates in place of N_i.

    Source: google-research/federated, `local_adaptivity`: a = b a + (1 − b) p,
    N_i = Σ a, with p the preconditioner after the step, b the momentum
    parameter; neither the learning rate nor bias correction enters.

    Args:
      state: The state after the step.
      a: Tuple of tensors, the running average before it.

    Returns:
      The new `a`.
    """

  def initialize(self, specs: Specs) -> State:
    return self.initialize_with(
        collections.OrderedDict(
            (k, tf.constant(v, HPARAM_DTYPE)) for k, v in self._hparams.items()
        ),
        specs,
    )

  def initialize_with(self, hparams: Hparams, specs: Specs) -> State:
    """The state before the first step, for hyperparameters given as tensors."""
    state = collections.OrderedDict((k, hparams[k]) for k in self.HPARAMS)
    state['step'] = tf.zeros([], tf.int64)
    state.update(self.initial_slots(state, specs))
    return state

  def next(
      self, state: State, weights: Any, gradients: Tensors
  ) -> tuple[State, Any]:
    flat = tf.nest.flatten(weights)
    dense = tuple(
        tf.zeros_like(w) if g is None else g
        for w, g in zip(flat, densify(_flatten_gradients(gradients)))
    )
    new_state, displacement = self._advance(state, dense)
    new_weights = [w - d for w, d in zip(flat, displacement)]
    return new_state, tf.nest.pack_sequence_as(weights, new_weights)

  def apply(
      self, state: State, variables: Sequence[tf.Variable], gradients: Tensors
  ) -> State:
    """As `next`, in place: subtracts the step from `variables`.

    Args:
      state: The optimizer's state.
      variables: A sequence of `tf.Variable`s.
      gradients: A sequence of dense tensors.

    Returns:
      The new state.
    """
    new_state, displacement = self._advance(state, tuple(gradients))
    for v, d in zip(variables, displacement):
      v.assign_sub(d)
    return new_state

  def _advance(self, state, gradients):
    hparams, slots = self._split(state)
    t = state['step'] + 1
    new_slots, displacement = self.step(hparams, t, slots, gradients)
    return self._join(hparams, t, new_slots), displacement

  def _split(self, state):
    hparams = self.get_hparams(state)
    slots = collections.OrderedDict(
        (k, v) for k, v in state.items() if k not in hparams and k != 'step'
    )
    return hparams, slots

  def _join(self, hparams, step, slots):
    state = collections.OrderedDict(hparams)
    state['step'] = step
    state.update(slots)
    return state

  def get_hparams(self, state: State) -> Hparams:
    return collections.OrderedDict((k, state[k]) for k in self.HPARAMS)

  def set_hparams(self, state: State, hparams: Hparams) -> State:
    _, slots = self._split(state)
    hparams = collections.OrderedDict((k, hparams[k]) for k in self.HPARAMS)
    # Before the first step the slots still hold the initial values that the
    # hyperparameters ask for, so they follow a change of those.
    specs = next(iter(slots.values()), ())
    fresh = self.initial_slots(hparams, specs)
    slots = tf.nest.map_structure(
        lambda new, old: tf.where(tf.equal(state['step'], 0), new, old),
        fresh,
        slots,
    )
    return self._join(hparams, state['step'], slots)


def _flatten_gradients(gradients):
  # `tf.nest.flatten` would take `tf.IndexedSlices` apart no more than it does
  # `None`; both are leaves.
  return tf.nest.flatten(gradients, expand_composites=False)
