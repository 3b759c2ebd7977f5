"""Hashes of data files."""

import os

import pytest

from tasks.data import content
from tasks.data import sources


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
  monkeypatch.setenv('TFF_FEDOPT_CACHE', str(tmp_path / 'cache'))


def test_content_counts_and_not_the_place(tmp_path):
  for folder, text in (('a', 'one'), ('b', 'one'), ('c', 'two')):
    (tmp_path / folder / 'datasets').mkdir(parents=True)
    (tmp_path / folder / 'x.sqlite').write_text(text)
    (tmp_path / folder / 'datasets' / 'counts').write_text('3')
  a, b, c = (
      content.of_files(
          [f'{tmp_path}/{f}/x.sqlite', f'{tmp_path}/{f}/datasets/counts']
      )
      for f in 'abc'
  )
  assert set(a) == {'x.sqlite', 'datasets/counts'}
  assert a == b and a['x.sqlite'] != c['x.sqlite']
  assert a['datasets/counts'] == c['datasets/counts']
  assert content.of_files([]) == {}


def test_a_file_is_read_once_and_again_when_it_has_changed(
    tmp_path, monkeypatch
):
  path = tmp_path / 'x'
  path.write_text('one')
  reads = []
  real = open
  monkeypatch.setattr(
      content,
      'open',
      lambda name,
      *args,
      **kw: (reads.append(name), real(name, *args, **kw))[1],
      raising=False,
  )
  read = lambda: reads.count(str(path))
  first = content.sha256(str(path))
  assert content.sha256(str(path)) == first and read() == 1
  # Of the same length.
  path.write_text('two')
  os.utime(path, ns=(1, 1))
  assert content.sha256(str(path)) != first and read() == 2
  # A damaged note of it is made anew.
  [note] = (tmp_path / 'cache' / 'hashes').iterdir()
  note.write_text('{')
  content.sha256(str(path))
  assert read() == 3
  # Another file in its place, of the same size and time.
  other = tmp_path / 'y'
  other.write_text('six')
  os.utime(other, ns=(1, 1))
  before = content.sha256(str(path))
  os.replace(other, path)
  assert content.sha256(str(path)) != before


def test_missing_is_one_line(tmp_path):
  with pytest.raises(sources.DataError, match='No such file') as error:
    content.sha256(str(tmp_path / 'x'))
  assert '\n' not in str(error.value)
