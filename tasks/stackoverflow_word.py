"""Stack Overflow: predicting the next word of a user's sentences."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tasks import source
from tasks import stackoverflow_common
from tasks import task as task_lib
from tasks.data import counts
from tasks.data import sources
from tasks.preprocessing import text

INFO = task_lib.TaskInfo(
    name='stackoverflow_word',
    title='Stack Overflow next word',
    dataset=stackoverflow_common.DATASET,
    metric=task_lib.Metric(
        'accuracy_no_oov_or_eos', 'accuracy', '%', 100.0, True
    ),
    weighting='tokens',
    published=stackoverflow_common.published(
        cohort_size=50, batch_size=16, parameters=4_050_748
    ),
    options=dict(
        **stackoverflow_common.OPTIONS,
        sequence_length=task_lib.Option(
            20,
            'Words that a row predicts.',
            minimum=1,
            source=source.OFFICIAL,
        ),
        initializer=task_lib.Option(
            'glorot_uniform',
            'Kernels at the start: glorot_uniform as the first public state of'
            " the authors' code, or glorot_normal as its later ones (in the"
            ' LSTM he_normal).',
            choices=('glorot_uniform', 'glorot_normal'),
            source=source.FIRST_STATE,
        ),
    ),
    files=lambda data_dir, options: sources.files(
        stackoverflow_common.DATASET, data_dir, counts.below(counts.WORDS)
    ),
)


def prepare(
    examples: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
  """Targets are one word ahead of the inputs."""
  rows = examples['rows']
  return rows[:, :-1], rows[:, 1:]


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens the data and returns the task."""
  # pylint: disable=g-import-not-at-top
  from tasks.models import language
  from tasks.models import objectives
  from tasks.models import variables
  # pylint: enable=g-import-not-at-top

  options = request.options
  length = options['sequence_length']
  data_dir = request.folder(INFO.dataset)
  counts.require(data_dir, counts.WORDS)
  vocabulary = text.Vocabulary(counts.words(data_dir, options['vocab_size']))
  size: dict[str, Any]
  if request.is_reduced:
    size = dict(embedding_size=24, units=(48,), projection=24)
  else:
    size = dict(embedding_size=96, units=(670,), projection=96)
  if options['initializer'] == 'glorot_normal':
    size.update(
        lstm_initializer=variables.he_normal,
        dense_initializer=variables.glorot_normal,
    )
  pad = text.PAD
  oov, _, eos = text.special_ids(vocabulary.size)
  return stackoverflow_common.load(
      INFO,
      request,
      # Words, padding, out of vocabulary, beginning and end.
      lambda: language.RecurrentNet(
          vocabulary.size + 4, request.seed, **size
      ),
      objectives.next_token(
          dict(
              accuracy=[pad],
              accuracy_no_oov=[pad, oov],
              accuracy_no_oov_or_eos=[pad, oov, eos],
          )
      ),
      prepare_eval=prepare,
      x=((length,), 'int32'),
      y=((length,), 'int32'),
      decode=lambda raw: dict(
          rows=vocabulary.sentences(raw['tokens'], length)
      ),
      eval_batch_size=100,
  )
