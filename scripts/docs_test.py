"""README and docs: what they name exists, and the numbers' picture is true."""

import pathlib
import re

import picture
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / 'README.md',
    ROOT / 'CONTRIBUTING.md',
    *sorted((ROOT / 'docs').glob('*.md')),
]
# Made by the commands, not kept.
MADE = ('runs/', 'data/', '.venv/')
_PATH = re.compile(
    r'(?<![\w/~.-])((?:tff_fedopt|tasks|scripts|results|docs|examples|tutorials)'
    r'/[\w./<>-]*|[\w.-]+\.(?:md|txt|in|toml|cff))(?![\w/])'
)


def _spans(text):
  """What is set as code: blocks and spans, line breaks undone."""
  blocks = re.findall(r'```\w*\n(.*?)```', text, re.S)
  text = re.sub(r'```.*?```', '', text, flags=re.S)
  return blocks + [' '.join(s.split()) for s in re.findall('`([^`]+)`', text)]


def named_paths(text):
  """Files and folders that a page names as code; `<name>` stands for any."""
  found = {p for span in _spans(text) for p in _PATH.findall(span)}
  return sorted(p for p in found if not p.startswith(MADE))


def named_commands(text):
  """(script, arguments) of every `bash SCRIPT …` of a page."""
  return [
      (m[1], m[2].split())
      for span in _spans(text)
      for m in re.finditer(r'bash (scripts/\S+\.sh)([^\n#]*)', span)
  ]


def links(text):
  """Targets of a page's links and pictures."""
  return [t.strip() for t in re.findall(r'\]\(([^)]*)\)', text)]


@pytest.mark.parametrize('page', PAGES, ids=lambda p: p.name)
def test_what_a_page_names_is_there(page):
  text = page.read_text(encoding='utf-8')
  for path in named_paths(text):
    pattern = re.sub('<[^>]*>', '*', path).rstrip('/')
    if '<name>' in path:  # To be written by the reader.
      pattern = str(pathlib.PurePath(path).parent)
    assert any(ROOT.glob(pattern)), path
  for script, _ in named_commands(text):
    assert (ROOT / script).is_file(), script
  for target in links(text):
    if not target.startswith(('https://', '#')):
      assert (page.parent / target.partition('#')[0]).exists(), target


def test_every_table_that_is_named_exists():
  from tff_fedopt import papers

  tables = papers.names()
  named = {
      argument
      for page in PAGES
      for script, arguments in named_commands(page.read_text('utf-8'))
      if 'reproduce' in script
      for argument in arguments
      if re.fullmatch('[a-z0-9_]+', argument)
  }
  assert len(named) > 10
  assert named <= set(tables)


def test_every_module_that_is_run_exists():
  runs = {
      tuple(arguments[:2])
      for page in PAGES
      for script, arguments in named_commands(page.read_text('utf-8'))
      if script == 'scripts/run.sh'
  }
  assert runs
  for module, command in runs:
    path = ROOT.joinpath(*module.split('.'))
    assert path.with_suffix('.py').exists() or (path / '__main__.py').exists()
    if module == 'tff_fedopt':
      assert (path / 'commands' / f'{command}.py').exists(), command


def test_what_is_not_there_is_noticed():
  text = 'See `tff_fedopt/nothing.py`, `bash scripts/no.sh x` and [a](b.md).'
  assert named_paths(text) == ['scripts/no.sh', 'tff_fedopt/nothing.py']
  assert named_commands(text) == [('scripts/no.sh', ['x'])]
  assert links(text) == ['b.md']


def test_every_page_is_linked_from_the_readme():
  linked = links((ROOT / 'README.md').read_text('utf-8'))
  for page in (ROOT / 'docs').glob('*.md'):
    assert f'docs/{page.name}' in linked


def test_the_picture_is_small_and_of_the_stored_numbers(tmp_path):
  picture.draw(tmp_path / 'picture.svg')
  assert (tmp_path / 'picture.svg').read_bytes() == picture.OUT.read_bytes()
  assert picture.OUT.stat().st_size < 100_000
  for _, table, labels, chosen, _ in picture.PANELS:
    values = picture.bars(table, labels, chosen)
    assert 4 <= len(values) <= 8
    assert values.index.is_unique
    for value in values:
      assert f'{value:.3g}' in picture.OUT.read_text('utf-8')
