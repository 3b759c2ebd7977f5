"""What the two Stack Overflow tasks share: data, limits, the validation head."""

from tasks import task as task_lib

# The published code validates on the first 10 000 examples of the test split;
# the users held out from training are not used.
OPTIONS = dict(
    **task_lib.COMMON,
    vocab_size=task_lib.Option(
        10_000, 'Most frequent words that are known.', minimum=1, quick=1000
    ),
    max_examples=task_lib.Option(
        1000,
        'First examples of a client that are used, at most; 1000 in the'
        ' official hyperparameters, 128 in a third-party copy of the scripts.',
        minimum=1,
    ),
    validation_examples=task_lib.Option(
        10_000, 'First test examples that are the validation set.', minimum=1
    ),
)


def settings(cohort_size: int, batch_size: int, parameters: int):
  """Returns the published setting of one of the tasks."""
  return task_lib.Settings(
      rounds=1500,
      cohort_size=cohort_size,
      batch_size=batch_size,
      local_epochs=1,
      clients=342_477,
      examples=135_818_730,
      test_clients=204_088,
      test_examples=16_586_035,
      parameters=parameters,
      source='official hyperparameters.md; counts from the TFF loader',
  )


def shuffle_buffer(max_examples: int) -> int:
  """Returns the published buffer: all used examples, 10 000 at most."""
  return min(max_examples, 10_000)
