"""Client learning-rate schedules: η_l as a function of the round.

A schedule is text: `constant`, `exponential:RATE:STEPS`,
`inverse_sqrt:RATE:STEPS` or `inverse_linear:RATE:STEPS`. With t the round
counted from 0, the client learning rate is η_l times

```
constant        1
exponential     RATE^floor(t / STEPS)          (a staircase)
inverse_sqrt    1 / √(1 + RATE · t / STEPS)
inverse_linear  1 / (1 + RATE · t / STEPS)
```

Source: Adaptive Federated Optimization, the learning-rate decay experiment
(`exponential:0.1:500`); the other two as in the authors' code.
"""

import dataclasses
from typing import Any

KINDS = ('constant', 'exponential', 'inverse_sqrt', 'inverse_linear')


@dataclasses.dataclass(frozen=True)
class Schedule:
  """A parsed schedule.

  Attributes:
    kind: One of `KINDS`.
    rate: RATE, dimensionless, above 0.
    steps: STEPS, in rounds, above 0.
  """

  kind: str = 'constant'
  rate: float = 1.0
  steps: float = 1.0

  @classmethod
  def parse(cls, given: 'str | Schedule') -> 'Schedule':
    """Reads a schedule from its text.

    Args:
      given: See the module's docstring; a schedule stays what it is.

    Returns:
      A `Schedule`.

    Raises:
      ValueError: If the text is none of the forms above.
    """
    if isinstance(given, cls):
      return given
    kind, *numbers = str(given).strip().split(':')
    try:
      rate, steps = (float(n) for n in numbers) if numbers else (1.0, 1.0)
    except ValueError:
      rate = steps = 0.0
    usable = (
        kind in KINDS
        and (kind == 'constant') == (not numbers)
        and 0 < rate < float('inf')
        and 0 < steps < float('inf')
    )
    if not usable:
      raise ValueError(
          f'client_learning_rate_schedule: {given!r}; expected constant,'
          ' exponential:RATE:STEPS, inverse_sqrt:RATE:STEPS or'
          ' inverse_linear:RATE:STEPS with RATE and STEPS above 0'
      )
    return cls(kind, rate, steps)

  def __str__(self):
    if self.kind == 'constant':
      return self.kind
    numbers = (repr(n).removesuffix('.0') for n in (self.rate, self.steps))
    return ':'.join((self.kind, *numbers))

  def factor(self, round_num: Any, rate: Any, steps: Any) -> Any:
    """What η_l is multiplied by in round `round_num`.

    Args:
      round_num: int64 scalar tensor, counted from 0.
      rate: float64 scalar tensor; RATE, which may differ from `self.rate`
        when it was changed in the state of a traced process.
      steps: float64 scalar tensor; STEPS, likewise.

    Returns:
      A float64 scalar tensor.
    """
    import tensorflow as tf  # Parsing a schedule must not need TensorFlow.

    t = tf.cast(round_num, tf.float64) / steps
    if self.kind == 'exponential':
      return tf.pow(rate, tf.floor(t))
    if self.kind == 'inverse_sqrt':
      return tf.math.rsqrt(1 + rate * t)
    if self.kind == 'inverse_linear':
      return 1 / (1 + rate * t)
    return tf.ones([], tf.float64)
