"""Every algorithm by name: the only registry.

Names, hyperparameters and their checks need no TensorFlow; `build` loads it.
`register` adds algorithms from outside.
"""

from collections.abc import Callable, Hashable, Mapping
import dataclasses
import importlib
from typing import Any, NamedTuple

from tff_fedopt import spelling
from tff_fedopt.algorithms import hparams as _hparams


class _Entry(NamedTuple):
  """Where an algorithm is built, and what it takes.

  Attributes:
    module: A module here, or that of a registered algorithm.
    hyperparameters: The dataclass.
    build: What builds a registered algorithm; None for `build` of the module.
  """

  module: str
  hyperparameters: type
  build: Callable[..., Any] | None = None


_ALGORITHMS = dict(
    fedavg=_Entry('fedopt', _hparams.FedAvg),
    fedavgm=_Entry('fedopt', _hparams.FedAvgM),
    fedadagrad=_Entry('fedopt', _hparams.FedAdagrad),
    fedadam=_Entry('fedopt', _hparams.FedAdam),
    fedyogi=_Entry('fedopt', _hparams.FedYogi),
    fedprox=_Entry('fedprox', _hparams.FedProx),
    scaffold=_Entry('scaffold', _hparams.Scaffold),
    feddyn=_Entry('feddyn', _hparams.FedDyn),
    fedcm=_Entry('fedcm', _hparams.FedCm),
    fedsam=_Entry('fedsam', _hparams.FedSam),
    fedinit=_Entry('fedopt', _hparams.FedInit),
    fedvra=_Entry('fedvra', _hparams.FedVra),
    fedadmm=_Entry('fedvra', _hparams.FedAdmm),
)


def register(
    name: str, hyperparameters: type, build: Callable[..., Any]
) -> None:
  """Adds an algorithm from outside the package; see docs/adding.md.

  Args:
    name: Its name; one that was registered before is replaced.
    hyperparameters: A frozen dataclass on top of `hparams.Hyperparameters`,
      whose own fields are made by `hparams.field`.
    build: From name, `model_fn` and an instance of `hyperparameters` to what
      `assembly.compose` returns.

  Raises:
    ValueError: If the name is taken or none, or the hyperparameters are no such
      dataclass.
  """
  if not name.isidentifier():
    raise ValueError(
        f'algorithm {name!r}: not a name; expected letters, digits and _'
    )
  if name in _ALGORITHMS and _ALGORITHMS[name].build is None:
    raise ValueError(
        f'algorithm {name!r} is one of the package; give yours another name'
    )
  if not (
      dataclasses.is_dataclass(hyperparameters)
      and issubclass(hyperparameters, _hparams.Hyperparameters)
  ):
    raise ValueError(
        f'algorithm {name!r}: {hyperparameters!r} as hyperparameters; expected'
        ' a frozen dataclass on top of hparams.Hyperparameters'
    )
  for field in dataclasses.fields(hyperparameters):
    if 'help' not in field.metadata or isinstance(field.type, str):
      raise ValueError(
          f'algorithm {name!r}: hyperparameter {field.name} is not described;'
          ' expected hparams.field(default, meaning) and a type, not its name'
      )
  _ALGORITHMS[name] = _Entry(build.__module__, hyperparameters, build)


def names() -> list[str]:
  """The names of all algorithms, sorted."""
  return sorted(_ALGORITHMS)


def hyperparameters(name: str) -> type:
  """The dataclass of an algorithm's hyperparameters.

  Each field's metadata holds its meaning under `help`.

  Args:
    name: One of `names()`.

  Returns:
    A frozen dataclass type; `None` defaults depend on `form`.

  Raises:
    ValueError: If there is no such algorithm.
  """
  return _entry(name).hyperparameters


def validate(
    name: str, given: Mapping[str, Any]
) -> _hparams.Hyperparameters:
  """Checks hyperparameters without loading TensorFlow.

  Args:
    name: One of `names()`.
    given: Hyperparameters by name.

  Returns:
    All of the algorithm's hyperparameters, parsed, defaults filled in.

  Raises:
    ValueError: One line: what is wrong, and what would be right.
  """
  registry = {a: entry.hyperparameters for a, entry in _ALGORITHMS.items()}
  return _hparams.parse(
      name, _entry(name).hyperparameters, given, registry
  )


