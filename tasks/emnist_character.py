"""EMNIST character recognition: 62 classes, a network with dropout."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tasks import emnist_common
from tasks import task as task_lib
from tasks.data import hidden_labels
from tasks.data import sources

CLASSES = 62

INFO = task_lib.TaskInfo(
    name='emnist_character',
    title='EMNIST character recognition, 62 classes',
    dataset=emnist_common.DATASET,
    metric=task_lib.Metric('accuracy', 'accuracy', '%', 100.0, True),
    weighting='examples',
    published=emnist_common.published(rounds=1500, parameters=1_206_590),
    options={**hidden_labels.OPTIONS, **task_lib.COMMON},
    files=lambda data_dir, options: sources.files(
        emnist_common.DATASET, data_dir
    ),
)


def prepare(
    examples: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
  """Adds a channel; ink stays 0 on a background of 1, as published."""
  return examples['pixels'][..., np.newaxis], examples['label']


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens the data and returns the task."""
  # pylint: disable=g-import-not-at-top
  from tasks.models import cnn
  from tasks.models import objectives
  # pylint: enable=g-import-not-at-top

  size: dict[str, Any] = (
      dict(filters=(8, 16), units=32) if request.is_reduced else {}
  )
  return emnist_common.load(
      INFO,
      request,
      lambda: cnn.ConvDropoutNet(CLASSES, request.seed, **size),
      objectives.classification(),
      prepare_eval=prepare,
      x=((28, 28, 1), 'float32'),
      y=((), 'int32'),
      relabel=hidden_labels.of(request),
  )
