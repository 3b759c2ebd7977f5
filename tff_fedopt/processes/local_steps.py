"""How many steps a client takes in a round, Q_i^r.

Written as text: `all`, a number, or `random:LOW:HIGH`.

```
all              one step for each batch of the client's examples
Q                Q steps
random:LOW:HIGH  LOW, …, HIGH with equal probability, drawn by client and round
```

Where there are fewer batches than steps the examples are gone through again,
where there are more the rest is left out.

Source: FedVRA's heterogeneous local updates. The paper leaves open how Q_i^r
comes about; the data's size (`all`) is its example.
"""

import dataclasses
from typing import Any

MOST = 2**31 - 1
KINDS = ('all', 'fixed', 'random')


@dataclasses.dataclass(frozen=True)
class LocalSteps:
  """A parsed rule.

  Attributes:
    kind: One of `KINDS`.
    low: The smallest number of steps; 0 stands for whatever there is.
    high: The largest.
  """

  kind: str = 'all'
  low: int = 0
  high: int = 0

  @classmethod
  def parse(cls, given: 'str | int | LocalSteps') -> 'LocalSteps':
    """Reads a rule from its text.

    Args:
      given: See the module's docstring; a rule stays what it is.

    Returns:
      A `LocalSteps`.

    Raises:
      ValueError: If the text is none of the forms above.
    """
    if isinstance(given, cls):
      return given
    text = str(given).strip()
    if text == 'all':
      return cls()
    kind, *numbers = text.split(':')
    try:
      if kind == 'random':
        low, high = map(_whole, numbers)
      else:
        low = high = _whole(text)
        kind = 'fixed'
    except ValueError:
      low = high = 0
    if not 1 <= low <= high <= MOST:
      raise ValueError(
          f'local_steps: {given!r:.60}; expected all, a whole number above 0,'
          f' or random:LOW:HIGH with 1 ≤ LOW ≤ HIGH ≤ {MOST}'
      )
    return cls(kind, low, high)

  def __str__(self):
    if self.kind == 'random':
      return f'random:{self.low}:{self.high}'
    return 'all' if self.kind == 'all' else str(self.low)

  @property
  def telling(self) -> tuple[int, ...]:
    """The least odd number, the least even one, the largest; none for all."""
    if self.kind == 'all':
      return ()
    return tuple(sorted({self.low, min(self.low + 1, self.high), self.high}))

  def batches(
      self, examples: Any, listed: Any, round_num: Any, seed: Any
  ) -> Any:
    """The batches of a client's steps in a round.

    Args:
      examples: The client's batches, a dataset.
      listed: The client's own numbers of steps, a non-empty int64 vector that
        is gone through round by round, its first entry 0 if it has none.
      round_num: Int64 scalar tensor, t: the number of rounds before this one.
      seed: Int64 scalar tensor, the client's seed in this round.

    Returns:
      A dataset.
    """
    import tensorflow as tf  # Parsing must not need TensorFlow.

    if self.kind == 'random':
      # Steps of the model's own randomness are numbered from 0.
      pair = tf.stack([seed, tf.constant(-1, tf.int64)])
      steps = tf.random.stateless_uniform(
          [], pair, self.low, self.high + 1, tf.int64
      )
    else:
      steps = tf.constant(self.low, tf.int64)
    if listed is not None:
      own = listed[round_num % tf.size(listed, tf.int64)]
      steps = tf.where(listed[0] > 0, own, steps)
    if self.kind == 'all' and listed is None:
      return examples
    # 0 stands for all there is; -1 is the dataset's word for it.
    repeats = tf.where(steps > 0, tf.constant(-1, tf.int64), 1)
    return examples.repeat(repeats).take(tf.where(steps > 0, steps, -1))


def _whole(text):
  number = float(text)
  if not number.is_integer():
    raise ValueError(text)
  return int(number)
