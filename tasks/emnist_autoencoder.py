"""EMNIST autoencoder: a bottleneck network, squared error."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tasks import emnist_common
from tasks import source
from tasks import task as task_lib
from tasks.data import sources

INFO = task_lib.TaskInfo(
    name='emnist_autoencoder',
    title='EMNIST autoencoder',
    dataset=emnist_common.DATASET,
    metric=task_lib.Metric('mse', 'MSE x 1000', '', 1000.0, False, decimals=2),
    weighting='examples',
    published=emnist_common.published(rounds=3000, parameters=2_837_314),
    options=dict(
        **task_lib.COMMON,
        reduction=task_lib.Option(
            'sum',
            'Loss over the batch. The published rates belong to the sum; with'
            ' the mean of later TFF versions multiply them by the batch size.',
            choices=('sum', 'mean'),
            source=source.OFFICIAL,
        ),
        initializer=task_lib.Option(
            'glorot_uniform',
            'Kernels at the start: glorot_uniform as the first public state of'
            " the authors' code, or glorot_normal as its later ones.",
            choices=('glorot_uniform', 'glorot_normal'),
            source=source.FIRST_STATE,
        ),
    ),
    files=lambda data_dir, options: sources.files(
        emnist_common.DATASET, data_dir
    ),
)


def prepare(
    examples: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
  """Inverts and flattens the images; the input is the target."""
  x = 1 - examples['pixels'].reshape(-1, 28 * 28)
  return x, x


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens the data and returns the task."""
  # pylint: disable=g-import-not-at-top
  from tasks.models import autoencoder
  from tasks.models import objectives
  from tasks.models import variables
  # pylint: enable=g-import-not-at-top

  size: dict[str, Any] = (
      dict(widths=(128, 64, 16, 64, 128)) if request.is_reduced else {}
  )
  initializer = getattr(variables, request.options['initializer'])
  return emnist_common.load(
      INFO,
      request,
      lambda: autoencoder.Autoencoder(
          request.seed, initializer=initializer, **size
      ),
      objectives.reconstruction(request.options['reduction']),
      prepare_eval=prepare,
      x=((784,), 'float32'),
      y=((784,), 'float32'),
  )
