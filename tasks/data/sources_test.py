"""Tests of checking, opening and downloading data files."""

import dataclasses
import io
import lzma
import os
import pathlib
import sqlite3
import urllib.request

import psutil
import pytest

from tasks.data import client_data
from tasks.data import counts
from tasks.data import download
from tasks.data import sources
from tasks.data import sqlite_writer
from tff_fedopt.testing import real_data


def _rows(num_clients=3, num_examples=40):
  text = sqlite_writer.serialized_example(snippets='to be ' * 20)
  for split in ('train', 'test'):
    for client in range(num_clients):
      yield split, f'ROLE_{client}', [text] * num_examples


@pytest.fixture(name='data_dir')
def _data_dir(tmp_path):
  sqlite_writer.write_database(str(tmp_path / 'shakespeare.sqlite'), _rows())
  return str(tmp_path)


def _path(data_dir):
  return os.path.join(data_dir, 'shakespeare.sqlite')


def _refused(data_dir, what):
  """The message names the file, what is wrong, and how to repair it."""
  with pytest.raises(sources.DataError, match=what) as error:
    sources.open_clients('shakespeare', data_dir)
  message = str(error.value)
  assert _path(data_dir) in message and '\n' not in message
  assert 'download.sh shakespeare --data_dir' in message
  return message


def test_opens_through_the_loader(data_dir):
  opened = sources.open_clients('shakespeare', data_dir)
  assert opened.kind == 'subset'
  assert opened.counts == {'train': (3, 120), 'test': (3, 120)}
  assert opened['train'].client_ids == ['ROLE_0', 'ROLE_1', 'ROLE_2']
  assert opened.sizes('test').tolist() == [40, 40, 40]
  first = next(iter(opened['train'].create_tf_dataset_for_client('ROLE_1')))
  assert first['snippets'].numpy().startswith(b'to be')


def test_kind_of_data(data_dir, monkeypatch):
  known = sources.DATASETS['shakespeare']
  full = dataclasses.replace(
      known, published=dict(train=(3, 120), test=(3, 120))
  )
  monkeypatch.setitem(sources.DATASETS, 'shakespeare', full)
  assert sources.find('shakespeare', data_dir).kind == 'canonical'
  with sqlite3.connect(_path(data_dir)) as db:
    db.execute("INSERT INTO provenance VALUES ('kind', 'synthetic')")
  assert sources.find('shakespeare', data_dir).kind == 'synthetic'


def test_canonical_is_what_counts_say_not_the_file_itself(data_dir):
  with sqlite3.connect(_path(data_dir)) as db:
    db.execute("DELETE FROM provenance WHERE name = 'kind'")
    db.execute("INSERT INTO provenance VALUES ('kind', 'canonical')")
  assert sources.find('shakespeare', data_dir).kind == 'subset'


def test_published_counts():
  published = {name: d.published for name, d in sources.DATASETS.items()}
  assert published == {
      'cifar100': dict(train=(500, 50000), test=(100, 10000)),
      'emnist': dict(train=(3400, 671585), test=(3400, 77483)),
      'shakespeare': dict(train=(715, 16068), test=(715, 2356)),
      'stackoverflow': dict(
          train=(342477, 135818730),
          heldout=(38758, 16491230),
          test=(204088, 16586035),
      ),
  }


def test_missing_file(tmp_path):
  message = _refused(str(tmp_path), 'no such file')
  assert 'about 10 MB' in message


@pytest.mark.parametrize('share', [0.0, 0.002, 0.3, 0.999])
def test_file_cut_short(data_dir, share):
  size = os.path.getsize(_path(data_dir))
  os.truncate(_path(data_dir), int(share * size))
  _refused(data_dir, ': cut short' if share > 0.001 else 'not an SQLite file')


def test_file_of_another_type(data_dir):
  with open(_path(data_dir), 'wb') as f:
    f.write(b'<html>quota exceeded</html>' * 100)
  _refused(data_dir, 'not an SQLite file')


