"""Every algorithm by name: the only registry.

Names, hyperparameters and their checks need no TensorFlow; `build` loads it.
"""

import importlib
from typing import Any, NamedTuple

from tff_fedopt.algorithms import hyperparameters as _hyperparameters
from tff_fedopt.optimizers import schedules as _schedules


class _Entry(NamedTuple):
  """Where an algorithm is built, and what it takes."""

  module: str
  hyperparameters: type


_ALGORITHMS = dict(
    fedavg=_Entry('fedopt', _hyperparameters.FedAvg),
    fedavgm=_Entry('fedopt', _hyperparameters.FedAvgM),
    fedadagrad=_Entry('fedopt', _hyperparameters.FedAdagrad),
    fedadam=_Entry('fedopt', _hyperparameters.FedAdam),
    fedyogi=_Entry('fedopt', _hyperparameters.FedYogi),
    fedprox=_Entry('fedprox', _hyperparameters.FedProx),
    scaffold=_Entry('scaffold', _hyperparameters.Scaffold),
    feddyn=_Entry('feddyn', _hyperparameters.FedDyn),
    fedcm=_Entry('fedcm', _hyperparameters.FedCm),
    fedsam=_Entry('fedsam', _hyperparameters.FedSam),
    fedinit=_Entry('fedopt', _hyperparameters.FedInit),
    fedvra=_Entry('fedvra', _hyperparameters.FedVra),
    fedadmm=_Entry('fedvra', _hyperparameters.FedAdmm),
)

# What makes another graph. Everything else is a number in the state.
_STRUCTURAL = (
    'form',
    'client_weighting',
    'client_optimizer',
    'client_bias_correction',
    'client_state',
    'correction',
    'bias_correction',
    'option',
    'track_consistency',
    'local_steps',
    'per_client',
    'dual_rule',
    'aggregation_rule',
)


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


def validate(name: str, given: dict[str, Any]) -> dict[str, Any]:
  """Checks hyperparameters without loading TensorFlow.

  Args:
    name: One of `names()`.
    given: Hyperparameters by name.

  Returns:
    All of the algorithm's hyperparameters, defaults filled in.

  Raises:
    ValueError: One line: what is wrong, and what would be right.
  """
  return _parsed(name, given).resolved()


def build(name: str, model_fn, **given):
  """Builds an algorithm.

  Args:
    name: One of `names()`.
    model_fn: A function without arguments returning a new
      `tff.learning.models.VariableModel` whose weights share one float dtype.
    **given: Hyperparameters; see `hyperparameters(name)`.

  Returns:
    A `tff.learning.templates.LearningProcess`. Its `next` takes, for every
    client, what `tff_fedopt.client_input` makes.

  Raises:
    ValueError: If a hyperparameter is unknown, unused or impossible.
  """
  hp = _parsed(name, given)
  for needed in hp.needed():
    if getattr(hp, needed) is None:
      raise ValueError(
          f'{needed}: no value given, and clients of {name} have memory here;'
          ' expected '
          + _hyperparameters.meaning(type(hp), needed)
      )
  hp = hp.resolved()
  module = importlib.import_module(
      f'{__name__}.{_entry(name).module}'
  )
  return module.build(name, model_fn, hp)


def trace_key(name: str, given: dict[str, Any]) -> tuple[Any, ...]:
  """What two runs must share to use one traced process.

  Args:
    name: One of `names()`.
    given: Hyperparameters by name.

  Returns:
    A hashable value; equal for runs that differ only in what the state holds:
    numbers and the directory of clients' memory (see `set_hyperparameters`).
  """
  hp = validate(name, given)
  return (name,) + tuple(
      (k, hp[k]) for k in _STRUCTURAL if k in hp
  ) + (
      ('schedule', _schedules.parse(hp['client_learning_rate_schedule']).kind),
      ('weight_decay', bool(hp['weight_decay'])),
      ('max_gradient_norm', hp['max_gradient_norm'] is not None),
      ('relaxation', bool(hp['relaxation'])),
  )


def set_hyperparameters(process, state, name: str, given: dict[str, Any]):
  """Puts other hyperparameters into the state of a traced process.

  Args:
    process: What `build` returned.
    state: Its state; before the first round also the accumulators follow.
    name: The algorithm's name.
    given: Hyperparameters with the same `trace_key` as those of `build`.

  Returns:
    The new state.

  Raises:
    RuntimeError: If clients cannot keep their memory in `state_dir`.
  """
  hp = validate(name, given)
  schedule = _schedules.parse(hp['client_learning_rate_schedule'])
  values = dict(
      hp,
      learning_rate=hp['server_learning_rate'],
      momentum=hp.get('server_momentum'),
      schedule_rate=schedule.rate,
      schedule_steps=schedule.steps,
  )
  hparams = process.get_hparams(state)

  def replaced(numbers):
    return type(numbers)(
        (k, replaced(v) if hasattr(v, 'items') else float(values[k]))
        for k, v in numbers.items()
    )

  state = process.set_hparams(state, replaced(hparams))
  if hp['state_dir'] is not None:
    state = process.with_state_dir(state, hp['state_dir'])
  return state


def _parsed(name, given):
  registry = {a: entry.hyperparameters for a, entry in _ALGORITHMS.items()}
  return _hyperparameters.parse(
      name, _entry(name).hyperparameters, given, registry
  )


def _entry(name):
  if name not in _ALGORITHMS:
    raise ValueError(
        f'There is no algorithm {name!r}; there are ' + ', '.join(names())
    )
  return _ALGORITHMS[name]
