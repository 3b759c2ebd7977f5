"""Hyperparameters by algorithm: names, defaults, meaning, ranges, checks.

Nothing here needs TensorFlow, so wrong values are refused before it loads.
"""

from collections.abc import Callable, Hashable, Mapping
import dataclasses
import functools
import math
import os
import sys
import typing
from typing import Any, ClassVar
import warnings

from tff_fedopt import spelling
from tff_fedopt.algorithms import dual_range
from tff_fedopt.algorithms import step_rule
from tff_fedopt.optimizers import schedules
from tff_fedopt.processes import local_steps as local_steps_lib
from tff_fedopt.processes import per_client as per_client_lib

FORMS = ('paper', 'code')
CLIENT_OPTIMIZERS = (
    'sgd',
    'momentum',
    'nesterov',
    'ema_momentum',
    'adagrad',
    'adam',
    'yogi',
)
WEIGHTINGS = ('examples', 'tokens', 'uniform')

_MOMENTUM = ('momentum', 'nesterov', 'ema_momentum')
_ADAPTIVE = ('adagrad', 'adam', 'yogi')

_TWO_MOMENTS = ('adam', 'yogi')


def positive(v: float) -> str | None:
  """Checks that a number is above 0; see `field`."""
  return None if v > 0 else 'above 0'


def not_negative(v: float) -> str | None:
  """Checks that a number is 0 or above; see `field`."""
  return None if v >= 0 else '0 or above'


def below_one(v: float) -> str | None:
  """Checks that a number is in [0, 1); see `field`."""
  return None if 0 <= v < 1 else 'at least 0 and below 1'


def share(v: float) -> str | None:
  """Checks that a number is in (0, 1]; see `field`."""
  return None if 0 < v <= 1 else 'above 0 and at most 1'


def _is_given(v):
  return v is not None


def one_of(*choices: Any) -> Callable[[Any], str | None]:
  """Returns the check that a value is one of these; see `field`."""

  def check(v):
    return None if v in choices else 'one of ' + ', '.join(map(str, choices))

  return check


