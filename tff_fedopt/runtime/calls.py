"""Calls of TensorFlow functions, which all of a run's can be cut short."""

from collections.abc import Sequence
import itertools
import threading

import tensorflow as tf
from tensorflow.python.eager import cancellation
from tensorflow.python.eager import context as eager_context
from tensorflow.python.eager import execute


class Calls:
  """The calls of one run, from any threads.

  TensorFlow cancels what shares a manager of cancellations with a call that
  fails. Each call has its own here, so that which clients fail does not depend
  on which of them fails first.
  """

  def __init__(self):
    self._lock = threading.Lock()
    self._under_way = set()
    self._cancelled = False

  def call(self, function, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Calls a concrete function on the thread's device.

    Args:
      function: The function, of tensors without variables of its own.
      arguments: All its arguments.

    Returns:
      Its results, flat.

    Raises:
      tf.errors.OpError: If it fails; `CancelledError` after `cancel`.
    """
    manager = cancellation.CancellationManager()
    with self._lock:
      if self._cancelled:
        raise tf.errors.CancelledError(None, None, 'the run was cancelled')
      self._under_way.add(manager)
    context = eager_context.context()
    options = context.function_call_options.as_attrs()
    try:
      return execute.execute_with_cancellation(
          function.name.decode(),
          num_outputs=len(function.outputs),
          inputs=list(arguments),
          attrs=tuple(itertools.chain(*options.items())),
          ctx=context,
          cancellation_manager=manager,
      )
    finally:
      with self._lock:
        self._under_way.discard(manager)

  def cancel(self) -> None:
    """Ends the calls under way, and all later ones, with an error."""
    with self._lock:
      self._cancelled = True
      for manager in self._under_way:
        manager.start_cancel()
