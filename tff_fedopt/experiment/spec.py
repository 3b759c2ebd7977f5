"""What one run is: a frozen, checked value with a fingerprint."""

from collections.abc import Hashable, Mapping
import dataclasses
import hashlib
import json
from typing import Any

from tasks import task as task_lib
from tff_fedopt.experiment import participation
from tff_fedopt.experiment import sampling

# The published settings of the task are the defaults of these.
_FROM_TASK = ('rounds', 'cohort_size', 'batch_size', 'local_epochs')


@dataclasses.dataclass(frozen=True)
class RunSpec:
  """One run: everything that decides its numbers, and nothing else.

  Construction checks every value without loading TensorFlow, and fills in the
  published settings of the task where None is given.

  Attributes:
    task: A name of `tasks.names()`.
    algorithm: A name of `algorithms.names()`.
    hyperparameters: Values by name; the algorithm's defaults for the others.
    rounds: Number of rounds.
    cohort_size: Clients per round.
    batch_size: Examples per local step.
    local_epochs: Passes over a client's examples per round.
    seed: Seed of everything random, 0 or above.
    profile: `quick`, `small` or `paper`.
    data_dir: Folder of the data files. Only whether there is one counts for
      the fingerprint: the same run may find its data elsewhere.
    task_options: Options of the task, by name.
    evaluate_every: Rounds between two evaluations; the last round always is.
    validation_examples: Use only so many examples; None for all.
    cohorts: How many clients take part, one of `sampling.COHORTS`: always
      `cohort_size`, or each client by itself and so many on average.
    participation: How likely each client is to take part: `equal`, `examples`
      (in proportion to its number of examples), or weights as JSON text; see
      `experiment.participation`.

  Raises:
    ValueError: One line that names what is unknown or impossible.
  """

  task: str
  algorithm: str
  hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  rounds: int | None = None
  cohort_size: int | None = None
  batch_size: int | None = None
  local_epochs: int | None = None
  seed: int = 0
  profile: str = 'quick'
  data_dir: str | None = None
  task_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  evaluate_every: int = 1
  validation_examples: int | None = None
  cohorts: str = 'fixed'
  participation: str = 'equal'

  def __post_init__(self):
    import tasks
    from tff_fedopt import algorithms

    _check_choice('task', self.task, tasks.names())
    _check_choice('algorithm', self.algorithm, algorithms.names())
    _check_choice('profile', self.profile, task_lib.PROFILES)
    _check_choice('kind of cohorts', self.cohorts, sampling.COHORTS)
    info = tasks.info(self.task)
    algorithms.validate(self.algorithm, dict(self.hyperparameters))
    info.resolve(self.profile, dict(self.task_options))

    self._set('hyperparameters', _plain(self.hyperparameters))
    self._set('task_options', _plain(self.task_options))
    likely = participation.parse(self.participation)
    if likely not in participation.KINDS:
      # However it was written.
      self._set('participation', canonical_json(_plain(likely)))
    self._set('data_dir', None if self.data_dir is None else str(self.data_dir))
    for name in _FROM_TASK:
      if getattr(self, name) is None:
        self._set(name, info.default(name))
    for name in (*_FROM_TASK, 'evaluate_every', 'validation_examples', 'seed'):
      value = getattr(self, name)
      if value is None and name == 'validation_examples':
        continue
      self._set(name, _whole(name, value, minimum=0 if name == 'seed' else 1))

  def _set(self, name, value):
    object.__setattr__(self, name, value)

  def to_json(self) -> dict[str, Any]:
    """Returns the fields as values that JSON can hold."""
    return dataclasses.asdict(self)

  @classmethod
  def from_json(cls, values: Mapping[str, Any]) -> 'RunSpec':
    """Returns the spec of `to_json`.

    Raises:
      ValueError: If a field is unknown or a value is refused.
    """
    fields = [f.name for f in dataclasses.fields(cls)]
    for name in values:
      _check_choice('field of a run', name, fields)
    return cls(**values)

  def fingerprint(self) -> str:
    """Returns the SHA-256 of the run's canonical JSON, in hex."""
    values = self.to_json()
    values['data_dir'] = values['data_dir'] is not None
    # Runs from before there was a choice keep their fingerprint.
    for name, only in (('cohorts', 'fixed'), ('participation', 'equal')):
      if values[name] == only:
        del values[name]
    return sha256(values)

  def __hash__(self):
    return hash(self.fingerprint())


@dataclasses.dataclass(frozen=True)
class RunOptions:
  """How to run, without influence on the numbers.

  Attributes:
    checkpoint_every: Rounds between two checkpoints.
    keep_checkpoints: How many checkpoints stay while the run goes on.
    keep_last: Whether the last checkpoint, and what clients remember, stays
      when the run is done.
    test: Whether the last round is evaluated on the test data too.
    tensorboard: Whether to write TensorBoard events.
    progress: Whether standard error says how far the run is: a bar on a
      terminal, else a line every 30 seconds.
    label: What the bar calls the run in place of task and algorithm, as in a
      sweep; such a bar goes away with its run.
  """

  checkpoint_every: int = 10
  keep_checkpoints: int = 2
  keep_last: bool = True
  test: bool = True
  tensorboard: bool = True
  progress: bool = True
  label: str = ''

  def __post_init__(self):
    for name in ('checkpoint_every', 'keep_checkpoints'):
      if getattr(self, name) < 1:
        raise ValueError(f'{name}: {getattr(self, name)}; expected 1 or more')


def task_key(spec: RunSpec) -> Hashable:
  """What two runs must share to use one loaded task."""
  return (*model_key(spec), spec.seed, spec.batch_size, spec.local_epochs)


def group_key(spec: RunSpec) -> Hashable:
  """What two runs must share to be run one after the other, traced once."""
  from tff_fedopt import algorithms

  return (
      task_key(spec),
      algorithms.trace_key(spec.algorithm, dict(spec.hyperparameters)),
  )


def model_key(spec: RunSpec) -> Hashable:
  """What two runs must share to use one evaluator of models."""
  return (
      spec.task,
      spec.profile,
      spec.data_dir,
      canonical_json(dict(spec.task_options)),
  )


def canonical_json(values: Any) -> str:
  """The one JSON text of a value: sorted keys, no spaces, finite numbers."""
  return json.dumps(
      values, sort_keys=True, separators=(',', ':'), allow_nan=False
  )


def sha256(values: Any) -> str:
  """The SHA-256 of a value's canonical JSON, in hex."""
  return hashlib.sha256(canonical_json(values).encode('utf-8')).hexdigest()


def _check_choice(what, value, choices):
  if value not in choices:
    raise ValueError(
        f'unknown {what} {value!r}; one of {", ".join(choices) or "none"}'
    )


def _plain(values):
  """A dictionary whose whole numbers do not depend on how they were written."""

  def number(value):
    if hasattr(value, 'item'):
      value = value.item()  # A NumPy scalar.
    if isinstance(value, float) and value.is_integer():
      return int(value)
    return value

  return {name: number(value) for name, value in sorted(values.items())}


def _whole(name, value, minimum):
  # Booleans are integers to Python, but nobody means them.
  if isinstance(value, bool) or not hasattr(value, '__index__'):
    raise ValueError(f'{name}: {value!r}; expected a whole number')
  if value < minimum:
    raise ValueError(f'{name}: {value!r}; expected {minimum} or more')
  return int(value)
