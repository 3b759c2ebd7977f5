"""Which of the algorithms' tests run on both engines."""

import pytest

from tff_fedopt import runtime
from tff_fedopt.runtime import settings

# Those against foreign code, against NumPy and between algorithms. What else is
# tested here is decided before anything runs, or chooses its engine itself.
_ON_BOTH = ('fedopt', 'fedvra', 'local_adaptivity', 'memory', 'no_data')


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
  """Makes two of each such test."""
  name = metafunc.module.__name__.rpartition('.')[2]
  if name.removesuffix('_test') in _ON_BOTH:
    metafunc.parametrize('engine', settings.ENGINES, indirect=True)


@pytest.fixture(scope='module', autouse=True)
def engine(request: pytest.FixtureRequest) -> str:
  """The engine in use."""
  name = getattr(request, 'param', runtime.DEFAULT_ENGINE)
  runtime.use(name)
  return name
