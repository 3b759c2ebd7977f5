"""EMNIST character recognition: 62 classes, a network with dropout."""

import numpy as np

from tasks import task as task_lib
from tasks.data import hidden_labels

# The largest client, so that every client is shuffled as a whole.
SHUFFLE_BUFFER = 418
CLASSES = 62

INFO = task_lib.TaskInfo(
    name='emnist_character',
    title='EMNIST character recognition, 62 classes',
    metric=task_lib.Metric('accuracy', 'accuracy', '%', 100.0, True),
    weighting='examples',
    settings=task_lib.Settings(
        rounds=1500,
        cohort_size=10,
        batch_size=20,
        local_epochs=1,
        clients=3400,
        examples=671_585,
        test_clients=3400,
        test_examples=77_483,
        parameters=1_206_590,
        source='official hyperparameters.md; counts from the TFF loader',
    ),
    options={**hidden_labels.OPTIONS, **task_lib.COMMON},
)


def prepare(examples) -> tuple[np.ndarray, np.ndarray]:
  """Adds a channel; ink stays 0 on a background of 1, as published."""
  return examples['pixels'][..., np.newaxis], examples['label']


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens the data and returns the task."""
  # pylint: disable=g-import-not-at-top
  from tasks import pipeline as pipeline_lib
  from tasks.data import sources
  from tasks.models import cnn
  from tasks.models import objectives
  # pylint: enable=g-import-not-at-top

  size = dict(filters=(8, 16), units=32) if request.is_reduced else {}
  pipeline = pipeline_lib.Pipeline(
      prepare=lambda examples, rng: prepare(examples),
      prepare_eval=prepare,
      x=((28, 28, 1), 'float32'),
      y=((), 'int32'),
      shuffle_buffer=SHUFFLE_BUFFER,
      eval_batch_size=200,
      relabel=hidden_labels.of(request),
  )
  return pipeline_lib.assemble(
      INFO,
      request,
      sources.open_clients('emnist', request.folder('emnist')),
      pipeline,
      lambda: cnn.ConvDropoutNet(CLASSES, request.seed, **size),
      objectives.classification(),
  )
