"""What an algorithm tolerates, measured where the optimum is known."""

import functools
import glob
import math
import os
import tempfile
from typing import Any

from tff_fedopt.tables import spec

# Q_i, and how likely a client is to take part, where these differ.
_STEPS = (1, 8, 3, 5, 2, 6)
_LIKELY = (1.0, 0.9, 0.8, 0.6, 0.5, 0.4)


def remaining_distance(
    problem: str,
    algorithm: str,
    steps: str,
    sampling: str,
    rounds: int,
    seed: int,
    **hyperparameters: Any,
) -> spec.Measured:
  """How far from the optimum an algorithm ends.

  Args:
    problem: A key of `small_problems.PROBLEMS`.
    algorithm: Its name.
    steps: `one` local step of each client, or `unequal` ones.
    sampling: `all` clients in every round, or `unequal`: each by itself, with
      a probability of its own.
    rounds: Number of rounds.
    seed: Seed of the problem and of the sampling.
    **hyperparameters: Of the algorithm.

  Returns:
    log10 of the distance divided by that at the start, and its curve.
  """
  distances, _ = _run(
      problem, algorithm, steps, sampling, rounds, seed, hyperparameters
  )
  # What rounding leaves is no difference between algorithms.
  logs = [math.log10(max(d / distances[0], 1e-10)) for d in distances[1:]]
  return spec.Measured(logs[-1], (list(range(1, rounds + 1)), logs))


def stored_models(
    problem: str, algorithm: str, seed: int, **hyperparameters: Any
) -> spec.Measured:
  """How much a client keeps between rounds, in sizes of the model.

  Args:
    problem: A key of `small_problems.PROBLEMS`.
    algorithm: Its name.
    seed: Seed of the problem.
    **hyperparameters: Of the algorithm.

  Returns:
    Bytes of what is in a client's file after a round, divided by the model's.
  """
  _, stored = _run(problem, algorithm, 'one', 'all', 1, seed, hyperparameters)
  return spec.Measured(stored)


# Tables go through all methods before they come back to the first.
@functools.lru_cache(maxsize=16)
def _process(problem, algorithm, hyperparameters):
  """The process, the client data it was made for aside, and its directory."""
  from tff_fedopt import algorithms
  from tff_fedopt.problems import small_problems

  folder = tempfile.TemporaryDirectory(prefix='known_optimum_')
  hp = algorithms.validate(
      algorithm, {'client_weighting': 'uniform', **dict(hyperparameters)}
  )
  process = algorithms.build_parsed(
      algorithm,
      small_problems.PROBLEMS[problem](0, _STEPS).model_fn,
      hp.placed(small_problems.CLIENTS, os.path.join(folder.name, 'clients')),
  )
  return process, folder


def _run(problem, algorithm, steps, sampling, rounds, seed, hyperparameters):
  """Distances before the first and after each round; models a client keeps."""
  import numpy as np

  from tff_fedopt import runtime
  from tff_fedopt.experiment import rounds as rounds_lib
  from tff_fedopt.experiment import sampling as sampling_lib
  from tff_fedopt.problems import small_problems

  runtime.use()
  process, folder = _process(
      problem, algorithm, tuple(sorted(hyperparameters.items()))
  )
  clients = small_problems.PROBLEMS[problem](
      seed, _STEPS if steps == 'unequal' else (1,) * len(_STEPS)
  )

  def cohort(r):
    if sampling == 'all':
      return clients.client_ids
    drawn = sampling_lib.unequal_cohort(_LIKELY, seed, r, 'bernoulli')
    return [clients.client_ids[i] for i in drawn]

  distance = lambda x: float(np.linalg.norm(x - clients.optimum))
  distances = [distance(clients.first)]
  for result in rounds_lib.run(
      process, clients, [cohort(r) for r in range(rounds)], seed=seed
  ):
    distances.append(distance(result.weights[0]))
  return distances, _stored(folder.name, clients.first.nbytes)


def _stored(folder, model_bytes):
  import tensorflow as tf

  files = sorted(glob.glob(f'{folder}/clients/*/*.index'))
  if not files:
    return 0.0
  reader = tf.train.load_checkpoint(files[-1].removesuffix('.index'))
  names = reader.get_variable_to_shape_map()
  return sum(reader.get_tensor(name).nbytes for name in names) / model_bytes
