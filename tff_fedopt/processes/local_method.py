"""What one algorithm changes in local training; the defaults are FedAvg's."""

import collections
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tff_fedopt.optimizers import base
from tff_fedopt.processes import trees

# From weights to the gradient of the mini-batch there.
GradientAt = Callable[[base.Tensors], base.Tensors]


class Client(NamedTuple):
  """What a client knows when its local training begins.

  Attributes:
    hparams: Ordered dictionary of float64 scalar tensors, by hyperparameter
      name; `client_learning_rate` is this round's, after the schedule.
    x: The server model's trainable weights, a tuple of tensors.
    shared: Whatever else the server sent, an ordered dictionary.
    memory: What this client kept from its last participation, an ordered
      dictionary of tuples of tensors (empty for algorithms without memory).
    start: x_0, where local training starts; set once `LocalMethod.start` ran.
    origin: Where the change that the server averages is measured from: x_0,
      unless a method around this one says otherwise.
    prepared: What `LocalMethod.prepare` made of all this.
  """

  hparams: Any
  x: tuple[Any, ...]
  shared: Any
  memory: Any
  start: tuple[Any, ...] = ()
  origin: tuple[Any, ...] = ()
  prepared: Any = ()


class LocalResult(NamedTuple):
  """What local training leaves.

  Attributes:
    y: The local model after the last step, a tuple of tensors.
    num_steps: K_i, the number of steps really taken, an int64 scalar.
    optimizer_state: The client optimizer's state after the last step.
    displacement: N_i, a tuple of tensors, if the method tracks it; else ().
    gradient_at_x: ∇F_i(x) over all the client's examples, a tuple of tensors,
      if the method asks for it; else ().
  """

  y: tuple[Any, ...]
  num_steps: Any
  optimizer_state: Any
  displacement: tuple[Any, ...]
  gradient_at_x: tuple[Any, ...] = ()


class LocalMethod:
  """The client half of an algorithm: the hooks of the one local loop.

  ```
  x_0 = start(x)
  for each batch:
    g = direction(∇F_i(y; batch))
    y = client optimizer's step from y along g
  upload(x_0, y), memory = remember(x_0, y)
  ```
  """

  # Names of the model-sized tuples the client keeps between rounds, each with
  # its value before the first visit: 'zeros' or 'initial_model'.
  memory: dict[str, str] = {}

  # None, 'exact' or 'published': how N_i is accumulated, if at all.
  tracks_displacement: str | None = None

  # Whether `direction` returns the gradient as it is, so that the sparse
  # gradients of embeddings need not be made dense.
  keeps_gradient = True

  # Whether `upload` and `remember` need `LocalResult.gradient_at_x`, for which
  # the client goes through its examples once more.
  needs_gradient_at_x = False

  def start(self, client: Client) -> base.Tensors:
    """x_0, a tuple of tensors."""
    return client.x

  def prepare(self, client: Client) -> Any:
    """What `direction` needs and no step changes, a nest of tensors.

    A pass over a large model costs as much as a good part of a step.
    """
    del client
    return ()

  def optimizer_state(
      self,
      client: Client,
      optimizer: base.Optimizer,
      hparams: base.Hparams,
      specs: base.Specs,
  ) -> base.State:
    """The client optimizer's state before the first local step."""
    del client
    return optimizer.initialize_with(hparams, specs)

  def direction(
      self,
      client: Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: GradientAt,
  ) -> base.Tensors:
    """What the client optimizer is given in place of the gradient.

    Args:
      client: The client.
      y: The local model, a sequence of variables.
      gradient: The mini-batch gradient at `y`, a tuple of tensors.
      gradient_at: A function from a tuple of tensors to the gradient of the
        same mini-batch there (weight decay included where `gradient` includes
        it), which leaves `y` and all metrics as they are.

    Returns:
      A tuple of tensors.
    """
    del client, y, gradient_at
    return gradient

  def late_decay(self, client: Client) -> tf.Tensor | None:
    """The factor c of a term c · y added after clipping, a scalar or None."""
    del client
    return None

  def linear_pull(self, client: Client) -> tf.Tensor | None:
    """The factor c of the term c · y in what is minimised, a scalar or None.

    The correction matrix N_i needs it: c pulls the displacement back.
    """
    del client
    return None

  def upload(self, client: Client, result: LocalResult) -> base.State:
    """What is sent up.

    Returns:
      An ordered dictionary. `mean` is averaged over the cohort with the
      clients' weights, `total` (optional) is added up without weights. Model
      changes are initial minus final, as everywhere in TFF.
    """
    return collections.OrderedDict(mean=trees.sub(client.origin, result.y))

  def weight(self, client: Client, weight: tf.Tensor) -> Any:
    """What the server knows of who sent an upload, for the aggregator.

    Args:
      client: The client.
      weight: Its weight in an average, a float32 scalar; 0 if it has nothing
        to say.

    Returns:
      A nest of scalars.
    """
    del client
    return weight

  def remember(self, client: Client, result: LocalResult) -> base.State:
    """The client's new memory, named as in `memory`."""
    del client, result
    return collections.OrderedDict()


class Around(LocalMethod):
  """A method around another: all is the inner one's, to be overridden."""

  def __init__(self, inner: LocalMethod):
    self.inner = inner
    self.memory = dict(inner.memory)
    self.tracks_displacement = inner.tracks_displacement
    self.keeps_gradient = inner.keeps_gradient
    self.needs_gradient_at_x = inner.needs_gradient_at_x

  def start(self, client: Client) -> base.Tensors:
    return self.inner.start(client)

  def prepare(self, client: Client) -> Any:
    return self.inner.prepare(client)

  def optimizer_state(
      self,
      client: Client,
      optimizer: base.Optimizer,
      hparams: base.Hparams,
      specs: base.Specs,
  ) -> base.State:
    return self.inner.optimizer_state(client, optimizer, hparams, specs)

  def direction(
      self,
      client: Client,
      y: Sequence[tf.Variable],
      gradient: base.Tensors,
      gradient_at: GradientAt,
  ) -> base.Tensors:
    return self.inner.direction(client, y, gradient, gradient_at)

  def late_decay(self, client: Client) -> tf.Tensor | None:
    return self.inner.late_decay(client)

  def linear_pull(self, client: Client) -> tf.Tensor | None:
    return self.inner.linear_pull(client)

  def upload(self, client: Client, result: LocalResult) -> base.State:
    return self.inner.upload(client, result)

  def weight(self, client: Client, weight: tf.Tensor) -> Any:
    return self.inner.weight(client, weight)

  def remember(self, client: Client, result: LocalResult) -> base.State:
    return self.inner.remember(client, result)
