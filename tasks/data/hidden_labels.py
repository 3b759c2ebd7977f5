"""Semi-supervised clients: some know all their labels, some few, some none.

Source: FedVRA's semi-supervised image classification; which clients know how
many labels could not be found, so thirds of them know 100 %, 10 % and none.
"""

from collections.abc import Callable, Mapping
import hashlib
from typing import Any

import numpy as np

from tasks import source
from tasks import task as task_lib

# What stands in place of a label that is not known.
UNKNOWN = -1
SHARES = (1.0, 0.1, 0.0)

OPTIONS = dict(
    labels=task_lib.Option(
        'all',
        'Labels that training clients know: all, or mixed: a third of the'
        ' clients knows all, a third a tenth, a third none of its own.',
        choices=('all', 'mixed'),
        source=source.SUPERVISED,
    ),
    unlabelled=task_lib.Option(
        'ignored',
        'What examples without a label are for: ignored, argmax (the label that'
        " the server's model gives them), or block (label probabilities, the"
        ' second block of variables; see temperature).',
        choices=('ignored', 'argmax', 'block'),
        source=source.SUPERVISED,
    ),
    temperature=task_lib.Option(
        1.0,
        'τ of the term τ/2 ‖y‖² of label probabilities y.',
        minimum=1e-6,
        source=source.SUPERVISED,
    ),
    unlabelled_weight=task_lib.Option(
        1.0,
        'ν, what an example without a label counts beside one with its label.',
        minimum=0.0,
        source=source.SUPERVISED,
    ),
)


def of(request: task_lib.Request) -> Callable[..., Any] | None:
  """Returns `hide` if the request asks for it, else None.

  Args:
    request: What a task is asked for.

  Raises:
    ValueError: If it says what to do without labels, and there are none such.
  """
  if request.options.get('labels') == 'mixed':
    return hide
  for name in ('unlabelled', 'temperature', 'unlabelled_weight'):
    value = request.options.get(name, OPTIONS[name].default)
    if value != OPTIONS[name].default:
      raise ValueError(
          f'{name}: {value}, but all labels are known; expected labels=mixed'
          ' with it'
      )
  return None


def share(client_id: str) -> float:
  """The share of labels that a client knows, one of `SHARES`."""
  return SHARES[_number(client_id) % len(SHARES)]


def hide(
    client_id: str, examples: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Replaces what a client does not know of `label` by `UNKNOWN`.

  Args:
    client_id: The client; it decides which labels.
    examples: Arrays by name, first axis examples in stored order.

  Returns:
    The arrays; a client that knows a share knows at least one label.
  """
  rng = np.random.default_rng(_number(client_id))
  labels = np.asarray(examples['label']).astype(np.int32)
  known = int(np.ceil(share(client_id) * len(labels)))
  hidden = rng.permutation(len(labels))[known:]
  labels[hidden] = UNKNOWN
  return dict(examples, label=labels)


def _number(client_id):
  digest = hashlib.sha256(client_id.encode('utf-8')).digest()
  return int.from_bytes(digest[:8], 'big')