def test_last_pages_lost(data_dir):
  """A file preallocated in full whose end never came."""
  size = os.path.getsize(_path(data_dir))
  with open(_path(data_dir), 'r+b') as f:
    f.seek(4096)
    f.write(b'\0' * (size - 4096))
  _refused(data_dir, 'damaged')


@pytest.mark.parametrize(
    'statement, what',
    [
        ('DROP TABLE client_metadata', 'table client_metadata lacks'),
        (
            'ALTER TABLE examples RENAME serialized_example_proto TO x',
            'table examples lacks serialized_example_proto',
        ),
        (
            "DELETE FROM client_metadata WHERE split_name = 'test'",
            'no clients in split test',
        ),
        (
            "DELETE FROM examples WHERE rowid > 200",
            'has 200 of the 240 examples',
        ),
        (
            "DELETE FROM examples WHERE rowid < 3",
            "client 'ROLE_0' of split 'train' has 38 examples where its"
            ' metadata says 40',
        ),
        (
            "UPDATE examples SET serialized_example_proto = x'0a00'",
            r'lack snippets \(bytes_list\)',
        ),
        (
            "UPDATE examples SET serialized_example_proto = x'ffff'",
            'lack the form of tf.train.Example',
        ),
    ],
)
def test_damage(data_dir, statement, what):
  with sqlite3.connect(_path(data_dir)) as db:
    db.execute(statement)
  _refused(data_dir, what)


def test_unknown_name():
  with pytest.raises(ValueError, match="unknown data set 'mnist', there are"):
    sources.find('mnist')


def _serve(monkeypatch, content):
  """Stands in for the server behind the loader's own download code."""

  def urlopen(origin):
    assert origin.endswith('/shakespeare.sqlite.lzma')
    stream = io.BytesIO(content)
    stream.headers = {'content-length': str(len(content))}
    return stream

  monkeypatch.setattr(urllib.request, 'urlopen', urlopen)


