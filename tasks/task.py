"""What a task is: data, model, metric and published setting as plain values.

Nothing here loads TensorFlow before a task is built, so that names, settings
and options can be listed and checked at once.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

from tasks import source as source_lib

PROFILES = ('quick', 'small', 'paper')


@dataclasses.dataclass(frozen=True)
class Metric:
  """The published number of a task.

  Attributes:
    name: Key of the finalised metrics of the model.
    label: What to call it in tables.
    unit: Unit after scaling, '%' or ''.
    scale: Factor from the model's value to the published one.
    higher_is_better: Whether more is better.
    decimals: Digits after the point of the published one.
  """

  name: str
  label: str
  unit: str
  scale: float
  higher_is_better: bool
  decimals: int = 1


@dataclasses.dataclass(frozen=True)
class Published:
  """The published setting of a task; None for what there is none of.

  Attributes:
    rounds: Rounds of training.
    cohort_size: Clients per round.
    batch_size: Rows per local step.
    local_epochs: Passes over the client's examples per round.
    clients: Training clients.
    examples: Training examples.
    test_clients: Clients of the test split; 1 if it is not split.
    test_examples: Examples of the test split.
    parameters: Trainable numbers of the model.
    source: Where the values come from; None if they are the user's own.
  """

  rounds: int | None = None
  cohort_size: int | None = None
  batch_size: int | None = None
  local_epochs: int | None = None
  clients: int | None = None
  examples: int | None = None
  test_clients: int | None = None
  test_examples: int | None = None
  parameters: int | None = None
  source: source_lib.Source | None = None


@dataclasses.dataclass(frozen=True)
class Option:
  """A choice that a task leaves open.

  Attributes:
    default: Value in the profiles `small` and `paper`; its type is the
      option's.
    doc: What it does, and why the default is what it is.
    choices: Allowed values; None for any number of the type.
    minimum: Smallest number.
    quick: Value in the profile `quick` if it differs.
    source: Where the default comes from; None if it is the user's own.
  """

  default: Any
  doc: str
  choices: tuple[Any, ...] | None = None
  minimum: float = 0
  quick: Any = None
  source: source_lib.Source | None = None

  def check(self, name: str, given: Any) -> Any:
    """Returns a given value as the option's type.

    Args:
      name: What to call the option in the error.
      given: The value.

    Raises:
      ValueError: The option does not take the value.
    """
    if self.choices is not None:
      if given not in self.choices:
        raise ValueError(
            f'{name}: {given!r}; one of {", ".join(map(str, self.choices))}'
        )
      return self.choices[self.choices.index(given)]
    kind = type(self.default)
    if (
        isinstance(given, bool)
        or not isinstance(given, (int, float))
        or not self.minimum <= given < float('inf')
        or kind(given) != given
    ):
      what = 'a whole number' if kind is int else 'a number'
      raise ValueError(
          f'{name}: {given!r}; must be {what}, {self.minimum} or more'
      )
    return kind(given)


# Options of every task.
COMMON = dict(
    model=Option(
        'full',
        'The published model, or a reduced one of the same family.',
        choices=('full', 'reduced'),
        quick='reduced',
        source=source_lib.OFFICIAL,
    ),
    pooled=Option(
        False,
        'One client that holds the data of all: centralised training.',
        choices=(False, True),
        source=source_lib.published(
            'Adaptive Federated Optimization: clients hold their own data'
        ),
    ),
)


@dataclasses.dataclass(frozen=True)
class TaskInfo:
  """The part of a task that is known without loading anything.

  Attributes:
    name: As `tasks.load` takes it.
    title: One line.
    metric: What tables show of it.
    weighting: How the published runs weight clients, `examples` or `tokens`.
    options: What `tasks.load` takes beside, by name.
    dataset: Name of its data, as `sources.open_clients` or `cifar.open_split`
      takes it; '' if they come with the task.
    published: The published setting.
    files: (data_dir, options) -> the paths that real data are read from.
    digest: Returns name -> hash of data that come with the task.
  """

  name: str
  title: str
  metric: Metric
  weighting: str = 'examples'
  options: Mapping[str, Option] = dataclasses.field(default_factory=dict)
  dataset: str = ''
  published: Published = Published()
  files: Callable[[str | None, Mapping[str, Any]], Sequence[str]] = (
      lambda data_dir, options: ()
  )
  digest: Callable[[], Mapping[str, str]] = dict

  def default(self, name: str) -> int:
    """Returns a published number.

    Args:
      name: A field of `Published`, `rounds` for example.

    Raises:
      ValueError: If there is none.
    """
    value = getattr(self.published, name)
    if value is None:
      raise ValueError(
          f'{name} is missing: {self.name} has no value of its own for it'
      )
    return value

  def resolve(self, profile: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the value of every option.

    Args:
      profile: One of `PROFILES`; `quick` has some defaults of its own.
      given: Values by name.

    Raises:
      ValueError: The profile or an option is unknown, or a value not allowed.
    """
    if profile not in PROFILES:
      raise ValueError(
          f'unknown profile {profile!r}; one of {", ".join(PROFILES)}'
      )
    for name in given:
      if name not in self.options:
        raise ValueError(
            f'unknown option {name!r} of {self.name}; one of'
            f' {", ".join(self.options)}'
        )
    values = {}
    for name, option in self.options.items():
      if name in given:
        values[name] = option.check(f'{self.name}, {name}', given[name])
      elif profile == 'quick' and option.quick is not None:
        values[name] = option.quick
      else:
        values[name] = option.default
    return values


