"""Stack Overflow: predicting tags of a user's posts (logistic regression)."""

from collections.abc import Mapping

import numpy as np

from tasks import source
from tasks import stackoverflow_common
from tasks import task as task_lib
from tasks.data import counts
from tasks.data import sources
from tasks.preprocessing import text

INFO = task_lib.TaskInfo(
    name='stackoverflow_tag',
    title='Stack Overflow tag prediction, logistic regression',
    dataset=stackoverflow_common.DATASET,
    metric=task_lib.Metric('recall_at_5', 'Recall@5', '%', 100.0, True),
    weighting='examples',
    published=stackoverflow_common.published(
        cohort_size=10, batch_size=100, parameters=5_000_500
    ),
    options=dict(
        **stackoverflow_common.OPTIONS,
        num_tags=task_lib.Option(
            500,
            'Most frequent tags that are predicted.',
            minimum=5,
            quick=100,
            source=source.OFFICIAL,
        ),
    ),
    files=lambda data_dir, options: sources.files(
        stackoverflow_common.DATASET,
        data_dir,
        counts.below(counts.WORDS, counts.TAGS),
    ),
)


def prepare(
    examples: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
  """Pads word ids and tag ids to the longest example."""
  return (
      text.padded(examples['words']),
      text.padded(examples['tags']),
  )


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens the data and returns the task."""
  # pylint: disable=g-import-not-at-top
  from tasks.models import bag_of_words
  from tasks.models import objectives
  # pylint: enable=g-import-not-at-top

  options = request.options
  data_dir = request.folder(INFO.dataset)
  counts.require(data_dir, counts.WORDS, counts.TAGS)
  words = text.Vocabulary(counts.words(data_dir, options['vocab_size']))
  tags = text.Vocabulary(counts.tags(data_dir, options['num_tags']))

  def decode(raw):
    texts = map(b' '.join, zip(raw['tokens'], raw['title']))
    return dict(
        words=text.ragged(
            [np.array(ids, np.int32) for ids in words.bags(texts)]
        ),
        tags=text.ragged(
            [np.array(ids, np.int32) for ids in tags.labels(raw['tags'])]
        ),
    )

  return stackoverflow_common.load(
      INFO,
      request,
      lambda: bag_of_words.BagOfWordsRegression(
          words.size, tags.size, request.seed
      ),
      objectives.tags(tags.size),
      prepare_eval=prepare,
      x=((None,), 'int32'),
      y=((None,), 'int32'),
      decode=decode,
      eval_batch_size=500,
  )
