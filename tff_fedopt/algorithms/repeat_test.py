"""Equal rounds give equal bits, however busy the machine is."""

import collections
import hashlib
import os
import sys

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.testing import problems

# All that there are, not the one of this test process.
_ALL = os.sched_getaffinity(os.getppid())
_TIMES = 50


@pytest.fixture(name='busy', params=['local', 'worker'])
def _busy(processes, request):
  """More work than cores, and more clients at a time."""
  mine = os.sched_getaffinity(0)
  os.sched_setaffinity(0, _ALL)  # Also for what is started from here.
  for _ in _ALL:
    processes.start([sys.executable, '-c', 'while True: pass'], seconds=280)
  runtime.use(request.param, max_concurrent_clients=2 * len(_ALL))
  yield
  os.sched_setaffinity(0, mine)
  runtime.use(runtime.DEFAULT_ENGINE)


def _digest(values):
  data = b''.join(np.asarray(v).tobytes() for v in tf.nest.flatten(values))
  return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    'name, hyperparameters',
    [
        (
            'scaffold',
            dict(
                max_gradient_norm=0.5,
                relaxation=0.1,
                track_consistency=True,
                weight_decay=0.02,
            ),
        ),
        ('fedadmm', dict(gamma=0.4)),
    ],
)
def test_a_round_repeats_to_the_last_bit(busy, tmp_path, name, hyperparameters):
  del busy
  problem = problems.Problem(
      problems.golden('official')['problems']['P2'], 'float64'
  )
  process = algorithms.build(
      name,
      problem.model_fn,
      client_learning_rate=0.05,
      num_clients=4,
      state_dir=str(tmp_path),
      **hyperparameters,
  )
  inputs = [problem.client_input(i) for i in range(4)]
  before = process.next(process.initialize(), inputs).state
  seen = collections.Counter(
      _digest(process.next(before, inputs)) for _ in range(_TIMES)
  )
  assert len(seen) == 1, seen
