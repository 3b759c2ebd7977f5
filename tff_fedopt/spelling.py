"""Which known name somebody may have meant."""

from collections.abc import Iterable
import difflib

# How people shorten parts of names.
_SHORT = {
    'batch': 'batch_size',
    'bs': 'batch_size',
    'cohort': 'cohort_size',
    'epochs': 'local_epochs',
    'lr': 'learning_rate',
    'wd': 'weight_decay',
}


def near(name: str, known: Iterable[str], prefix: str = '') -> str:
  """Asks whether a known name was meant.

  Args:
    name: What was given.
    known: What there is.
    prefix: What stands before a name.

  Returns:
    `did you mean client_learning_rate?`, or '' if no name is near.
  """
  known = sorted(known)
  whole = '_'.join(_SHORT.get(part, part) for part in str(name).split('_'))
  found = [
      other for other in known if ('_' + other).endswith('_' + whole)
  ] or difflib.get_close_matches(str(name), known, n=2, cutoff=0.7)
  words = ' or '.join(prefix + other for other in found[:2])
  return words and f'did you mean {words}?'
