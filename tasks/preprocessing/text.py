"""From characters, words and tags to rows of ids, in NumPy.

Id 0 is padding and always at the end of a row.
"""

from collections.abc import Iterable, Sequence

import numpy as np

# Order and content decide the ids; they are those of TFF's Shakespeare.
CHARACTERS = (
    'dhlptx@DHLPTX $(,048cgkoswCGKOSW[_#\'/37;?bfjnrvzBFJNRVZ"&*.26:\n'
    'aeimquyAEIMQUY]!%)-159\r'
)
PAD = 0


def special_ids(vocabulary: int) -> tuple[int, int, int]:
  """Returns (out-of-vocabulary, beginning, end) after ids 1...vocabulary."""
  return vocabulary + 1, vocabulary + 2, vocabulary + 3


_OOV, _BOS, _EOS = special_ids(len(CHARACTERS))
_ID_OF_BYTE = np.full(256, _OOV, np.int32)
_ID_OF_BYTE[[ord(c) for c in CHARACTERS]] = np.arange(1, len(CHARACTERS) + 1)


def character_rows(snippet: bytes, length: int) -> np.ndarray:
  """Returns a snippet as rows of `length` + 1 characters.

    beginning, bytes, end, padding up to a multiple of length + 1

  Only the first row starts with the beginning.

  Args:
    snippet: Any bytes.
    length: Characters that a row predicts.

  Returns:
    int32 [rows, length + 1].
  """
  ids = _ID_OF_BYTE[np.frombuffer(snippet, np.uint8)]
  size = len(ids) + 2
  rows = np.zeros([-(-size // (length + 1)), length + 1], np.int32)
  flat = rows.reshape(-1)
  flat[0], flat[1 : size - 1], flat[size - 1] = _BOS, ids, _EOS
  return rows


def ragged(rows: Sequence[np.ndarray]) -> np.ndarray:
  """Returns arrays of different lengths as the elements of one array."""
  array = np.empty(len(rows), object)
  for i, row in enumerate(rows):
    array[i] = row
  return array


def padded(lists: Iterable[Sequence[int]]) -> np.ndarray:
  """Returns lists of ids as int32 [lists, longest or 1], 0 at the end."""
  lists = list(lists)
  lengths = np.array([len(ids) for ids in lists], np.int64)
  rows = np.zeros([len(lists), max(1, lengths.max(initial=0))], np.int32)
  filled = np.arange(rows.shape[1]) < lengths[:, np.newaxis]
  if filled.any():
    rows[filled] = np.concatenate([np.asarray(ids) for ids in lists])
  return rows


class Vocabulary:
  """Ids 1...n of words, by bytes."""

  def __init__(self, words: Sequence[str]):
    """Numbers the words in their order.

    Args:
      words: n distinct words.
    """
    self._ids = {word.encode(): i for i, word in enumerate(words, start=1)}
    self.size = len(words)

  def sentences(self, tokens: Iterable[bytes], length: int) -> np.ndarray:
    """Returns sentences for predicting the next word.

      beginning, first `length` words, end if they are fewer, padding

    Args:
      tokens: Words separated by single spaces.
      length: Words that a row predicts.

    Returns:
      int32 [sentences, length + 1].
    """
    oov, bos, eos = special_ids(self.size)
    get = self._ids.get
    rows = []
    for sentence in tokens:
      ids = [get(word, oov) for word in sentence.split(b' ')[:length]]
      if len(ids) < length:
        ids.append(eos)
      rows.append([bos, *ids])
    table = padded(rows)
    return np.pad(table, [(0, 0), (0, length + 1 - table.shape[1])])

  def bags(self, texts: Iterable[bytes]) -> list[list[int]]:
    """Returns the words of every text, unknown ones as out-of-vocabulary.

    Args:
      texts: Words separated by white space.

    Returns:
      Ids in the order of the text, with repetitions; a word that is not known
      counts, so it has the id `size` + 1.
    """
    get, (oov, _, _) = self._ids.get, special_ids(self.size)
    return [[get(word, oov) for word in text.split()] for text in texts]

  def labels(self, tags: Iterable[bytes]) -> list[list[int]]:
    """Returns the known tags of every example; unknown ones drop out.

    Args:
      tags: Tags separated by `|`.
    """
    ids = self._ids
    return [[ids[tag] for tag in row.split(b'|') if tag in ids] for row in tags]
