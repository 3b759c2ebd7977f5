"""The docstrings: where an algorithm is from, and an example that runs."""

import doctest
import importlib
import pathlib
import re

import pytest

from tff_fedopt import algorithms

FOLDER = pathlib.Path(algorithms.__file__).parent
# Around an algorithm, or shared by many.
BESIDE = ('consistency', 'local_adaptivity', 'relaxation')


def _modules():
  builders = {
      p.stem
      for p in FOLDER.glob('*.py')
      if re.search('^def build\\(', p.read_text(encoding='utf-8'), re.M)
  }
  return sorted((builders | set(BESIDE)) - {'__init__'})


@pytest.mark.parametrize('name', _modules())
def test_docstring(name):
  module = importlib.import_module(f'tff_fedopt.algorithms.{name}')
  # Authors, title, year, number.
  assert re.search(
      r'^Source: ([\w ]+, )+[\w ]+: [^:]+.*20\d\d,\sarXiv:\d{4}\.\d{5}',
      module.__doc__,
      re.M | re.S,
  )
  result = doctest.testmod(module)
  assert result.attempted >= 5
  assert not result.failed


def test_all_builders_are_looked_at():
  assert len(_modules()) >= 7 + len(BESIDE)
