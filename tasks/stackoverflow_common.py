"""What the two Stack Overflow tasks share: data, limits, the validation set."""

from collections.abc import Callable
from typing import Any

from tasks import source
from tasks import task as task_lib

DATASET = 'stackoverflow'
# The published code validates on the first 10 000 examples of the test split's
# clients in a random order; the users held out from training are not used.
OPTIONS = dict(
    **task_lib.COMMON,
    vocab_size=task_lib.Option(
        10_000,
        'Most frequent words that are known.',
        minimum=1,
        quick=1000,
        source=source.OFFICIAL,
    ),
    max_examples=task_lib.Option(
        1000,
        'First examples of a client that are used, at most; 1000 in the'
        ' official hyperparameters, 128 in a third-party copy of the scripts.',
        minimum=1,
        source=source.OFFICIAL_LIST,
    ),
    validation_examples=task_lib.Option(
        10_000,
        'Test examples that are the validation set: the first of the test'
        ' clients in a random order.',
        minimum=1,
        source=source.OFFICIAL,
    ),
    validation_seed=task_lib.Option(
        0,
        'Seed of that order; its own, so that all runs validate on the same'
        ' examples.',
        source=source.code(
            'google-research/federated, state of October 2020, whose order is'
            ' random: any is as good'
        ),
    ),
)


def published(
    cohort_size: int, batch_size: int, parameters: int
) -> task_lib.Published:
  """Returns the published setting of one of the tasks."""
  return task_lib.Published(
      rounds=1500,
      cohort_size=cohort_size,
      batch_size=batch_size,
      local_epochs=1,
      clients=342_477,
      examples=135_818_730,
      test_clients=204_088,
      test_examples=16_586_035,
      parameters=parameters,
      source=source.OFFICIAL_LIST,
  )


def shuffle_buffer(max_examples: int) -> int:
  """Returns the published buffer: all used examples, 10 000 at most."""
  return min(max_examples, 10_000)


def load(
    info: task_lib.TaskInfo,
    request: task_lib.Request,
    network_fn: Callable[[], Any],
    objective: Any,
    **pipeline: Any,
) -> task_lib.Task:
  """Opens the data and returns the task.

  Args:
    info: The task.
    request: What was asked for.
    network_fn: Returns a new network.
    objective: `objectives.Objective`, loss and metrics.
    **pipeline: Fields of `pipeline.Pipeline` that are the task's own.
  """
  # pylint: disable=g-import-not-at-top
  from tasks import pipeline as pipeline_lib
  from tasks.data import sources
  # pylint: enable=g-import-not-at-top

  max_examples = request.options['max_examples']
  return pipeline_lib.assemble(
      info,
      request,
      sources.open_clients(DATASET, request.folder(DATASET)),
      pipeline_lib.Pipeline(
          shuffle_buffer=shuffle_buffer(max_examples),
          max_examples=max_examples,
          validation_examples=request.options['validation_examples'],
          validation_seed=request.options['validation_seed'],
          **pipeline,
      ),
      network_fn,
      objective,
  )