@dataclasses.dataclass(frozen=True)
class Request:
  """What a task file is asked to build.

  Attributes:
    profile: One of `PROFILES`.
    data_dir: Folder of canonical files; None with `quick` for the embedded
      synthetic data, otherwise for TFF's own cache.
    seed: Decides the initial weights.
    batch_size: Rows per local step.
    local_epochs: Passes over the client's examples.
    options: Value of every option.
  """

  profile: str
  data_dir: str | None
  seed: int
  batch_size: int
  local_epochs: int
  options: Mapping[str, Any]

  @property
  def is_synthetic(self) -> bool:
    """Whether the embedded data are asked for."""
    return self.profile == 'quick' and self.data_dir is None

  @property
  def is_reduced(self) -> bool:
    """Whether the reduced model is asked for."""
    return self.options['model'] == 'reduced'

  def folder(self, dataset: str) -> str | None:
    """Returns the `data_dir` to open, after making embedded data if needed."""
    if self.is_synthetic:
      from tasks import synthetic  # pylint: disable=g-import-not-at-top

      return synthetic.ensure(dataset)
    return self.data_dir


@dataclasses.dataclass(frozen=True)
class Task:
  """Data, model and published setting of one task.

  Attributes:
    info: What is known without loading anything.
    model_fn: Returns a new `tff.learning.models.VariableModel`, always with the
      same initial weights.
    train: The training clients, a `client_data.SeededClients`.
    validation: Returns the batches that the published curves are made from;
      they can be iterated many times.
    test: Returns the batches of the whole test split, likewise.
    data_kind: `synthetic`, `subset`, `canonical`, or `own` of client data that
      came with the task.
    summary: Returns what is known of data, model and batches, as values for
      JSON.
  """

  info: TaskInfo
  model_fn: Callable[[], Any]
  train: Any
  validation: Callable[[], Any]
  test: Callable[[], Any]
  data_kind: str
  summary: Callable[[], Mapping[str, Any]]

  @property
  def name(self) -> str:
    return self.info.name

  @property
  def metric(self) -> Metric:
    return self.info.metric

  @property
  def weighting(self) -> str:
    return self.info.weighting

  @property
  def published(self) -> Published:
    return self.info.published

  @property
  def num_parameters(self) -> int:
    """Number of trainable weights."""
    return self.summary()['parameters']
