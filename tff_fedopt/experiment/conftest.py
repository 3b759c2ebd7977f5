"""What several tests of experiments use."""

from collections.abc import Iterator

import pytest

from tff_fedopt import runtime


@pytest.fixture
def worker() -> Iterator[None]:
  """Makes one test compute in TFF's worker."""
  runtime.use('worker')
  yield
  runtime.use(runtime.DEFAULT_ENGINE)
