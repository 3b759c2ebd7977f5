"""Every algorithm gives the same weights on both engines, up to rounding."""

import numpy as np
import pytest

from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.testing import kernels
from tff_fedopt.testing import problems

COHORTS = [[0, 2], [1, 3], [0, 1, 3], [2], [1, 2]]
# Largest difference of a weight after rounds 1 and 5; the weights are near 1.
PLAIN = (2.5e-7, 1e-6)
# Divides by roots of sums of squares of gradients, which start at zero.
ADAPTIVE = (2.1e-5, 1.8e-4)
FAMILIES = {
    name: (name, {}, PLAIN)
    for name in ('fedavg', 'fedavgm', 'fedprox', 'scaffold', 'feddyn', 'fedcm',
                 'fedsam', 'fedvra', 'fedadmm', 'fedinit')
} | {
    name: (name, {}, ADAPTIVE) for name in ('fedadagrad', 'fedadam', 'fedyogi')
} | {
    'local': (
        'fedadam',
        dict(client_optimizer='adagrad', correction='local'),
        ADAPTIVE,
    ),
    'global': (
        'fedadam',
        dict(client_optimizer='adam', correction='global'),
        ADAPTIVE,
    ),
}


@pytest.fixture(scope='module', autouse=True)
def engine():
  """Both engines in every test; not each test on both."""


def test_no_algorithm_is_left_out():
  assert {name for name, _, _ in FAMILIES.values()} == set(algorithms.names())


@pytest.mark.parametrize('family', FAMILIES)
def test_engines_agree(family, tmp_path):
  name, given, (after_one, after_five) = FAMILIES[family]
  problem = problems.Problem(problems.golden('official')['problems']['P2'])
  hp = algorithms.validate(name, dict(client_learning_rate=0.1, **given))
  process = algorithms.build_parsed(
      name, problem.model_fn, hp.placed(len(problem.names), str(tmp_path))
  )

  def weights(**engine):
    runtime.use(**engine)
    state, after = process.initialize(), []
    for cohort in COHORTS:
      state, _ = process.next(state, [problem.client_input(i) for i in cohort])
      model = state.global_model_weights['model']
      after.append([np.array(w) for w in model.trainable])
    return after

  local = weights(engine='local', max_concurrent_clients=2)
  in_turn = weights(engine='local', max_concurrent_clients=1)
  worker = weights(engine='worker')
  assert problems.distance(local, in_turn) == 0
  assert problems.distance(local[:1], worker[:1]) <= after_one
  assert problems.distance(local, worker) <= after_five
  assert problems.distance(local[4:], [problem.initial]) > 1e-3
  # Where there is a GPU it does all that is not the host's by nature.
  left = kernels.without_gpu(process.next) | kernels.pinned(process.next)
  assert [op for op in left if not kernels.ON_THE_HOST.fullmatch(op)] == []
