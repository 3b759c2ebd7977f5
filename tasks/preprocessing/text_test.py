"""Ids against TFF's preprocessing of the same examples."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.simulation.baselines.shakespeare import (
  char_prediction_preprocessing,
)
from tensorflow_federated.python.simulation.baselines.stackoverflow import (
  tag_prediction_preprocessing,
)
from tensorflow_federated.python.simulation.baselines.stackoverflow import (
  word_prediction_preprocessing,
)

from tasks import shakespeare
from tasks import stackoverflow_tag
from tasks import stackoverflow_word
from tasks.models import bag_of_words
from tasks.preprocessing import text

_WORDS = ['the', 'cat', 'sat', 'on', 'a', 'mat', '.']
_TAGS = ['python', 'c++', 'list']


def _spec(batch_size):
  return tff.simulation.baselines.ClientSpec(
      num_epochs=1, batch_size=batch_size, shuffle_buffer_size=1
  )


def _only(dataset):
  (batch,) = dataset
  return [tensor.numpy() for tensor in batch]


@pytest.mark.parametrize('length', [80, 5])
def test_characters_equal_tff(length):
  snippets = [
      b'To be, or not to be?\n',
      b'x' * (length - 1),  # Fills a row to the last place.
      b'y' * length,  # The end is alone in a second row.
      b'caf\xc3\xa9 {~} ' * 20,  # Bytes that are not in the vocabulary.
      b'',
  ]
  preprocess = char_prediction_preprocessing.create_preprocess_fn(
      _spec(1000), sequence_length=length
  )
  x, y = _only(
      preprocess(tf.data.Dataset.from_tensor_slices(dict(snippets=snippets)))
  )
  rows = text.ragged(
      [text.character_rows(s, length) for s in snippets]
  )
  ours = shakespeare.prepare(dict(rows=rows))
  np.testing.assert_array_equal(ours[0], x)
  np.testing.assert_array_equal(ours[1], y)


def test_special_characters():
  assert len(text.CHARACTERS) == 86
  assert text.special_ids(86) == (87, 88, 89)
  (row,) = text.character_rows(b'd~', 6)
  assert row.tolist() == [88, 1, 87, 89, 0, 0, 0]


def test_words_equal_tff():
  sentences = [
      b'the cat sat on a mat .',
      b'dog the dog',
      b' '.join([b'cat'] * 19),  # One short of the limit: the end is added.
      b' '.join([b'cat'] * 20),  # At the limit: no end.
      b' '.join([b'mat'] * 30),
      b'two  spaces',
  ]
  preprocess = word_prediction_preprocessing.create_preprocess_fn(
      _spec(100), _WORDS
  )
  x, y = _only(
      preprocess(tf.data.Dataset.from_tensor_slices(dict(tokens=sentences)))
  )
  rows = text.Vocabulary(_WORDS).sentences(sentences, 20)
  ours = stackoverflow_word.prepare(dict(rows=rows))
  np.testing.assert_array_equal(ours[0], x)
  np.testing.assert_array_equal(ours[1], y)
  ends = (ours[1] == len(_WORDS) + 3).sum(axis=1)
  assert ends.tolist() == [1, 1, 1, 0, 0, 1]


def _official_frequencies(sentence):
  """The mean over all words of one-hots of width V + 1, without the last."""
  known = {word: i for i, word in enumerate(_WORDS)}
  one_hot = np.eye(len(_WORDS) + 1)
  rows = [one_hot[known.get(w, len(_WORDS))] for w in sentence.split()]
  return np.mean(rows, axis=0)[:-1] if rows else np.zeros(len(_WORDS))


def _frequencies(ids):
  """What the model makes of a row of ids: its output with a unit kernel."""
  network = bag_of_words.BagOfWordsRegression(len(_WORDS), len(_WORDS), 0)
  kernel, _ = network.variables.trainable
  kernel.assign(np.eye(len(_WORDS)))
  return network(tf.constant(ids), None).numpy()


def test_unknown_words_count_in_the_divisor():
  bags = text.Vocabulary(_WORDS).bags([b'the dog sat the', b'dog dog', b''])
  assert bags == [[1, 8, 3, 1], [8, 8], []]
  # By hand: of 4 words 2 are "the", 1 is "sat", 1 is unknown.
  expected = np.zeros([3, 7])
  expected[0, [0, 2]] = 0.5, 0.25
  np.testing.assert_allclose(_frequencies(text.padded(bags)), expected)


def test_tags_equal_the_published_code():
  examples = dict(
      tokens=[b'the the dog cat', b'mat', b'dog dog', b' a  cat '],
      title=[b'a mat', b'', b'how', b'on a mat .'],
      tags=[b'python|java', b'c++|list|python', b'java', b''],
  )
  preprocess = tag_prediction_preprocessing.create_preprocess_fn(
      _spec(10), _WORDS, _TAGS
  )
  later, multi_hot = _only(
      preprocess(tf.data.Dataset.from_tensor_slices(examples))
  )
  texts = [b' '.join(p) for p in zip(examples['tokens'], examples['title'])]
  x, y = stackoverflow_tag.prepare(
      dict(
          words=text.Vocabulary(_WORDS).bags(texts),
          tags=text.Vocabulary(_TAGS).labels(examples['tags']),
      )
  )
  truth = np.zeros_like(multi_hot)
  for row in range(4):
    truth[row, y[row][y[row] > 0] - 1] = 1
  np.testing.assert_array_equal(truth, multi_hot)
  frequencies = _frequencies(x)
  np.testing.assert_allclose(
      frequencies, [_official_frequencies(t.decode()) for t in texts], atol=1e-6
  )
  # Later versions divide by the known words alone.
  known = [all(w.decode() in _WORDS for w in t.split()) for t in texts]
  assert known == [False, True, False, True]
  np.testing.assert_allclose(frequencies[known], later[known], atol=1e-6)
  assert np.abs(frequencies[0] - later[0]).max() > 0.05


def test_padding_is_at_the_end_and_at_least_one_column_wide():
  np.testing.assert_array_equal(
      text.padded([[3], [], [1, 2]]), [[3, 0], [0, 0], [1, 2]]
  )
  assert text.padded([[], []]).shape == (2, 1)
  assert text.padded([]).shape == (0, 1)
