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
import dataclasses
import json
import typing
from typing import Any, Protocol

import immutabledict
import numpy as np

from tff_fedopt.processes import per_client

KINDS = ('equal', 'examples', 'listed')

# From here on a client is certain to take part.
_CERTAIN = 1 - 1e-9


@typing.runtime_checkable
class SizedClients(Protocol):
  """Client data that know how many examples each client has.

  Attributes:
    sizes: Int64, in the order of `client_ids`; None if unknown.
  """

  sizes: np.ndarray | None


@dataclasses.dataclass(frozen=True)
class Participation:
  """How likely clients are to take part.

  Attributes:
    kind: One of `KINDS`.
    weights: Weight by client id, in sorted order; only of kind `listed`.
  """

  kind: str = 'equal'
  weights: Mapping[str, float] = immutabledict.immutabledict()

  @classmethod
  def parse(cls, given: 'str | Participation') -> 'Participation':
    """Reads the text.

    Args:
      given: See the module's docstring; what is parsed stays what it is.

    Returns:
      A `Participation`.

    Raises:
      ValueError: One line: what is wrong, and what would be right.
    """
    if isinstance(given, cls):
      return given
    text = given.strip() if isinstance(given, str) else given
    if text in ('equal', 'examples'):
      return cls(text)
    found = per_client.read_object('participation', text)
    if not found:
      raise ValueError(
          f'participation: {given!r:.60}; expected equal, examples, or JSON'
          ' such as {"client id": 2.5}'
      )
    weights = {
        i: per_client.number(f'participation: weight of {i!r}', weight)
        for i, weight in sorted(found.items())
    }
    return cls('listed', immutabledict.immutabledict(weights))

  def __str__(self):
    if self.kind == 'listed':
      return json.dumps(dict(self.weights), ensure_ascii=False)
    return self.kind


def of_clients(
    likely: Participation, client_data: Any, size: int
) -> np.ndarray | None:
  """How likely each client of a data set is to take part.

  Args:
    likely: The rule.
    client_data: The clients. `examples` needs its attribute `sizes`, int64
      [clients], in the order of `client_ids`.
    size: m, the size of the cohort, on average where it varies.

  Returns:
    p, float64 [clients], in the order of `client_ids`; None if all are equal.

  Raises:
    ValueError: If the data have no such client, or do not say how many examples
      clients have.
  """
  if likely.kind == 'equal':
    return None
  if likely.kind == 'listed':
    return probabilities(_listed(likely.weights, client_data.client_ids), size)
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
