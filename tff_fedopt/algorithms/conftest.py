"""The algorithms' tests run on both engines."""

import pytest

from tff_fedopt import runtime
from tff_fedopt.runtime import settings


@pytest.fixture(scope='module', autouse=True, params=settings.ENGINES)
def engine(request):
  runtime.use(request.param)
  return request.param
