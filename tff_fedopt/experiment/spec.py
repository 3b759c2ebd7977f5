"""What one run is: a frozen, checked, resolved value."""

from collections.abc import Hashable, Mapping
import dataclasses
from typing import Any

import immutabledict

from tasks import task as task_lib
from tff_fedopt import spelling
from tff_fedopt.experiment import identity as identity_lib
from tff_fedopt.experiment import participation as participation_lib
from tff_fedopt.experiment import sampling

# The published settings of the task are the defaults of these.
_FROM_TASK = ('rounds', 'cohort_size', 'batch_size', 'local_epochs')


@dataclasses.dataclass(frozen=True)
class RunSpec:
  """One run: everything that decides its numbers, and nothing else.

  Construction checks every value without loading TensorFlow or reading data,
  fills in what is not given, and parses the rest, so that runs of one meaning
  are equal however they were written.

  Attributes:
    task: A name of `tasks.names()`.
    algorithm: A name of `algorithms.names()`.
    hyperparameters: Values by name, or what `algorithms.validate` returned,
      which is what they become.
    rounds: Number of rounds.
    cohort_size: Clients per round.
    batch_size: Examples per local step.
    local_epochs: Passes over a client's examples per round.
    seed: Seed of everything random, 0 or above.
    profile: `quick`, `small` or `paper`.
    data_dir: Folder of the data files. For the fingerprint their content
      counts, wherever they are.
    task_options: Options of the task, by name; all of them once made.
    evaluate_every: Rounds between two evaluations; the last round always is.
    validation_examples: Evaluate on so many rows of the validation set only,
      a sample; None for all.
    validation_seed: Seed of that sample; its own, so that runs of other seeds
      and methods are evaluated on the same rows.
    cohorts: How many clients take part, one of `sampling.COHORTS`: always
      `cohort_size`, or each client by itself and so many on average.
    participation: How likely each client is to take part: `equal`, `examples`
      (in proportion to its number of examples), or weights as JSON text; a
      `participation.Participation` once made.

  Raises:
    ValueError: One line that names what is unknown or impossible.
  """

  task: str
  algorithm: str
  hyperparameters: Any = immutabledict.immutabledict()
  rounds: int | None = None
  cohort_size: int | None = None
  batch_size: int | None = None
  local_epochs: int | None = None
  seed: int = 0
  profile: str = 'quick'
  data_dir: str | None = None
  task_options: Mapping[str, Any] = immutabledict.immutabledict()
  evaluate_every: int = 1
  validation_examples: int | None = None
  validation_seed: int = 0
  cohorts: str = 'fixed'
  participation: Any = 'equal'

  def __post_init__(self):
    import tasks
    from tff_fedopt import algorithms

    _check_choice('task', self.task, tasks.names())
    _check_choice('algorithm', self.algorithm, algorithms.names())
    _check_choice('profile', self.profile, task_lib.PROFILES)
    _check_choice('kind of cohorts', self.cohorts, sampling.COHORTS)
    info = tasks.info(self.task)
    if isinstance(self.hyperparameters, Mapping):
      hp = algorithms.validate(self.algorithm, self.hyperparameters)
      self._set('hyperparameters', hp)
    if self.hyperparameters.state_dir is not None:
      raise ValueError(
          "state_dir: clients' memory is in the run's directory; leave"
          ' state_dir out'
      )
    options = info.resolve(self.profile, self.task_options)
    self._set('task_options', immutabledict.immutabledict(options))
    self._set(
        'participation',
        participation_lib.Participation.parse(self.participation),
    )
    self._set('data_dir', None if self.data_dir is None else str(self.data_dir))
    for name in _FROM_TASK:
      if getattr(self, name) is None:
        self._set(name, info.default(name))
    for name in (*_FROM_TASK, 'evaluate_every', 'validation_examples'):
      value = getattr(self, name)
      if value is None and name == 'validation_examples':
        continue
      self._set(name, _whole(name, value, minimum=1))
    for name in ('seed', 'validation_seed'):
      self._set(name, _whole(name, getattr(self, name), minimum=0))
    if self.validation_examples is None:
      self._set('validation_seed', 0)  # Nothing is drawn.

  def _set(self, name, value):
    object.__setattr__(self, name, value)

  def to_json(self) -> dict[str, Any]:
    """Returns the fields as values that JSON can hold."""
    values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
    return values | dict(
        hyperparameters=self.hyperparameters.to_json(),
        task_options=dict(self.task_options),
        participation=str(self.participation),
    )

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

  def settings(self) -> dict[str, Any]:
    """Returns every setting by name, as JSON values; none is left out as None.

    Where the data are is no setting.
    """
    values = self.to_json()
    hyperparameters = values.pop('hyperparameters')
    options = values.pop('task_options')
    del values['data_dir']
    if self.validation_examples is None:
      del values['validation_seed']
    values.update(hyperparameters)
    values.update((f'task option {n}', v) for n, v in options.items())
    return {name: v for name, v in values.items() if v is not None}

  def identity(self) -> identity_lib.Identity:
    """Returns what the run's numbers belong to: settings, data and code.

    Raises:
      ValueError: If a data file is missing (`tasks.data.sources.DataError`).
    """
    return identity_lib.of(self)

  def fingerprint(self) -> str:
    """Returns the SHA-256 of the run's identity, in hex; raises as it does."""
    return self.identity().sha


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
    any_engine: Whether a run may go on that was begun with another engine or on
      another device, whose numbers differ in rounding.
  """

  checkpoint_every: int = 10
  keep_checkpoints: int = 2
  keep_last: bool = True
  test: bool = True
  tensorboard: bool = True
  progress: bool = True
  label: str = ''
  any_engine: bool = False

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
      algorithms.trace_key(spec.algorithm, spec.hyperparameters),
  )


def model_key(spec: RunSpec) -> Hashable:
  """What two runs must share to use one evaluator of models."""
  return (spec.task, spec.profile, spec.data_dir, spec.task_options)


def _check_choice(what, value, choices):
  if value not in choices:
    hint = spelling.near(value, choices)
    known = f'one of {", ".join(choices) or "none"}'
    raise ValueError(f'unknown {what} {value!r}; {hint or known}')


def _whole(name, value, minimum):
  # Booleans are integers to Python, but nobody means them.
  if isinstance(value, bool) or not hasattr(value, '__index__'):
    raise ValueError(f'{name}: {value!r}; expected a whole number')
  if value < minimum:
    raise ValueError(f'{name}: {value!r}; expected {minimum} or more')
  return int(value)
