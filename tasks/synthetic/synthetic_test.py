"""Tests of the embedded data: canonical, learnable, heterogeneous."""

import collections
import hashlib
import json
import os
import time

import numpy as np
import pytest
import tensorflow_federated as tff

from tasks import synthetic
from tasks.data import cifar
from tasks.data import counts
from tasks.data import sources


@pytest.fixture(name='data_dir', scope='module')
def _data_dir():
  """All data sets, made now unless they have been."""
  start = time.process_time()
  folders = {
      synthetic.ensure(dataset)
      for dataset in ('cifar10', 'cifar100', 'emnist', 'shakespeare')
  }
  assert folders == {synthetic.ensure('stackoverflow')}
  assert time.process_time() - start < 60
  return synthetic.folder()


def _examples(clients):
  """Arrays of all examples by feature, and the client of each."""
  dataset = clients.create_tf_dataset_from_all_clients(seed=0)
  batches = list(dataset.batch(4096).as_numpy_iterator())
  return {k: np.concatenate([b[k] for b in batches]) for k in batches[0]}


def _linear_accuracy(train, test, classes, rate, epochs=6):
  """Test accuracy of a softmax regression on (features, labels)."""
  (x, y), rng = train, np.random.default_rng(0)
  weights, bias = np.zeros((x.shape[1], classes)), np.zeros(classes)
  for _ in range(epochs):
    for batch in np.array_split(rng.permutation(len(x)), len(x) // 64):
      scores = x[batch] @ weights + bias
      odds = np.exp(scores - scores.max(axis=1, keepdims=True))
      slope = odds / odds.sum(axis=1, keepdims=True)
      slope[np.arange(len(batch)), y[batch]] -= 1
      weights -= rate * x[batch].T @ slope / len(batch)
      bias -= rate * slope.mean(axis=0)
  x, y = test
  return np.mean(np.argmax(x @ weights + bias, axis=1) == y)


def _chance(labels):
  """Accuracy of the most frequent label."""
  return np.bincount(labels).max() / len(labels)


def test_files_are_canonical(data_dir):
  for dataset in sources.DATASETS:
    opened = sources.open_clients(dataset, data_dir)
    assert opened.kind == 'synthetic'
    assert 100 <= opened.counts['train'][0] <= 200
    assert len(opened.provenance['generator']) == 16
    specs = opened['train'].element_type_structure
    real = getattr(tff.simulation.datasets, dataset).get_synthetic()
    assert dict(specs) == dict(real.element_type_structure)


def test_same_seed_same_bytes(data_dir, tmp_path):
  def digest(folder, name):
    with open(os.path.join(folder, name), 'rb') as f:
      return hashlib.sha256(f.read()).hexdigest()

  again = str(tmp_path)
  for dataset, name in (
      ('shakespeare', 'shakespeare.sqlite'),
      ('stackoverflow', 'stackoverflow.sqlite'),
      ('emnist', 'emnist_all.sqlite'),
  ):
    synthetic.ensure(dataset, again)
    assert digest(again, name) == digest(data_dir, name)


def test_place_is_outside_the_repository(monkeypatch):
  monkeypatch.setenv('TFF_FEDOPT_CACHE', '/somewhere')
  assert synthetic.folder().startswith('/somewhere/synthetic-')
  monkeypatch.delenv('TFF_FEDOPT_CACHE')
  monkeypatch.setenv('XDG_CACHE_HOME', '/xdg')
  assert synthetic.folder().startswith('/xdg/tff_fedopt/')
  with pytest.raises(ValueError, match="unknown data set 'x', there are"):
    synthetic.ensure('x')


def test_handwriting(data_dir):
  opened = sources.open_clients('emnist', data_dir)
  parts = []
  for split in ('train', 'test'):
    examples = _examples(opened[split])
    pixels = examples['pixels']
    assert pixels.min() >= 0 and pixels.max() == 1
    assert np.median(pixels) > 0.99  # background 1.0, ink towards 0.0
    parts.append((1 - pixels.reshape(len(pixels), -1), examples['label']))
  train, test = parts
  assert set(train[1]) == set(range(62))
  accuracy = _linear_accuracy(train, test, 62, rate=0.5)
  assert accuracy > 5 * _chance(test[1]), accuracy
  assert accuracy < 0.8  # something is left for a network

  # Writers: ink and slant differ between them far more than sampling explains.
  ink = [
      np.array([
          1 - e['pixels'].mean()
          for e in opened['train']
          .create_tf_dataset_for_client(client)
          .as_numpy_iterator()
      ])
      for client in opened['train'].client_ids[:40]
  ]
  between = np.var([i.mean() for i in ink])
  within = np.mean([i.var() / len(i) for i in ink])
  assert between > 20 * within


def _colours(image):
  """Coarse colours and their squares, each image standardised."""
  image = image.astype(np.float32)
  image -= image.mean(axis=(1, 2, 3), keepdims=True)
  image /= image.std(axis=(1, 2, 3), keepdims=True)
  small = image.reshape(-1, 8, 4, 8, 4, 3).mean(axis=(2, 4))
  small = small.reshape(len(image), -1)
  return np.concatenate([small, small**2], axis=1)


def test_photographs(data_dir):
  opened = sources.open_clients('cifar100', data_dir)
  train, test = (_examples(opened[split]) for split in ('train', 'test'))
  assert np.bincount(train['label']).tolist() == [100] * 100
  np.testing.assert_array_equal(train['coarse_label'], train['label'] // 5)
  x, x_test = _colours(train['image']), _colours(test['image'])
  fine = _linear_accuracy(
      (x, train['label']), (x_test, test['label']), 100, rate=0.03
  )
  assert fine > 0.2, fine  # chance is 0.01
  # The hierarchy: images of sibling classes are nearer than of other classes.
  means = np.array([x[train['label'] == c].mean(axis=0) for c in range(100)])
  distance = np.linalg.norm(means[:, None] - means[None], axis=2)
  sibling = np.arange(100)[:, None] // 5 == np.arange(100)[None] // 5
  apart = distance > 0
  assert distance[sibling & apart].mean() < 0.8 * distance[~sibling].mean()
  # Pachinko allocation: few coarse labels per client.
  kinds = [
      len({
          int(e['coarse_label'])
          for e in opened['train'].create_tf_dataset_for_client(client)
      })
      for client in opened['train'].client_ids[:20]
  ]
  assert np.mean(kinds) < 9


def test_ten_classes(data_dir, tmp_path, monkeypatch):
  monkeypatch.setenv('TFF_FEDOPT_CACHE', str(tmp_path))
  opened = cifar.open_split('cifar10', data_dir, num_clients=100)
  assert opened.kind == 'synthetic'
  assert opened.counts == {'train': (100, 5000), 'test': (10, 1000)}
  train, test = (_examples(opened[split]) for split in ('train', 'test'))
  accuracy = _linear_accuracy(
      (_colours(train['image']), train['label']),
      (_colours(test['image']), test['label']),
      10,
      rate=0.03,
  )
  assert 0.4 < accuracy < 0.95, accuracy  # chance is 0.1


def _follow(tokens, history):
  """Counts of what follows each history."""
  table = collections.defaultdict(collections.Counter)
  for sequence in tokens:
    for i in range(history, len(sequence)):
      table[tuple(sequence[i - history : i])][sequence[i]] += 1
  return table


def _accuracy(table, tokens, history):
  """Share of tokens guessed as the most frequent follower."""
  best = {k: v.most_common(1)[0][0] for k, v in table.items()}
  hits = [
      best.get(tuple(sequence[i - history : i])) == sequence[i]
      for sequence in tokens
      for i in range(history, len(sequence))
  ]
  return np.mean(hits)


def test_speeches(data_dir):
  opened = sources.open_clients('shakespeare', data_dir)
  train, test = (
      [s.decode() for s in _examples(opened[split])['snippets']]
      for split in ('train', 'test')
  )
  from tensorflow_federated.python.simulation.baselines.shakespeare import (
    char_prediction_preprocessing,  # pylint: disable=g-import-not-at-top,line-too-long
  )

  assert set(''.join(train)) < set(char_prediction_preprocessing.CHAR_VOCAB)
  frequent = _accuracy(_follow(train, 0), test, 0)
  informed = _accuracy(_follow(train, 3), test, 3)
  assert frequent < 0.25 and informed > 0.45, (frequent, informed)

  # Dialects: a role's own words are more like its later ones than others'.
  def words(clients, client):
    dataset = clients.create_tf_dataset_for_client(client)
    text = b' '.join(e['snippets'].numpy() for e in dataset)
    return collections.Counter(text.split())

  ids = opened['train'].client_ids[::10]
  seen = [words(opened['train'], i) for i in ids]
  later = [words(opened['test'], i) for i in ids]
  cosine = lambda a, b: sum(a[w] * b[w] for w in a) / np.sqrt(
      sum(v * v for v in a.values()) * sum(v * v for v in b.values())
  )
  own = np.mean([cosine(a, b) for a, b in zip(seen, later)])
  others = np.mean([cosine(a, b) for a in seen for b in later if a is not b])
  assert own > others + 0.05, (own, others)


def _bags(examples, words, tags):
  """Relative word frequencies and tags, as in tag prediction."""
  word_of = {w: i for i, w in enumerate(words)}
  tag_of = {t: i for i, t in enumerate(tags)}
  n = len(examples['tokens'])
  x, y = np.zeros((n, len(words)), 'f4'), np.zeros((n, len(tags)), 'f4')
  for i in range(n):
    text = examples['tokens'][i] + b' ' + examples['title'][i]
    text = text.decode().split()
    for word in text:
      if word in word_of:
        x[i, word_of[word]] += 1 / len(text)
    for tag in examples['tags'][i].decode().split('|'):
      if tag in tag_of:
        y[i, tag_of[tag]] = 1
  return x, y


def _recall_at_5(scores, y):
  top = np.argsort(-scores, axis=1)[:, :5]
  return np.take_along_axis(y, top, axis=1).sum() / y.sum()


def test_posts(data_dir):
  opened = sources.open_clients('stackoverflow', data_dir)
  assert set(opened['test'].client_ids) < set(opened['train'].client_ids)
  assert not set(opened['heldout'].client_ids) & set(opened['train'].client_ids)
  train, test = (_examples(opened[split]) for split in ('train', 'test'))
  sentences = [[t.decode().split() for t in d['tokens']] for d in (train, test)]

  # Zipf: half of the text is a few words, half of the words are rare.
  used = collections.Counter(w for s in sentences[0] for w in s)
  frequent = sum(n for _, n in used.most_common(60))
  assert frequent > 0.5 * sum(used.values())
  assert np.median(list(used.values())) < 10
  words = counts.words(data_dir, 1000)
  with open(
      os.path.join(data_dir, 'datasets', 'stackoverflow.word_count'),
      encoding='utf-8',
  ) as f:
    assert f.readline().split()[0] == words[0]
  tags = counts.tags(data_dir, 100)

  # Next word: the last word says much more than frequencies do.
  blind = _accuracy(_follow(sentences[0], 0), sentences[1], 0)
  informed = _accuracy(_follow(sentences[0], 1), sentences[1], 1)
  assert informed > 2.5 * blind, (informed, blind)

  # Tags: a linear model with Adagrad against the most frequent tags.
  x, y = _bags(train, words, tags)
  x_test, y_test = _bags(test, words, tags)
  weights = np.zeros((len(words), len(tags)), 'f4')
  squares, rng = np.zeros_like(weights), np.random.default_rng(0)
  for _ in range(4):
    for batch in np.array_split(rng.permutation(len(x)), len(x) // 100):
      slope = 1 / (1 + np.exp(-x[batch] @ weights)) - y[batch]
      slope = x[batch].T @ slope
      squares += slope**2
      weights -= slope / (np.sqrt(squares) + 1e-6)
  prior = _recall_at_5(np.tile(y.sum(axis=0), (len(y_test), 1)), y_test)
  learnt = _recall_at_5(x_test @ weights, y_test)
  assert learnt > 2 * prior, (learnt, prior)

  # Topical users: a user's tags are few of all.
  ids = opened['train'].client_ids[:30]
  kinds = []
  for client in ids:
    of_user = opened['train'].create_tf_dataset_for_client(client)
    kinds.append(
        len({t for e in of_user for t in e['tags'].numpy().split(b'|')})
    )
  with open(
      os.path.join(data_dir, 'datasets', 'stackoverflow.tag_count'),
      encoding='utf-8',
  ) as f:
    every = len(json.load(f))
  assert np.mean(kinds) < 0.3 * every
