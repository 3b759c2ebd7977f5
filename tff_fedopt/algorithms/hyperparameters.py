"""Hyperparameters by algorithm: names, defaults, meaning, ranges, checks.

Nothing here needs TensorFlow, so wrong values are refused before it loads.
"""

from collections.abc import Mapping
import dataclasses
import difflib
import math
import numbers
import os
import typing
from typing import Any
import warnings

from tff_fedopt.algorithms import dual_range
from tff_fedopt.optimizers import schedules
from tff_fedopt.processes import local_steps
from tff_fedopt.processes import per_client

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

# Texts that may be a number.
_NUMBER_TOO = ('local_steps', 'dual_step', 'aggregation_step')

# Which client optimizers use an optional client hyperparameter.
_USED_BY = {
    'client_momentum': _MOMENTUM,
    'client_beta1': ('adam', 'yogi'),
    'client_beta2': ('adam', 'yogi'),
    'client_epsilon': _ADAPTIVE,
    'client_initial_accumulator': _ADAPTIVE,
    'client_bias_correction': ('adam', 'yogi'),
}


def _positive(v):
  return None if v > 0 else 'above 0'


def _not_negative(v):
  return None if v >= 0 else '0 or above'


def _below_one(v):
  return None if 0 <= v < 1 else 'at least 0 and below 1'


def _share(v):
  return None if 0 < v <= 1 else 'above 0 and at most 1'


def _schedule(v):
  schedules.parse(v)


def _local_steps(v):
  local_steps.parse(v)


def _per_client(v):
  per_client.parse(v)


def _one_of(*choices):
  def check(v):
    return None if v in choices else 'one of ' + ', '.join(map(str, choices))

  return check


