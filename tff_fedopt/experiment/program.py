"""What is loaded and traced once, and shared by runs that can share it."""

from collections.abc import Callable, Hashable
import dataclasses
import functools
import os
from typing import Any

import numpy as np

import tasks
from tff_fedopt import algorithms
from tff_fedopt import runtime
from tff_fedopt.experiment import evaluation
from tff_fedopt.experiment import participation
from tff_fedopt.experiment import spec as spec_lib


@dataclasses.dataclass(frozen=True)
class Program:
  """A run's task, its traced process, the evaluator, and where to begin.

  Attributes:
    task: The task.
    process: The learning process.
    evaluate: The evaluator of the task's model.
    validation: Returns the batches that the run is validated on.
    initial_state: The state before the first round, the run's hyperparameters
      in it.
    probabilities: How likely each client is to take part; None if all are
      alike.
  """

  task: Any
  process: Any
  evaluate: evaluation.Evaluator
  validation: Callable[[], Any]
  initial_state: Any
  probabilities: np.ndarray | None


class Programs:
  """Makes programs; keeps the last task, evaluator and process for the next.

  Runs that follow each other and differ only in numbers that the state holds
  (learning rates, say) use one traced process.
  """

  def __init__(self):
    self._task = _Latest()
    self._evaluator = _Latest()
    self._sample = _Latest()
    self._process = _Latest()

  @property
  def traces(self) -> int:
    """How many processes were traced so far."""
    return self._process.made

  def get(self, spec: spec_lib.RunSpec, state_dir: str) -> Program:
    """Returns the program of a run.

    Args:
      spec: The run.
      state_dir: Where clients with memory keep it.

    Raises:
      ValueError: If the run does not fit the data.
    """
    runtime.use()
    task_key = spec_lib.task_key(spec)
    task = self._task.get(task_key, lambda: _load(spec))
    num_clients = len(task.train.client_ids)
    if spec.cohort_size > num_clients:
      raise ValueError(
          f'cohort_size: {spec.cohort_size}; {spec.task} has {num_clients}'
          ' clients'
      )
    probabilities = participation.of_clients(
        spec.participation, task.train, spec.cohort_size
    )
    hp = spec.hyperparameters.placed(num_clients, os.path.abspath(state_dir))
    trace_key = algorithms.trace_key(spec.algorithm, hp)

    def trace():
      process = algorithms.build_parsed(spec.algorithm, task.model_fn, hp)
      return process, process.initialize()

    process, state = self._process.get((task_key, trace_key), trace)
    state = algorithms.set_hyperparameters(
        process, state, spec.algorithm, hp
    )
    process.check_clients(state, task.train.client_ids)
    return Program(
        task=task,
        process=process,
        evaluate=self._evaluator.get(
            spec_lib.model_key(spec),
            lambda: evaluation.Evaluator(task.model_fn),
        ),
        validation=functools.partial(self._validation, spec, task),
        initial_state=state,
        probabilities=probabilities,
    )

  def _validation(self, spec, task):
    """The task's validation set, or the run's sample of it, drawn once."""
    size, seed = spec.validation_examples, spec.validation_seed
    if size is None:
      return task.validation()
    return self._sample.get(
        (spec_lib.task_key(spec), size, seed),
        lambda: evaluation.sampled_batches(task.validation(), size, seed),
    )


class _Latest:
  """The last value made, until another key is asked for."""

  def __init__(self):
    self._key = self._value = None
    self.made = 0

  def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
    if self._key != key:
      self._key = self._value = None  # Frees it before the next one is made.
      self._value = make()
      self._key = key
      self.made += 1
    return self._value


def _load(spec):
  return tasks.load(
      spec.task,
      profile=spec.profile,
      data_dir=spec.data_dir,
      seed=spec.seed,
      batch_size=spec.batch_size,
      local_epochs=spec.local_epochs,
      **spec.task_options,
  )
