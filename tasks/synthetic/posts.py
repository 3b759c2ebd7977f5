"""Synthetic questions and answers of topical users, like Stack Overflow's."""

import collections
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

_USERS = {'train': 160, 'heldout': 16, 'test': 80}
_TOPICS, _TAGS_PER_TOPIC, _KEYWORDS = 12, 12, 4
_SYLLABLES = [
    c + v for c in 'bcdfghjklmnprstvwz' for v in ('a', 'e', 'i', 'o', 'u', 'ai')
]
# Heads of sentences, so that something can be predicted from the last word.
_OPENINGS = (
    'i am trying to', 'how do i', 'you can use the', 'is there a way to',
    'i have a', 'this is the', 'you need to', 'there is a', 'it looks like the',
    'thanks for the', 'what is the', 'i would like to',
)
_LINKS = (
    'in the', 'of the', 'with a', 'for the', 'to the', 'and the', 'from a',
    'on the', 'is not', 'but the',
)
_CLOSINGS = ('.', '?', ':', '. thanks .', '!')


def _words(rng: np.random.Generator, count: int, taken: set[str]) -> list[str]:
  """New pseudo-words; adds them to `taken`."""
  made: list[str] = []
  while len(made) < count:
    word = ''.join(rng.choice(_SYLLABLES, size=rng.integers(2, 5)))
    if word not in taken:
      taken.add(word)
      made.append(word)
  return made


def _zipf(count: int, exponent: float = 1.0) -> np.ndarray:
  """Cumulative Zipf probabilities."""
  weights = 1 / (np.arange(count) + 1.0) ** exponent
  return np.cumsum(weights / weights.sum())


class _Language:
  """Words and tags that all users share.

  Attributes:
    common: Words of every topic, Zipf distributed.
    topical: Per topic, its words.
    tags: Per topic, its tags.
    keywords: Per topic and tag, the rare words that go with the tag.
    rare: A long tail of words without meaning.
    partner: Word -> the word that mostly follows it.
  """

  def __init__(self, rng: np.random.Generator):
    taken: set[str] = set()
    self.common = _words(rng, 300, taken)
    self.topical = [_words(rng, 60, taken) for _ in range(_TOPICS)]
    self.tags = [_words(rng, _TAGS_PER_TOPIC, taken) for _ in range(_TOPICS)]
    self.keywords = [
        [_words(rng, _KEYWORDS, taken) for _ in range(_TAGS_PER_TOPIC)]
        for _ in range(_TOPICS)
    ]
    self.rare = _words(rng, 2500, taken)
    self.partner = {
        w: self.common[int(np.searchsorted(_zipf(300), rng.random()))]
        for topic in [self.common] + self.topical
        for w in topic
    }
    self.cumulative = {
        n: _zipf(n) for n in (300, 60, 2500, _TAGS_PER_TOPIC)
    }

  def pick(self, words: list[str], rng: np.random.Generator) -> str:
    """A word by Zipf's law."""
    at = np.searchsorted(self.cumulative[len(words)], rng.random())
    return words[min(int(at), len(words) - 1)]


def _phrase(
    language: _Language, topic: int, keywords: list[str], length: int, rng
) -> list[str]:
  """Content words of a sentence: some topical, some keywords of its tags."""
  out: list[str] = []
  while len(out) < length:
    kind = rng.random()
    if kind < 0.30 and keywords:
      out.append(keywords[int(rng.integers(len(keywords)))])
    elif kind < 0.60:
      out.append(language.pick(language.topical[topic], rng))
    elif kind < 0.92:
      out.append(language.pick(language.common, rng))
    else:
      out.append(language.pick(language.rare, rng))
    if out[-1] in language.partner and rng.random() < 0.5:
      out.append(language.partner[out[-1]])
    if rng.random() < 0.35:
      out.extend(_LINKS[int(len(_LINKS) * rng.random() ** 2)].split())
  return out


def _post(
    language: _Language, topic: int, year: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
  """The sentences of one question or answer."""
  drawn = {
      int(np.searchsorted(language.cumulative[_TAGS_PER_TOPIC], rng.random()))
      for _ in range(1 + rng.poisson(1.3))
  }
  chosen = sorted(min(tag, _TAGS_PER_TOPIC - 1) for tag in drawn)
  tags = [language.tags[topic][tag] for tag in chosen]
  keywords = [k for tag in chosen for k in language.keywords[topic][tag]]
  shared = dict(
      creation_date=(
          f'{year}-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}'
          f' {rng.integers(24):02d}:{rng.integers(60):02d}:00 UTC'
      ),
      score=int(rng.poisson(2)) - 1,
      tags='|'.join(tags),
      title=' '.join(_phrase(language, topic, keywords, 5, rng)),
      type='question' if rng.random() < 0.4 else 'answer',
  )
  sentences = []
  for _ in range(1 + rng.poisson(3)):
    opening = _OPENINGS[int(len(_OPENINGS) * rng.random() ** 1.5)].split()
    body = _phrase(language, topic, keywords, 2 + int(rng.poisson(5)), rng)
    closing = _CLOSINGS[int(len(_CLOSINGS) * rng.random() ** 2)].split()
    sentences.append(dict(shared, tokens=' '.join(opening + body + closing)))
  return sentences


def users(seed: int) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
  """Yields users with the features of the federated Stack Overflow.

  Users write of few topics (Dirichlet 0.2 over 12, topics themselves unequally
  popular) and differ in how much they write. A tag shows in a text only through
  its own rare keywords, so the useful features are sparse and heavy-tailed.
  Test users are training users at a later date, held-out users are others.

  Args:
    seed: Seed of everything.

  Yields:
    (split, client id, examples), splits 'train', 'heldout' and 'test'.
  """
  rng = np.random.default_rng(seed)
  language = _Language(rng)
  popular = 1 / (np.arange(_TOPICS) + 2.0)
  names = [f'{i:08d}' for i in range(_USERS['train'] + _USERS['heldout'])]
  interests = rng.dirichlet(
      0.2 * _TOPICS * popular / popular.sum(), size=len(names)
  )
  train, heldout = np.split(np.arange(len(names)), [_USERS['train']])
  for split, members, year in (
      ('train', train, 2015),
      ('heldout', heldout, 2016),
      ('test', train[: _USERS['test']], 2018),
  ):
    for user in members:
      median = 45 if split == 'train' else 20
      wanted = int(np.clip(rng.lognormal(np.log(median), 0.7), 8, 300))
      sentences: list[dict[str, Any]] = []
      while len(sentences) < wanted:
        topic = int(rng.choice(_TOPICS, p=interests[user]))
        sentences.extend(_post(language, topic, year, rng))
      yield split, names[user], sentences[:wanted]


def counts(
    clients: Iterable[tuple[str, str, list[dict[str, Any]]]],
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
  """Returns (words, tags) with the training users of each, most used first."""
  words: collections.Counter[str] = collections.Counter()
  tags: collections.Counter[str] = collections.Counter()
  for split, _, examples in clients:
    if split == 'train':
      words.update({w for e in examples for w in e['tokens'].split()})
      tags.update({t for e in examples for t in e['tags'].split('|')})
  order = lambda counter: sorted(counter.items(), key=lambda i: (-i[1], i[0]))
  return order(words), order(tags)
