"""Synthetic speeches of roles with dialects, over TFF's 86 characters."""

from collections.abc import Iterator
from typing import Any

import numpy as np

_PLAYS, _ROLES_PER_PLAY = 8, 15
_CONSONANTS = 'bcdfghklmnprstvw'
_VOWELS = 'aeiou'


def _lexicon(rng: np.random.Generator, size: int) -> list[str]:
  """Distinct words of one to three syllables, short ones first."""
  words = dict.fromkeys(['a', 'i', 'o'])
  while len(words) < size:
    syllables = 1 + int(3 * len(words) / size + rng.random() * 0.6)
    word = ''.join(
        rng.choice(list(_CONSONANTS)) + rng.choice(list(_VOWELS))
        for _ in range(min(syllables, 3))
    )
    if rng.random() < 0.4:
      word += rng.choice(list('nrst'))
    words[word] = None
  return list(words)


def _speech(
    words: list[str],
    follow: np.ndarray,
    habit: dict[str, Any],
    rng: np.random.Generator,
) -> str:
  """A few sentences, in lines, as the role speaks."""
  sentences = []
  for _ in range(1 + rng.poisson(habit['sentences'])):
    spoken = []
    word = None
    for _ in range(3 + rng.poisson(4)):
      # Half of the words follow from the one before, the rest from the dialect.
      if word is not None and rng.random() < 0.5:
        word = int(follow[word, rng.integers(follow.shape[1])])
      else:
        word = int(np.searchsorted(habit['words'], rng.random()))
      text = words[word]
      if rng.random() < habit['drawl']:
        text += habit['ending']
      spoken.append(text)
      if rng.random() < 0.08:
        spoken[-1] += ','
    spoken[0] = spoken[0][:1].upper() + spoken[0][1:]
    end = habit['marks'][int(rng.integers(len(habit['marks'])))]
    sentences.append(' '.join(spoken) + end)
  return '\n'.join(sentences)


def roles(seed: int) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
  """Yields roles with the feature of the federated Shakespeare.

  All plays share a lexicon with Zipf frequencies and pairs of words that go
  together; a play has favourite words, a role has its own favourites, an ending
  that it hangs on words, its marks at the end of a sentence, and its length.
  The last fifth of a role's speeches, at least one, are the test split.

  Args:
    seed: Seed of everything.

  Yields:
    (split, client id, examples), splits 'train' and 'test'.
  """
  rng = np.random.default_rng(seed)
  words = _lexicon(rng, 300)
  zipf = 1 / (np.arange(len(words)) + 3.0)
  follow = rng.choice(len(words), size=(len(words), 3), p=zipf / zipf.sum())
  for play in range(_PLAYS):
    of_play = zipf * np.exp(rng.normal(0, 0.5, len(words)))
    for role in range(_ROLES_PER_PLAY):
      weights = of_play * np.exp(rng.normal(0, 0.7, len(words)))
      cumulative = np.cumsum(weights / weights.sum())
      cumulative[-1] = 1.0
      habit = dict(
          words=cumulative,
          drawl=rng.beta(0.6, 4.0),
          ending=("'d", 'th', 'st', "'s")[int(rng.integers(4))],
          marks=('.', '.!', '.?', '.;', '!', '.:')[int(rng.integers(6))],
          sentences=rng.uniform(1, 4),
      )
      count = int(np.clip(rng.lognormal(np.log(20), 0.5), 7, 60))
      speeches = [
          dict(snippets=_speech(words, follow, habit, rng))
          for _ in range(count)
      ]
      held = max(1, count // 5)
      name = f'PLAY_{play}_ROLE_{role:02d}'
      yield 'train', name, speeches[:-held]
      yield 'test', name, speeches[-held:]