def module_of(name: str) -> str:
  """The name of the module that builds an algorithm.

  Raises:
    ValueError: If there is no such algorithm.
  """
  entry = _entry(name)
  return entry.module if entry.build else f'{__name__}.{entry.module}'


def build(name: str, model_fn: Callable[[], Any], **given: Any) -> Any:
  """Builds an algorithm.

  Args:
    name: One of `names()`.
    model_fn: A function without arguments returning a new
      `tff.learning.models.VariableModel` whose weights share one float dtype;
      its weights as it returns them are the start. A model may have two methods
      more, called in the client's computation. `begin_round()`: when the
      received weights are in place, before the first step.
      `seed_randomness(seed, step)`: before each forward pass, with the client's
      seed of this round and the local step's number, int64 scalar tensors; what
      the pass draws with `tf.random.stateless_…` from these two is the same
      whenever the run is repeated.
    **given: Hyperparameters; see `hyperparameters(name)`.

  Returns:
    A `tff.learning.templates.LearningProcess`. Its `next` takes, for every
    client, what `tff_fedopt.client_input` makes.

  Raises:
    ValueError: If a hyperparameter is unknown, unused or impossible, or the
      model cannot be trained: no weights, several dtypes, variables that the
      forward pass changes but nobody averages.
  """
  return build_parsed(name, model_fn, validate(name, given))


def build_parsed(
    name: str, model_fn: Callable[[], Any], hp: _hparams.Hyperparameters
) -> Any:
  """Builds an algorithm from what `validate` returned; see `build`."""
  missing = [n for n in hp.needed() if getattr(hp, n) is None]
  if missing:
    expected = [_hparams.meaning(type(hp), n) for n in missing]
    raise ValueError(
        f'{", ".join(missing)}: no value given, and clients of {name} have'
        f' memory here; expected {"; ".join(expected)}'
    )
  make = _entry(name).build
  if make is None:
    make = importlib.import_module(module_of(name)).build
  return make(name, model_fn, hp)


def trace_key(
    name: str, given: Mapping[str, Any] | _hparams.Hyperparameters
) -> Hashable:
  """What two runs must share to use one traced process.

  Args:
    name: One of `names()`.
    given: Hyperparameters by name, or what `validate` returned.

  Returns:
    A hashable value; equal for runs that differ only in what the state holds:
    numbers and the directory of clients' memory (see `set_hyperparameters`).
  """
  return (name, *_parsed(name, given).structure())


def set_hyperparameters(
    process: Any,
    state: Any,
    name: str,
    given: Mapping[str, Any] | _hparams.Hyperparameters,
) -> Any:
  """Puts other hyperparameters into the state of a traced process.

  Args:
    process: What `build` returned.
    state: Its state; before the first round also the accumulators follow.
    name: The algorithm's name.
    given: Hyperparameters with the same `trace_key` as those of `build`, by
      name or as `validate` returned them.

  Returns:
    The new state.

  Raises:
    RuntimeError: If clients cannot keep their memory in `state_dir`.
  """
  hp = _parsed(name, given)

  def value(key):
    if key.startswith('schedule_'):
      schedule = hp.client_learning_rate_schedule
      return getattr(schedule, key.removeprefix('schedule_'))
    return hp.number(_RENAMED.get(key, key))

  def replaced(numbers):
    return type(numbers)(
        (k, replaced(v) if hasattr(v, 'items') else float(value(k)))
        for k, v in numbers.items()
    )

  state = process.set_hparams(state, replaced(process.get_hparams(state)))
  if hp.state_dir is not None:
    state = process.with_state_dir(state, hp.state_dir)
  return state


# What the server optimizer calls a hyperparameter of another name.
_RENAMED = dict(
    learning_rate='server_learning_rate', momentum='server_momentum'
)


def _parsed(name, given):
  if isinstance(given, _hparams.Hyperparameters):
    return given
  return validate(name, given)


def _entry(name):
  if name not in _ALGORITHMS:
    raise ValueError(
        f'There is no algorithm {name!r}; '
        + (spelling.near(name, names()) or 'there are ' + ', '.join(names()))
    )
  return _ALGORITHMS[name]