def test_download(data_dir, tmp_path, monkeypatch):
  with open(_path(data_dir), 'rb') as f:
    whole = f.read()
  compressed = lzma.compress(whole, format=lzma.FORMAT_ALONE)
  target = str(tmp_path / 'fetched')
  # An interrupted transfer ends like a finished one, for the loader.
  _serve(monkeypatch, compressed[: len(compressed) // 2])
  with pytest.raises(sources.DataError, match='could not download shakespear'):
    download.download('shakespeare', target)
  assert [n for n in os.listdir(target) if not n.endswith('.lock')] == []

  _serve(monkeypatch, compressed)
  assert download.download('shakespeare', target) == _path(target)
  with open(_path(target), 'rb') as f:
    assert f.read() == whole
  # A file that is there is not fetched again.
  _serve(monkeypatch, b'')
  assert download.download('shakespeare', target) == _path(target)


def _bytes_read():
  """All that this process has ever read from files."""
  return int(pathlib.Path('/proc/self/io').read_text().split()[1])


def test_opens_300_000_clients_by_reading_the_file_once(tmp_path):
  """Stack Overflow's size, without a second list of the ids."""
  path = str(tmp_path / 'stackoverflow.sqlite')
  sqlite_writer.write_database(path, [])
  example = sqlite_writer.serialized_example(
      creation_date='', score=0, tags='a|b', title='t', tokens='w', type='q'
  )
  numbers = dict(train=300_000, heldout=30_000, test=150_000)
  with sqlite3.connect(path) as db:
    for split, count in numbers.items():
      ids = [f'{i:08d}' for i in range(count)]
      db.executemany(
          'INSERT INTO examples VALUES (?, ?, ?)',
          ((split, client, example) for client in ids),
      )
      db.executemany(
          'INSERT INTO client_metadata VALUES (?, ?, 1)',
          ((client, split) for client in ids),
      )
  del ids
  before = psutil.Process().memory_info().rss
  read = _bytes_read()
  opened = sources.open_clients('stackoverflow', str(tmp_path))
  clients = client_data.PreparedClients(
      opened['train'],
      lambda e, rng: (e['score'], e['score']),
      batch_size=16,
      max_examples=1000,
      sizes=opened.sizes('train'),
  )
  batch = next(iter(clients.dataset_for_client('00123456', 1)))
  head = client_data.evaluation_batches(
      opened['test'], None, lambda e: (e['score'], e['score']), 16, limit=100
  )
  assert sum(len(batch['y']) for batch in head) == 100
  read = _bytes_read() - read
  grown = psutil.Process().memory_info().rss - before
  assert batch['y'].shape == (1,)
  assert opened.counts['train'] == (300_000, 300_000)
  assert clients.client_ids is opened['train'].client_ids
  assert clients.num_examples('00299999') == 1
  # Any client or split for which all examples are looked at is a file more.
  assert read < 1.5 * os.path.getsize(path), read
  assert grown < 500e6, grown


def test_all_missing_files_are_named(tmp_path):
  folder = tmp_path / 'datasets'
  folder.mkdir()
  with pytest.raises(sources.DataError) as error:
    counts.require(str(tmp_path), counts.WORDS, counts.TAGS)
  paths = [
      tmp_path / 'stackoverflow.sqlite',
      folder / 'stackoverflow.word_count',
      folder / 'stackoverflow.tag_count',
  ]
  message = str(error.value)
  assert message.startswith(', '.join(map(str, paths)) + ': no such files; ')
  for path in paths[:2]:
    path.write_text('')
  counts.require(str(tmp_path), counts.WORDS, counts.TAGS)


@pytest.mark.parametrize('name', ['afile', 'afile/sub'])
def test_a_cache_that_is_no_folder_is_refused(tmp_path, monkeypatch, name):
  (tmp_path / 'afile').write_text('')
  monkeypatch.setenv('TFF_FEDOPT_CACHE', str(tmp_path / name))
  with pytest.raises(sources.DataError, match='afile is not a folder that can'):
    sources.user_cache_dir()
  monkeypatch.setenv('TFF_FEDOPT_CACHE', str(tmp_path / 'new' / 'er'))
  assert sources.user_cache_dir() == str(tmp_path / 'new' / 'er')
  assert not (tmp_path / 'new').exists()


def test_word_and_tag_counts(tmp_path):
  folder = tmp_path / 'datasets'
  folder.mkdir()
  with pytest.raises(sources.DataError, match='word_count: no such file'):
    counts.words(str(tmp_path))
  (folder / 'stackoverflow.word_count').write_text('the 9\nof 7\nodd\n')
  (folder / 'stackoverflow.tag_count').write_text('{"a": 1, "b": 5, "c": 5}')
  assert counts.words(str(tmp_path), 2) == ['the', 'of']
  assert counts.tags(str(tmp_path), 3) == ['b', 'c', 'a']
  with pytest.raises(sources.DataError, match='line 3 is not "word count"'):
    counts.words(str(tmp_path), 3)
  with pytest.raises(sources.DataError, match='has 3 tags, 500 are needed'):
    counts.tags(str(tmp_path))
  with pytest.raises(ValueError, match='must be positive, got 0'):
    counts.tags(str(tmp_path), 0)
  (folder / 'stackoverflow.tag_count').write_text('[1')
  with pytest.raises(sources.DataError, match='not a JSON object of counts'):
    counts.tags(str(tmp_path))


@pytest.mark.parametrize('dataset', list(sources.DATASETS))
def test_real_files(dataset):
  data_dir = real_data.directory(dataset)
  opened = sources.open_clients(dataset, data_dir)
  assert opened.kind in ('subset', 'canonical')
  if opened.kind == 'canonical':
    assert opened.counts == sources.DATASETS[dataset].published
  for split, (clients, examples) in opened.counts.items():
    sizes = opened.sizes(split)
    assert len(opened[split].client_ids) == len(sizes) == clients
    assert sizes.sum() == examples
  client = opened['train'].client_ids[0]
  stored = list(opened['train'].create_tf_dataset_for_client(client))
  assert len(stored) == opened.sizes('train')[0]


def test_real_counts():
  data_dir = real_data.directory('stackoverflow')
  words = counts.words(data_dir, 10_000)
  assert len(set(words)) == 10_000 and {'the', 'and', '.'} < set(words[:10])
  assert len(set(counts.tags(data_dir, 500))) == 500
