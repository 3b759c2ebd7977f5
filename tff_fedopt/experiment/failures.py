"""What a user is told when clients' work fails: round, client, why, remedy."""

import re
from typing import Any

# What is left around the reason in a one-line error of the runtime.
_AROUND = re.compile(
    r'^the computation failed: |\[\[.*?\]\]|^\d+ root error.*?: '
    r'|\(\d+\) [A-Za-z_ ]+:\s+'
)
_LONGEST = 300

# A pattern in the error, and the remedy.
_REMEDIES = (
    (
        r'py_?func|EagerPyFunc',
        'Python code (Dataset.from_generator, tf.py_function) does not run in a'
        ' worker: make the data set of arrays, as'
        ' tf.data.Dataset.from_tensor_slices does',
    ),
    (
        r'OOM|out of memory|exhausted',
        'lower max_concurrent_clients or the batch size',
    ),
    (
        r'outside the valid range|out of range|is not in \[',
        "its labels or ids do not fit the model's size: correct them, or give"
        ' the model more outputs',
    ),
    (
        r'shape|dimension|size-incompatible',
        "the shapes of its batches do not fit the model: correct the client's"
        ' data set or input_spec',
    ),
)
_OTHERWISE = "look at the batches of this client's data set"


class ClientWorkError(RuntimeError):
  """A client's work failed; one line: round, client, reason, remedy."""


def sentence(error: BaseException) -> str:
  """Returns the first sentence of the reason of a failed computation."""
  text = ' '.join(str(error).split())
  text = _AROUND.sub('', text).strip()
  # A full stop inside a number or a name has no blank behind it.
  first = re.split(r'(?<=[^.])\.\s+(?=[A-Z])|\s{2,}', text, maxsplit=1)[0]
  first = first.strip().rstrip('.')
  return first if len(first) <= _LONGEST else first[: _LONGEST - 1] + '…'


def translate(
    error: RuntimeError,
    round_num: int,
    names: list[str],
    inputs: list[Any],
    process,
    state,
) -> ClientWorkError:
  """Finds out whose work failed, and says it in one line.

  The runtime does not know: parts of the cohort are run once more, halved until
  one client is left.

  Args:
    error: What `process.next` raised.
    round_num: The round.
    names: The cohort's names.
    inputs: What was given to the process for each of them.
    process: The process.
    state: The state it was given.

  Returns:
    The error to raise.
  """
  while len(names) > 1:
    half = len(names) // 2
    for part in (slice(half), slice(half, None)):
      again = _failure(process, state, inputs[part])
      if again is not None:
        error, names, inputs = again, names[part], inputs[part]
        break
    else:
      break  # Only together, or not again.
  who = f'client {names[0]!r}' if len(names) == 1 else (
      f'one of {len(names)} clients, the first is {names[0]!r}'
  )
  text = str(error)
  remedy = next(
      (r for pattern, r in _REMEDIES if re.search(pattern, text, re.I)),
      _OTHERWISE,
  )
  return ClientWorkError(
      f'round {round_num}, {who}: {sentence(error)}; {remedy}'
  )


def _failure(process, state, inputs):
  """How the work of some clients fails, or None if it does not."""
  try:
    process.next(state, inputs)
  except RuntimeError as e:
    return e
  return None
