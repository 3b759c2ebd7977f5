"""How likely each client is to take part in a round.

Written as text: `equal`; `examples`, in proportion to a client's number of
examples; or JSON such as `{"client 7": 2.5}`, weights by client id, 1 for
clients that are not listed.

```
p_i = min(1, c w_i),  c such that Σ p_i = m        m: the size of the cohort
```

Source: FedVRA, Algorithm 1, whose server samples client i with probability p_i.
"""

from collections.abc import Mapping
import typing
from typing import Any, Protocol

import numpy as np

from tff_fedopt.processes import per_client

KINDS = ('equal', 'examples')

# From here on a client is certain to take part.
_CERTAIN = 1 - 1e-9


@typing.runtime_checkable
class SizedClients(Protocol):
  """Client data that know how many examples each client has.

  Attributes:
    sizes: Int64, in the order of `client_ids`; None if unknown.
  """

  sizes: np.ndarray | None


def parse(text: str) -> str | dict[str, float]:
  """Reads the text.

  Args:
    text: See the module's docstring.

  Returns:
    One of `KINDS`, or weights by client id.

  Raises:
    ValueError: One line: what is wrong, and what would be right.
  """
  if text in KINDS:
    return text
  given = per_client.read_object('participation', text)
  if not given:
    raise ValueError(
        f'participation: {text!r:.60}; expected {", ".join(KINDS)}, or JSON such'
        ' as {"client id": 2.5}'
    )
  for client_id, weight in given.items():
    is_number = type(weight) in (int, float)
    if not is_number or not 0 < weight <= per_client.LARGEST:
      raise ValueError(
          f'participation: weight of {client_id!r} is {weight!r:.60}; expected a'
          f' number above 0, at most {per_client.LARGEST:g}'
      )
  return {client_id: float(weight) for client_id, weight in given.items()}


def of_clients(text: str, client_data: Any, size: int) -> np.ndarray | None:
  """How likely each client of a data set is to take part.

  Args:
    text: See the module's docstring.
    client_data: The clients. `examples` needs its attribute `sizes`, int64
      [clients], in the order of `client_ids`.
    size: m, the size of the cohort, on average where it varies.

  Returns:
    p, float64 [clients], in the order of `client_ids`; None if all are equal.

  Raises:
    ValueError: If the data have no such client, or do not say how many examples
      clients have.
  """
  given = parse(text)
  if given == 'equal':
    return None
  if isinstance(given, Mapping):
    return probabilities(_listed(given, client_data.client_ids), size)
  is_sized = isinstance(client_data, SizedClients)
  sizes = client_data.sizes if is_sized else None
  if sizes is None:
    raise ValueError(
        'participation: examples, but these data do not say how many examples'
        ' clients have; use equal, or give the weights as JSON'
    )
  return probabilities(sizes, size)


def _listed(weights, client_ids):
  found = np.ones(len(client_ids))
  positions = {client_id: i for i, client_id in enumerate(client_ids)}
  for client_id, weight in weights.items():
    if client_id not in positions:
      raise ValueError(
          f'participation: there is no client {client_id!r}; there are'
          f' {len(client_ids)}, the first is {client_ids[0]!r}'
      )
    found[positions[client_id]] = weight
  return found


def probabilities(weights: np.ndarray, size: int) -> np.ndarray:
  """Returns p_i = min(1, c w_i), whose sum is `size`.

  Args:
    weights: w, [clients], above 0.
    size: m, at most the number of clients.

  Returns:
    p, float64 [clients].
  """
  weights = np.asarray(weights, np.float64)
  certain = np.zeros(len(weights), bool)
  # Cutting one off at 1 raises the others, which may bring them to 1.
  while True:
    left = size - np.count_nonzero(certain)
    rest = np.where(certain, 0.0, weights)
    p = np.where(certain, 1.0, rest * (left / max(rest.sum(), 1e-300)))
    above = (p >= _CERTAIN) & ~certain
    if not above.any():
      return p
    certain |= above
