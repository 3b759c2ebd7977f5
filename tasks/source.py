"""Where a setting is from: published, code, tuned or guessed."""

import dataclasses

PUBLISHED, CODE, TUNED, GUESSED = 'published', 'code', 'tuned', 'guessed'
KINDS = (PUBLISHED, CODE, TUNED, GUESSED)


@dataclasses.dataclass(frozen=True)
class Source:
  """The source of a setting.

  Attributes:
    kind: `published` (the paper has it), `code` (the authors' code has it),
      `tuned` (best on a grid of ours) or `guessed` (chosen here).
    detail: Paper and section; repository and state; the grid; or why.

  Raises:
    ValueError: If there is no such kind, or nothing is said of it.
  """

  kind: str
  detail: str

  def __post_init__(self):
    if self.kind not in KINDS:
      raise ValueError(
          f'unknown kind of source {self.kind!r}; one of {", ".join(KINDS)}'
      )
    if not self.detail:
      raise ValueError(
          f'a source that is {self.kind}, and nothing more; expected the paper'
          ' and section, the repository and its state, the grid, or why'
      )

  def __str__(self) -> str:
    return f'{self.kind}: {self.detail}'

  @property
  def is_theirs(self) -> bool:
    """Whether the authors' numbers have the setting, as far as is known."""
    return self.kind in (PUBLISHED, CODE)

  @classmethod
  def parse(cls, text: str) -> 'Source':
    """Returns the source of a text such as `code: a/repository, May 2021`.

    Raises:
      ValueError: If it is none.
    """
    kind, _, detail = text.partition(':')
    return cls(kind.strip(), detail.strip())


def published(detail: str) -> Source:
  """A setting that the paper has; `detail` is paper and section."""
  return Source(PUBLISHED, detail)


def code(detail: str) -> Source:
  """A setting that the code has; `detail` is repository and state."""
  return Source(CODE, detail)


def tuned(detail: str) -> Source:
  """A setting that was best on a grid of ours; `detail` is the grid."""
  return Source(TUNED, detail)


def guessed(detail: str) -> Source:
  """A setting chosen here; `detail` is why."""
  return Source(GUESSED, detail)


# Of the tasks that come with this package.
OFFICIAL = code('google-research/federated, state of October 2020')
OFFICIAL_LIST = code(
    'google-research/federated, optimization/docs/hyperparameters.md'
)
FIRST_STATE = code(
    'google-research/federated, utils/models before initialisers had seeds'
    ' (49a4345)'
)
TFF_FILES = code('TensorFlow Federated, simulation/datasets')
SUPERVISED = published('Adaptive Federated Optimization: all labels are known')
REDUCED = guessed('reduced, so that it runs in minutes')
