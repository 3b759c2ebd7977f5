"""What both EMNIST tasks share: data, published counts, order of examples."""

from collections.abc import Callable
from typing import Any

from tasks import source
from tasks import task as task_lib

DATASET = 'emnist'
# The largest client, so that every client is shuffled as a whole.
SHUFFLE_BUFFER = 418


def published(rounds: int, parameters: int) -> task_lib.Published:
  """Returns the published setting of one of the tasks."""
  return task_lib.Published(
      rounds=rounds,
      cohort_size=10,
      batch_size=20,
      local_epochs=1,
      clients=3400,
      examples=671_585,
      test_clients=3400,
      test_examples=77_483,
      parameters=parameters,
      source=source.OFFICIAL_LIST,
  )


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

  return pipeline_lib.assemble(
      info,
      request,
      sources.open_clients(DATASET, request.folder(DATASET)),
      pipeline_lib.Pipeline(
          shuffle_buffer=SHUFFLE_BUFFER, eval_batch_size=200, **pipeline
      ),
      network_fn,
      objective,
  )
