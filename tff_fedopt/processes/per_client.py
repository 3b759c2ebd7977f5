"""Hyperparameters that differ from client to client.

Written as JSON text: `{"gamma": {"client 7": 0.2}, "local_steps": {"client 7":
[3, 1]}}`. Clients that are not listed have the common value.
"""

from collections.abc import Mapping
import dataclasses
import json
import math
from typing import Any

import immutabledict

from tff_fedopt.processes import local_steps

NAMES = (
    'gamma',
    'client_learning_rate',
    'local_steps',
    'weight',
    'dual_step',
    'aggregation_step',
)

# Sums of such numbers, and squares of those sums, are finite.
LARGEST = 1e100

Numbers = float | tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class PerClient:
  """What differs between clients.

  Attributes:
    values: Hyperparameter to client id to value, both in sorted order.
  """

  values: Mapping[str, Mapping[str, Numbers]] = immutabledict.immutabledict()

  @classmethod
  def parse(cls, given: 'str | PerClient') -> 'PerClient':
    """Reads the text.

    Args:
      given: See the module's docstring. `local_steps` takes a whole number or a
        list of them, gone through round by round; the others of `NAMES` take a
        number above 0 (`dual_step` and `aggregation_step` also 0). What is
        parsed stays what it is.

    Returns:
      A `PerClient`.

    Raises:
      ValueError: One line: what is wrong, and what would be right.
    """
    if isinstance(given, cls):
      return given
    found = read_object('per_client', given)
    if found is None:
      raise ValueError(
          f'per_client: {_short(given)}; expected JSON such as'
          ' {"gamma": {"client id": 0.1}}'
      )
    values = {}
    for name, by_id in sorted(found.items()):
      if name not in NAMES:
        raise ValueError(
            f'per_client: {name} cannot differ between clients; '
            + ', '.join(NAMES)
            + ' can'
        )
      if not isinstance(by_id, dict) or not by_id:
        raise ValueError(
            f'per_client: {name} is {_short(by_id)}; expected values by client'
            ' id'
        )
      values[name] = immutabledict.immutabledict(
          {i: _value(name, i, v) for i, v in sorted(by_id.items())}
      )
    return cls(immutabledict.immutabledict(values))

  def __str__(self):
    plain = {name: dict(by_id) for name, by_id in self.values.items()}
    return json.dumps(plain, ensure_ascii=False)

  @property
  def clients(self) -> frozenset[str]:
    """The clients that are listed."""
    return frozenset(i for by_id in self.values.values() for i in by_id)


class _TwiceError(Exception):
  """A name or client id that an object holds twice."""


def read_object(option: str, text: Any) -> dict[str, Any] | None:
  """Reads a JSON object.

  Args:
    option: What the text is given as, for the message.
    text: The text.

  Returns:
    The object, None if the text is anything else.

  Raises:
    ValueError: If an object in it holds a name twice, of which JSON itself
      would take the last.
  """

  def to_dict(pairs):
    found = {}
    for key, value in pairs:
      if key in found:
        raise _TwiceError(_short(key))
      found[key] = value
    return found

  try:
    given = json.loads(text, object_pairs_hook=to_dict)
  except _TwiceError as e:
    raise ValueError(f'{option}: {e} is given twice; expected once') from e
  except (TypeError, ValueError, RecursionError):
    return None
  return given if isinstance(given, dict) else None


def _value(name, client_id, value):
  if not client_id.isprintable():
    raise ValueError(
        f'per_client: {name} of {client_id!r}; expected a client id that can be'
        ' printed'
    )
  if name == 'local_steps':
    steps = value if isinstance(value, list) else [value]
    if steps and all(
        type(s) is int and 1 <= s <= local_steps.MOST for s in steps
    ):
      return tuple(steps)
    wanted = f'a whole number from 1 to {local_steps.MOST} or a list of them'
    raise ValueError(
        f'per_client: {name} of {client_id!r} is {_short(value)}; expected'
        f' {wanted}'
    )
  return number(
      f'per_client: {name} of {client_id!r}',
      value,
      or_zero=name in ('dual_step', 'aggregation_step'),
  )


def number(what: str, value: Any, or_zero: bool = False) -> float:
  """Checks a client's own number.

  Args:
    what: Whose it is, for the message.
    value: As JSON gives it.
    or_zero: Whether 0 will do.

  Returns:
    The number.

  Raises:
    ValueError: If it is none that can be added up and squared.
  """
  is_number = type(value) in (int, float)
  least = 0 if or_zero else math.ulp(0.0)
  if is_number and least <= value <= LARGEST:
    return float(value)
  wanted = '0 or above' if or_zero else 'a number above 0'
  raise ValueError(
      f'{what} is {_short(value)}; expected {wanted}, at most {LARGEST:g}'
  )


def _short(value):
  text = repr(value)
  return text if len(text) <= 60 else text[:57] + '...'


def of_client(
    tables: Mapping[str, Mapping[str, float]], hparams: Any, client_id: Any
) -> Any:
  """One client's hyperparameters.

  Args:
    tables: Hyperparameter to client id to value, all numbers.
    hparams: Ordered dictionary of float64 scalar tensors, the common values;
      1 where there is none.
    client_id: String scalar tensor.

  Returns:
    `hparams` with the client's own values in place.
  """
  import tensorflow as tf  # Parsing must not need TensorFlow.

  values = hparams.copy()
  for name, by_id in tables.items():
    here = tf.equal(tf.constant(list(by_id)), client_id)
    own = tf.constant(list(by_id.values()), tf.float64)
    own = tf.reduce_sum(tf.where(here, own, tf.zeros_like(own)))
    common = tf.cast(hparams.get(name, 1.0), tf.float64)
    values[name] = tf.where(tf.reduce_any(here), own, common)
  return values


def steps_of_client(
    by_id: Mapping[str, tuple[int, ...]], client_id: Any
) -> Any:
  """One client's own numbers of steps, an int64 vector; [0] if it has none."""
  import tensorflow as tf

  rows = tf.ragged.constant([[0], *by_id.values()], tf.int64)
  here = tf.equal(tf.constant(list(by_id)), client_id)
  row = tf.reduce_sum(tf.where(here, tf.range(1, len(by_id) + 1), 0))
  return rows[row]
