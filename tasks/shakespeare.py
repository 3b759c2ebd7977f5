"""Shakespeare: predicting the next character of a role's lines."""

from collections.abc import Mapping

import numpy as np

from tasks import source
from tasks import task as task_lib
from tasks.data import sources
from tasks.preprocessing import text

_CHARACTERS = len(text.CHARACTERS)

INFO = task_lib.TaskInfo(
    name='shakespeare',
    title='Shakespeare next character',
    dataset='shakespeare',
    metric=task_lib.Metric('accuracy', 'accuracy', '%', 100.0, True),
    weighting='tokens',
    published=task_lib.Published(
        rounds=1200,
        cohort_size=10,
        batch_size=4,
        local_epochs=1,
        clients=715,
        examples=16_068,
        test_clients=715,
        test_examples=2_356,
        parameters=820_522,
        source=source.OFFICIAL_LIST,
    ),
    options=dict(
        **task_lib.COMMON,
        sequence_length=task_lib.Option(
            80,
            'Characters that a row predicts.',
            minimum=1,
            quick=30,
            source=source.OFFICIAL,
        ),
    ),
    files=lambda data_dir, options: sources.files(
        'shakespeare', data_dir
    ),
)


def prepare(
    examples: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
  """Joins the rows of the snippets; targets are one character ahead."""
  rows = np.concatenate(list(examples['rows']))
  return rows[:, :-1], rows[:, 1:]


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens the data and returns the task."""
  # pylint: disable=g-import-not-at-top
  from tasks import pipeline as pipeline_lib
  from tasks.models import language
  from tasks.models import objectives
  from tasks.models import variables
  # pylint: enable=g-import-not-at-top

  length = request.options['sequence_length']
  units = (32, 32) if request.is_reduced else (256, 256)

  def decode(raw):
    return dict(
        rows=text.ragged([
            text.character_rows(snippet, length)
            for snippet in raw['snippets']
        ])
    )

  pipeline = pipeline_lib.Pipeline(
      prepare_eval=prepare,
      x=((length,), 'int32'),
      y=((length,), 'int32'),
      decode=decode,
      shuffle_buffer=50,
      eval_batch_size=100,
  )
  return pipeline_lib.assemble(
      INFO,
      request,
      sources.open_clients(INFO.dataset, request.folder(INFO.dataset)),
      pipeline,
      # Characters, padding, out of vocabulary, beginning and end.
      lambda: language.RecurrentNet(
          _CHARACTERS + 4,
          request.seed,
          embedding_size=8,
          units=units,
          lstm_initializer=variables.he_normal,
      ),
      # End and unknown characters count as targets, padding does not.
      objectives.next_token(dict(accuracy=[text.PAD])),
  )