def field(
    default: Any,
    meaning: str,
    check: Callable[[Any], str | None] | None = None,
    *,
    structural: bool | Callable[[Any], Hashable] = False,
    parse: Callable[[Any], Any] | None = None,
    used_by: tuple[str, ...] = CLIENT_OPTIMIZERS,
) -> Any:
  """A hyperparameter.

  Args:
    default: Its default, parsed.
    meaning: What it means.
    check: Says of a value what would be right, None if it is.
    structural: Whether another value makes another graph, or what of the value
      does. What does not is a number in the state.
    parse: Reads values that are no number, choice or path.
    used_by: The client optimizers that use it.
  """
  return dataclasses.field(
      default=default,
      metadata=dict(
          help=meaning,
          check=check,
          structural=structural,
          parse=parse,
          used_by=used_by,
      ),
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hyperparameters:
  """What every algorithm takes, parsed.

  A value that nobody gave is the default, that of the form where the default is
  None; it stays None if the client optimizer does not use it, or only the
  running program knows it (`num_clients`, `state_dir`).
  """

  # Name of the hyperparameter that pulls clients back to their start.
  pull: ClassVar[str | None] = None

  form: str = field(
      'paper',
      "'paper' follows the algorithm box, 'code' the authors' code",
      one_of(*FORMS),
      structural=True,
  )
  client_learning_rate: float = field(0.1, 'η_l', positive)
  client_learning_rate_schedule: schedules.Schedule = field(
      schedules.Schedule(),
      'η_l by round t: constant, exponential:RATE:STEPS,'
      ' inverse_sqrt:RATE:STEPS or inverse_linear:RATE:STEPS',
      structural=lambda schedule: schedule.kind,
      parse=schedules.Schedule.parse,
  )
  server_learning_rate: float = field(1.0, 'η', positive)
  client_weighting: str = field(
      'examples',
      'weight of a client in the average: its examples n_i, its non-pad tokens,'
      ' or 1',
      one_of(*WEIGHTINGS),
      structural=True,
  )
  weight_decay: float = field(
      0.0,
      'λ of the term λ/2 ‖x‖² in local training',
      not_negative,
      structural=bool,
  )
  max_gradient_norm: float | None = field(
      None,
      'local gradients are clipped at this global norm',
      positive,
      structural=_is_given,
  )
  client_optimizer: str = field(
      'sgd',
      'the client optimizer',
      one_of(*CLIENT_OPTIMIZERS),
      structural=True,
  )
  client_momentum: float | None = field(
      None,
      'ρ of a client optimizer with momentum (0.9)',
      below_one,
      used_by=_MOMENTUM,
  )
  client_beta1: float | None = field(
      None,
      'β₁ of client Adam and Yogi (0.9)',
      below_one,
      used_by=_TWO_MOMENTS,
  )
  client_beta2: float | None = field(
      None,
      'β₂ of client Adam and Yogi (0.999)',
      below_one,
      used_by=_TWO_MOMENTS,
  )
  client_epsilon: float | None = field(
      None,
      'ε of an adaptive client optimizer, added to the root (0.001)',
      positive,
      used_by=_ADAPTIVE,
  )
  client_initial_accumulator: float | None = field(
      None,
      'v before the first local step (0)',
      not_negative,
      used_by=_ADAPTIVE,
  )
  client_bias_correction: bool | None = field(
      None,
      'bias correction of client Adam and Yogi (paper: off, code: on, as'
      ' Keras)',
      structural=True,
      used_by=_TWO_MOMENTS,
  )

  local_steps: local_steps_lib.LocalSteps = field(
      local_steps_lib.LocalSteps(),
      'Q, steps of a client in a round: all (its batches), a number, or'
      ' random:LOW:HIGH, drawn by round and client',
      structural=True,
      parse=local_steps_lib.LocalSteps.parse,
  )
  relaxation: float = field(
      0.0,
      'β of relaxed initialisation: a client starts at x + β (x − its last'
      ' local model); 0: at x',
      structural=bool,
  )
  track_consistency: bool = field(
      False,
      'measure Δ, the mean of ‖x − last local model‖² (paper: of all clients,'
      ' code: of the cohort); costs an upload and a file per client',
      structural=True,
  )
  num_clients: int | None = field(
      None, 'C, the number of registered clients', positive
  )
  state_dir: str | None = field(
      None,
      'directory where clients keep what they remember between rounds',
      lambda v: None if v else 'a directory',
  )

  def __post_init__(self):
    for name, value in self.form_defaults().items():
      used = self.client_optimizer in _fields(self)[name].metadata['used_by']
      if getattr(self, name) is None and used:
        object.__setattr__(self, name, value)

  def form_defaults(self) -> dict[str, Any]:
    """Values of what has None for default, by name."""
    return dict(
        client_momentum=0.9,
        client_beta1=0.9,
        client_beta2=0.999,
        client_epsilon=1e-3,
        client_initial_accumulator=0.0,
        client_bias_correction=self.form == 'code',
    )

  def check(self) -> None:
    """Refuses, or warns of, values that do not go together.

    Raises:
      ValueError: One line: what is wrong, and what would be right.
    """
    for name, field in _fields(self).items():
      users = field.metadata['used_by']
      if getattr(self, name) is not None and self.client_optimizer not in users:
        raise ValueError(
            f'{name} is not used by client_optimizer={self.client_optimizer};'
            f' it is used by {", ".join(users)}'
        )
    for name in ('num_clients', 'state_dir'):
      if getattr(self, name) is not None and name not in self.needed():
        raise ValueError(
            f'{name} is not used here: clients have no memory that needs it;'
            f' leave {name} out'
        )
    if self.pull and self.takes_plain_steps:
      dual_range.check_pull(
          self.pull, getattr(self, self.pull), self.client_learning_rate
      )

  def placed(self, num_clients: int, state_dir: str) -> 'Hyperparameters':
    """Adds what only the running program knows, where it is needed.

    Args:
      num_clients: C, the number of registered clients, unless it was given.
      state_dir: Where clients keep their memory, unless it was given.

    Returns:
      The complete hyperparameters.
    """
    known: dict[str, Any] = dict(num_clients=num_clients, state_dir=state_dir)
    return dataclasses.replace(
        self,
        **{n: known[n] for n in self.needed() if getattr(self, n) is None},
    )

  def number(self, name: str) -> float:
    """What the state of a process holds of a hyperparameter."""
    value = getattr(self, name)
    return value.number if isinstance(value, step_rule.StepRule) else value

  def structure(self) -> tuple[tuple[str, Hashable], ...]:
    """What of each hyperparameter makes another graph."""
    found = []
    for name, field in _fields(self).items():
      structural = field.metadata['structural']
      if structural:
        value = getattr(self, name)
        found.append((name, value if structural is True else structural(value)))
    return tuple(found)

  def to_json(self) -> dict[str, Any]:
    """Every hyperparameter, as JSON values that `parse` takes."""
    plain = (type(None), bool, int, float, str)
    values = {name: getattr(self, name) for name in _fields(self)}
    return {
        name: value if isinstance(value, plain) else str(value)
        for name, value in values.items()
    }

  @property
  def takes_plain_steps(self) -> bool:
    """Whether clients take gradient steps, neither adaptive nor clipped."""
    return self.client_optimizer == 'sgd' and self.max_gradient_norm is None

  def needed(self) -> tuple[str, ...]:
    """Names of the hyperparameters without default that must be given."""
    needed: tuple[str, ...] = ()
    if self.relaxation or self.track_consistency:
      needed += ('state_dir',)
    if self.track_consistency:
      needed += ('num_clients',)
    return needed


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocallyAdaptive(Hyperparameters):
  """What Local Adaptivity adds."""

  client_state: str = field(
      'restart',
      'the client optimizer restarts every round, or starts from a state that'
      ' the server holds and averages (sync)',
      one_of('restart', 'sync'),
      structural=True,
  )
  correction: str = field(
      'none',
      'correction of the bias of unequal preconditioners by N_i, at each client'
      ' (local) or jointly at the server (global)',
      one_of('none', 'local', 'global'),
      structural=True,
  )

  def check(self) -> None:
    super().check()
    if self.client_state == 'sync' and self.correction != 'none':
      raise ValueError(
          f'correction={self.correction} is defined for a client optimizer that'
          ' restarts; use client_state=restart or correction=none'
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAvg(LocallyAdaptive):
  """FedAvg: the server takes a gradient step of rate η."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAvgM(LocallyAdaptive):
  """FedAvgM: the server has momentum."""

  server_momentum: float = field(
      0.9, 'u = server_momentum · u + Δ, x = x − η u', below_one
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAdagrad(LocallyAdaptive):
  """FedAdagrad."""

  tau: float = field(
      1e-3, 'τ, the adaptivity, added to the root of v', positive
  )
  beta1: float = field(0.0, 'β₁, first-moment decay of the server', below_one)
  initial_accumulator: float | None = field(
      None, 'v before the first round (paper: τ², code: 0)', not_negative
  )

  def form_defaults(self) -> dict[str, Any]:
    paper = self.form == 'paper'
    return dict(
        super().form_defaults(),
        initial_accumulator=self.tau**2 if paper else 0.0,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAdam(FedAdagrad):
  """FedAdam."""

  beta1: float = field(0.9, 'β₁, first-moment decay of the server', below_one)
  beta2: float | None = field(
      None,
      'β₂, second-moment decay of the server (paper: 0.99, code: 0.999)',
      below_one,
  )
  bias_correction: bool | None = field(
      None,
      'η √(1 − β₂^t) / (1 − β₁^t) in place of η (paper: off, code: on)',
      structural=True,
  )

  def form_defaults(self) -> dict[str, Any]:
    paper = self.form == 'paper'
    return dict(
        super().form_defaults(),
        beta2=0.99 if paper else 0.999,
        bias_correction=not paper,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedYogi(FedAdam):
  """FedYogi."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedProx(LocallyAdaptive):
  """FedProx: clients are pulled back to the server model."""

  pull = 'mu'

  mu: float = field(
      0.01, 'μ of the proximal term μ/2 ‖x_i − x‖²', not_negative
  )


def _weighting_uniform():
  field = Hyperparameters.__dataclass_fields__['client_weighting']
  return dataclasses.field(default='uniform', metadata=field.metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedInit(FedAvg):
  """FedInit: FedAvg with relaxed initialisation."""

  client_weighting: str = _weighting_uniform()
  relaxation: float = field(
      0.1,
      'β of relaxed initialisation: a client starts at x + β (x − its last'
      ' local model); 0: at x',
      structural=bool,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedSam(Hyperparameters):
  """FedSAM: clients descend along the gradient at a worse point nearby."""

  client_weighting: str = _weighting_uniform()
  rho: float = field(
      0.1, 'ρ, how far the worse point is from the local model', not_negative
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _PerStep(Hyperparameters):
  """Algorithms that read a mean gradient off K_i local steps of rate η_l."""

  client_weighting: str = _weighting_uniform()

  def check(self):
    super().check()
    if self.client_optimizer != 'sgd':
      raise ValueError(
          f'client_optimizer={self.client_optimizer} is not defined here: an'
          ' average gradient is read off steps of plain SGD; use'
          ' client_optimizer=sgd'
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedCm(_PerStep):
  """FedCM: clients mix in the cohort's last average gradient."""

  alpha: float = field(
      0.1, 'α, the share of the own gradient in a step', share
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scaffold(_PerStep):
  """SCAFFOLD: control variates correct the drift of clients."""

  option: int = field(
      2,
      'new control variate: 1 the gradient at the server model, 2 the average'
      ' gradient of the local steps',
      one_of(1, 2),
      structural=True,
  )

  def needed(self) -> tuple[str, ...]:
    return ('state_dir', 'num_clients')


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedDyn(Hyperparameters):
  """FedDyn: each client's loss is regularised by what it did before."""

  pull = 'alpha'

  client_weighting: str = _weighting_uniform()
  alpha: float = field(0.1, 'α of the dynamic regulariser', positive)

  def needed(self) -> tuple[str, ...]:
    return ('state_dir', 'num_clients')


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAdmm(Hyperparameters):
  """Federated ADMM: FedVRA with a = d = 1."""

  dual_step: ClassVar[step_rule.StepRule] = step_rule.StepRule()
  aggregation_step: ClassVar[step_rule.StepRule] = step_rule.StepRule()

  client_weighting: str = _weighting_uniform()
  gamma: float = field(0.1, 'γ of the penalty γ/2 ‖x_i − x‖²', positive)
  per_client: per_client_lib.PerClient = field(
      per_client_lib.PerClient(),
      'what differs between clients, JSON such as {"gamma": {"client id": 0.2},'
      ' "local_steps": {"client id": [3, 1]}}; also client_learning_rate,'
      ' weight (ω before division by the sum, 1 if not listed), and of fedvra'
      ' dual_step and aggregation_step',
      structural=True,
      parse=per_client_lib.PerClient.parse,
  )

  def check(self) -> None:
    super().check()
    if self.client_weighting != 'uniform':
      raise ValueError(
          f'client_weighting={self.client_weighting} needs ω of all clients'
          ' here; list them as per_client={"weight": …}'
      )
    own, listed = self.per_client.values, self.per_client.clients
    if self.num_clients is not None and len(listed) > self.num_clients:
      raise ValueError(
          f'per_client: {len(listed)} clients are listed, and num_clients is'
          f' {self.num_clients}; expected at least {len(listed)}'
      )
    for name in ('dual_step', 'aggregation_step'):
      if name in own and name not in _fields(self):
        raise ValueError(f'per_client: {name} is 1 in federated ADMM')
    aggregation = self.aggregation_step.rule
    if 'aggregation_step' in own and aggregation != 'constant':
      raise ValueError(
          'per_client: aggregation_step goes with a number as the common'
          f' aggregation_step, not with {aggregation}'
      )
    if self.dual_step.rule == 'rho' and self.client_optimizer != 'sgd':
      raise ValueError(
          'dual_step=rho:R is defined for plain SGD; use client_optimizer=sgd'
      )
    for warning in dual_range.check_all(
        self.dual_step,
        self.gamma,
        self.client_learning_rate,
        self.local_steps.telling,
        own,
        self.takes_plain_steps,
    ):
      warnings.warn(warning, stacklevel=_callers_level())

  def needed(self) -> tuple[str, ...]:
    return ('state_dir', 'num_clients')


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedVra(FedAdmm):
  """FedVRA: federated ADMM with adaptive dual and aggregation steps."""

  dual_step: step_rule.StepRule = field(  # type: ignore[misc]
      step_rule.StepRule(),
      'a of the dual step: a number, or rho:R, a = R / (γ η Q̃), R at most 1',
      structural=lambda step: step.rule,
      parse=functools.partial(step_rule.StepRule.parse, 'dual_step', ('rho',)),
  )
  aggregation_step: step_rule.StepRule = field(  # type: ignore[misc]
      step_rule.StepRule('N/m'),
      'd of the aggregation step: a number, N/m (all clients by those of the'
      ' round), or 1/sum (of ω in the round)',
      structural=lambda step: step.rule,
      parse=functools.partial(
          step_rule.StepRule.parse, 'aggregation_step', ('N/m', '1/sum')
      ),
  )


def _callers_level() -> int:
  """The `stacklevel` of the first caller outside this package."""
  package = __name__.partition('.')[0]
  frame, level = sys._getframe(1), 1  # pylint: disable=protected-access
  while frame.f_back and frame.f_globals['__name__'].startswith(package):
    frame, level = frame.f_back, level + 1
  return level


def meaning(cls: type, name: str) -> str:
  """What a hyperparameter means."""
  return _fields(cls)[name].metadata['help']


def _fields(of: Any) -> dict[str, dataclasses.Field]:
  return {f.name: f for f in dataclasses.fields(of)}


def parse(
    algorithm: str,
    cls: type,
    given: Mapping[str, Any],
    registry: Mapping[str, type],
) -> Hyperparameters:
  """Checks hyperparameters and fills a dataclass with them.

  Args:
    algorithm: The algorithm's name, for messages.
    cls: Its hyperparameter dataclass.
    given: Values by name.
    registry: Hyperparameter dataclasses of all algorithms, by name.

  Returns:
    An instance of `cls`.

  Raises:
    ValueError: If a name is unknown or unused by the algorithm, or a value is
      impossible; one line that says which and what would be right.
  """
  fields = _fields(cls)
  values = {}
  for name, value in given.items():
    if name not in fields:
      raise ValueError(
          f'{algorithm} has no hyperparameter {name}; '
          + _instead(name, fields, registry)
      )
    values[name] = _checked(fields[name], value)
  hp = cls(**values)
  hp.check()
  return hp


def _instead(name, fields, registry):
  """What may have been meant by a hyperparameter that is not there."""
  users = [
      other
      for other, cls in sorted(registry.items())
      if name in _fields(cls)
  ]
  if users:
    return f'it belongs to {", ".join(users)}'
  hint = spelling.near(name, fields)
  return hint or f'it takes {", ".join(sorted(fields))}'


def _checked(field, value):
  """The value in the field's type, or one line saying what would be right."""
  optional = type(None) in typing.get_args(field.type)
  if value is not None and field.metadata['parse']:
    return field.metadata['parse'](value)
  if value is None:
    if optional:
      return None
    raise ValueError(f'{field.name}: no value given; expected {_kind(field)}')
  wants = _kind(field)
  if wants == 'true or false':
    if isinstance(value, str) and value.lower() in ('true', 'false'):
      return value.lower() == 'true'
    if not isinstance(value, bool):
      raise ValueError(f'{field.name}: {value!r}; expected {wants}')
    return value
  if wants == 'text':
    if isinstance(value, os.PathLike):
      value = os.fspath(value)
    if not isinstance(value, str):
      raise ValueError(f'{field.name}: {value!r}; expected {wants}')
  else:
    if isinstance(value, bool):
      raise ValueError(f'{field.name}: {value!r}; expected {wants}')
    try:
      number = float(value)
    except (TypeError, ValueError):
      raise ValueError(f'{field.name}: {value!r}; expected {wants}') from None
    if not math.isfinite(number):
      wants = wants.replace('a number', 'a finite number')
      raise ValueError(f'{field.name}: {value!r}; expected {wants}')
    if wants == 'a whole number':
      if number != int(number):
        raise ValueError(f'{field.name}: {value!r}; expected {wants}')
      value = int(number)
    else:
      value = number + 0.0  # There is one zero.
  check = field.metadata['check']
  right = check(value) if check else None
  if right:
    raise ValueError(f'{field.name}: {value!r}; expected {right}')
  return value


def _kind(field):
  if field.type in (bool, bool | None):
    return 'true or false'
  if field.type in (int, int | None):
    return 'a whole number'
  if field.type in (float, float | None):
    return 'a number'
  return 'text'