def _field(default, meaning, check=None):
  return dataclasses.field(
      default=default, metadata=dict(help=meaning, check=check)
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hyperparameters:
  """What every algorithm takes. `None` means the default of the form."""

  form: str = _field(
      'paper',
      "'paper' follows the algorithm box, 'code' the authors' code",
      _one_of(*FORMS),
  )
  client_learning_rate: float = _field(0.1, 'η_l', _positive)
  client_learning_rate_schedule: str = _field(
      'constant',
      'η_l by round t: constant, exponential:RATE:STEPS, inverse_sqrt:RATE:STEPS'
      ' or inverse_linear:RATE:STEPS',
      _schedule,
  )
  server_learning_rate: float = _field(1.0, 'η', _positive)
  client_weighting: str = _field(
      'examples',
      'weight of a client in the average: its examples n_i, its non-pad tokens,'
      ' or 1',
      _one_of(*WEIGHTINGS),
  )
  weight_decay: float = _field(
      0.0,
      'λ of the term λ/2 ‖x‖² in local training',
      _not_negative,
  )
  max_gradient_norm: float | None = _field(
      None, 'local gradients are clipped at this global norm', _positive
  )
  client_optimizer: str = _field(
      'sgd', 'the client optimizer', _one_of(*CLIENT_OPTIMIZERS)
  )
  client_momentum: float | None = _field(
      None, 'ρ of a client optimizer with momentum (0.9)', _below_one
  )
  client_beta1: float | None = _field(
      None, 'β₁ of client Adam and Yogi (0.9)', _below_one
  )
  client_beta2: float | None = _field(
      None, 'β₂ of client Adam and Yogi (0.999)', _below_one
  )
  client_epsilon: float | None = _field(
      None,
      'ε of an adaptive client optimizer, added to the root (0.001)',
      _positive,
  )
  client_initial_accumulator: float | None = _field(
      None, 'v before the first local step (0)', _not_negative
  )
  client_bias_correction: bool | None = _field(
      None,
      'bias correction of client Adam and Yogi (paper: off, code: on, as Keras)',
  )

  local_steps: str = _field(
      'all',
      'Q, steps of a client in a round: all (its batches), a number, or'
      ' random:LOW:HIGH, drawn by round and client',
      _local_steps,
  )
  relaxation: float = _field(
      0.0,
      'β of relaxed initialisation: a client starts at x + β (x − its last local'
      ' model); 0: at x',
  )
  track_consistency: bool = _field(
      False,
      'measure Δ, the mean of ‖x − last local model‖² (paper: of all clients,'
      ' code: of the cohort); costs an upload and a file per client',
  )
  num_clients: int | None = _field(
      None, 'C, the number of registered clients', _positive
  )
  state_dir: str | None = _field(
      None,
      'directory where clients keep what they remember between rounds',
      lambda v: None if v else 'a directory',
  )

  @property
  def takes_plain_steps(self) -> bool:
    """Whether clients take gradient steps, neither adaptive nor clipped."""
    return self.client_optimizer == 'sgd' and self.max_gradient_norm is None

  def needed(self) -> tuple[str, ...]:
    """Names of the hyperparameters without default that must be given."""
    needed = ()
    if self.relaxation or self.track_consistency:
      needed += ('state_dir',)
    if self.track_consistency:
      needed += ('num_clients',)
    return needed

  def resolved(self) -> dict[str, Any]:
    """Every hyperparameter with its value, the form's defaults filled in."""
    values = dataclasses.asdict(self)
    defaults = dict(
        client_momentum=0.9,
        client_beta1=0.9,
        client_beta2=0.999,
        client_epsilon=1e-3,
        client_initial_accumulator=0.0,
        client_bias_correction=self.form == 'code',
        **self.form_defaults(),
    )
    for name, value in defaults.items():
      if name in values and values[name] is None:
        values[name] = value
    return values

  def form_defaults(self) -> dict[str, Any]:
    """Defaults, beside the clients', that depend on the form."""
    return {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocallyAdaptive(Hyperparameters):
  """What Local Adaptivity adds."""

  client_state: str = _field(
      'restart',
      'the client optimizer restarts every round, or starts from a state that'
      ' the server holds and averages (sync)',
      _one_of('restart', 'sync'),
  )
  correction: str = _field(
      'none',
      'correction of the bias of unequal preconditioners by N_i, at each client'
      ' (local) or jointly at the server (global)',
      _one_of('none', 'local', 'global'),
  )

  def __post_init__(self):
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

  server_momentum: float = _field(
      0.9, 'u = server_momentum · u + Δ, x = x − η u', _below_one
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAdagrad(LocallyAdaptive):
  """FedAdagrad."""

  tau: float = _field(
      1e-3, 'τ, the adaptivity, added to the root of v', _positive
  )
  beta1: float = _field(0.0, 'β₁, first-moment decay of the server', _below_one)
  initial_accumulator: float | None = _field(
      None, 'v before the first round (paper: τ², code: 0)', _not_negative
  )

  def form_defaults(self):
    paper = self.form == 'paper'
    return dict(initial_accumulator=self.tau**2 if paper else 0.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAdam(FedAdagrad):
  """FedAdam."""

  beta1: float = _field(0.9, 'β₁, first-moment decay of the server', _below_one)
  beta2: float | None = _field(
      None,
      'β₂, second-moment decay of the server (paper: 0.99, code: 0.999)',
      _below_one,
  )
  bias_correction: bool | None = _field(
      None,
      'η √(1 − β₂^t) / (1 − β₁^t) in place of η (paper: off, code: on)',
  )

  def form_defaults(self):
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

  mu: float = _field(
      0.01, 'μ of the proximal term μ/2 ‖x_i − x‖²', _not_negative
  )

  def __post_init__(self):
    super().__post_init__()
    if self.takes_plain_steps:
      dual_range.check_pull('mu', self.mu, self.client_learning_rate)


def _weighting_uniform():
  field = Hyperparameters.__dataclass_fields__['client_weighting']
  return dataclasses.field(default='uniform', metadata=field.metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedInit(FedAvg):
  """FedInit: FedAvg with relaxed initialisation."""

  client_weighting: str = _weighting_uniform()
  relaxation: float = _field(
      0.1,
      'β of relaxed initialisation: a client starts at x + β (x − its last local'
      ' model); 0: at x',
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedSam(Hyperparameters):
  """FedSAM: clients descend along the gradient at a worse point nearby."""

  client_weighting: str = _weighting_uniform()
  rho: float = _field(
      0.1, 'ρ, how far the worse point is from the local model', _not_negative
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _PerStep(Hyperparameters):
  """Algorithms that read an average gradient off K_i local steps of rate η_l."""

  client_weighting: str = _weighting_uniform()

  def __post_init__(self):
    if self.client_optimizer != 'sgd':
      raise ValueError(
          f'client_optimizer={self.client_optimizer} is not defined here: an'
          ' average gradient is read off steps of plain SGD; use'
          ' client_optimizer=sgd'
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedCm(_PerStep):
  """FedCM: clients mix in the cohort's last average gradient."""

  alpha: float = _field(
      0.1, 'α, the share of the own gradient in a step', _share
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scaffold(_PerStep):
  """SCAFFOLD: control variates correct the drift of clients."""

  option: int = _field(
      2,
      'new control variate: 1 the gradient at the server model, 2 the average'
      ' gradient of the local steps',
      _one_of(1, 2),
  )

  def needed(self):
    return ('state_dir', 'num_clients')


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedDyn(Hyperparameters):
  """FedDyn: each client's loss is regularised by what it did before."""

  client_weighting: str = _weighting_uniform()
  alpha: float = _field(0.1, 'α of the dynamic regulariser', _positive)

  def __post_init__(self):
    if self.takes_plain_steps:
      dual_range.check_pull('alpha', self.alpha, self.client_learning_rate)

  def needed(self):
    return ('state_dir', 'num_clients')


def _number_or(*rules):
  """A check of a text that is a number from 0 on, or one of the rules."""

  def check(v):
    try:
      kind, number = _rule(v)
    except ValueError:
      kind, number = None, 0
    if kind in ('constant', *rules) and number >= 0:
      return None
    return '0 or above, or ' + ' or '.join(
        'rho:R with R in [0, 1]' if r == 'rho' else r for r in rules
    )

  return check


def _rule(text):
  """(rule, number) of `dual_step` or `aggregation_step`."""
  if text in ('N/m', '1/sum'):
    return text, 1.0
  kind, _, number = text.rpartition(':')
  value = float(number)
  if not math.isfinite(value) or (kind == 'rho' and value > 1):
    raise ValueError(text)
  return kind or 'constant', value


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAdmm(Hyperparameters):
  """Federated ADMM: FedVRA with a = d = 1."""

  client_weighting: str = _weighting_uniform()
  gamma: float = _field(0.1, 'γ of the penalty γ/2 ‖x_i − x‖²', _positive)
  per_client: str | None = _field(
      None,
      'what differs between clients, JSON such as {"gamma": {"client id": 0.2},'
      ' "local_steps": {"client id": [3, 1]}}; also client_learning_rate,'
      ' weight (ω before division by the sum, 1 if not listed), and of fedvra'
      ' dual_step and aggregation_step',
      _per_client,
  )

  def __post_init__(self):
    if self.client_weighting != 'uniform':
      raise ValueError(
          f'client_weighting={self.client_weighting} needs ω of all clients'
          ' here; list them as per_client={"weight": …}'
      )
    own = per_client.parse(self.per_client or '{}')
    listed = {i for by_id in own.values() for i in by_id}
    if self.num_clients is not None and len(listed) > self.num_clients:
      raise ValueError(
          f'per_client: {len(listed)} clients are listed, and num_clients is'
          f' {self.num_clients}; expected at least {len(listed)}'
      )
    for name in ('dual_step', 'aggregation_step'):
      if name in own and name not in self.__dataclass_fields__:
        raise ValueError(f'per_client: {name} is 1 in federated ADMM')
    rules = self.rules()
    if 'aggregation_step' in own and rules['aggregation'][0] != 'constant':
      raise ValueError(
          'per_client: aggregation_step goes with a number as the common'
          f' aggregation_step, not with {rules["aggregation"][0]}'
      )
    if rules['dual'][0] == 'rho' and self.client_optimizer != 'sgd':
      raise ValueError(
          'dual_step=rho:R is defined for plain SGD; use client_optimizer=sgd'
      )
    for warning in dual_range.check_all(
        rules['dual'],
        self.gamma,
        self.client_learning_rate,
        local_steps.parse(self.local_steps).telling,
        own,
        self.takes_plain_steps,
    ):
      warnings.warn(warning, stacklevel=4)

  def rules(self) -> dict[str, tuple[str, float]]:
    """Rule and number of a (`dual`) and d (`aggregation`)."""
    return dict(dual=('constant', 1.0), aggregation=('constant', 1.0))

  def needed(self):
    return ('state_dir', 'num_clients')

  def resolved(self):
    values = super().resolved()
    for name, (rule, number) in self.rules().items():
      values[f'{name}_rule'] = rule
      values[f'{name}_step'] = number
    return values


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedVra(FedAdmm):
  """FedVRA: federated ADMM with adaptive dual and aggregation steps."""

  dual_step: str = _field(
      '1',
      'a of the dual step: a number, or rho:R, a = R / (γ η Q̃), R at most 1',
      _number_or('rho'),
  )
  aggregation_step: str = _field(
      'N/m',
      'd of the aggregation step: a number, N/m (all clients by those of the'
      ' round), or 1/sum (of ω in the round)',
      _number_or('N/m', '1/sum'),
  )

  def rules(self):
    return dict(
        dual=_rule(self.dual_step), aggregation=_rule(self.aggregation_step)
    )


def meaning(cls: type, name: str) -> str:
  """What a hyperparameter means."""
  return cls.__dataclass_fields__[name].metadata['help']


def parse(
    algorithm: str,
    cls: type,
    given: dict[str, Any],
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
  fields = {f.name: f for f in dataclasses.fields(cls)}
  values = {}
  for name, value in given.items():
    if name not in fields:
      raise ValueError(
          f'{algorithm} has no hyperparameter {name}; '
          + _instead(name, fields, registry)
      )
    values[name] = _checked(fields[name], value)
  chosen = values.get('client_optimizer', fields['client_optimizer'].default)
  for name, users in _USED_BY.items():
    if values.get(name) is not None and chosen not in users:
      raise ValueError(
          f'{name} is not used by client_optimizer={chosen}; it is used by '
          + ', '.join(users)
      )
  return cls(**values)


def _instead(name, fields, registry):
  """What may have been meant by a hyperparameter that is not there."""
  users = [
      other
      for other, cls in sorted(registry.items())
      if name in cls.__dataclass_fields__
  ]
  if users:
    return f'it belongs to {", ".join(users)}'
  near = difflib.get_close_matches(name, fields, n=1)
  if near:
    return f'did you mean {near[0]}?'
  return f'it takes {", ".join(sorted(fields))}'


def _checked(field, value):
  """The value in the field's type, or one line saying what would be right."""
  optional = type(None) in typing.get_args(field.type)
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
    if field.name in _NUMBER_TOO and isinstance(value, numbers.Real):
      value = str(value)
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
      value = number
  check = field.metadata['check']
  right = check(value) if check else None
  if right:
    raise ValueError(f'{field.name}: {value!r}; expected {right}')
  return value


def _kind(field):
  if field.type in (bool, bool | None):
    return 'true or false'
  if field.type in (str, str | None):
    return 'text'
  if field.type in (int, int | None):
    return 'a whole number'
  return 'a number'
