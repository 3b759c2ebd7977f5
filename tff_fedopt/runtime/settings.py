"""How computations are to run; known without importing TensorFlow."""

import dataclasses
import re

ENGINES = ('local', 'worker')

_DEVICE = re.compile(r'(cpu|gpu)(?::(\d+(?:,\d+)*))?')


@dataclasses.dataclass(frozen=True)
class Settings:
  """What `runtime.use` takes, checked.

  Raises:
    ValueError: If a value is impossible or contradicts another.
  """

  engine: str | None = None
  devices: tuple[str, ...] = ()
  max_concurrent_clients: int | None = None
  workers: tuple[str, ...] = ()
  deterministic_ops: bool = False

  def __post_init__(self):
    if self.engine not in (None, *ENGINES):
      raise ValueError(
          f'engine must be {" or ".join(ENGINES)}, got {self.engine!r}'
      )
    for name, example in (('devices', 'gpu'), ('workers', 'host:port')):
      value = getattr(self, name)
      if isinstance(value, str):
        raise ValueError(
            f'{name} must be a list like [{example!r}], got {value!r}'
        )
      object.__setattr__(self, name, tuple(value))
    for device in self.devices:
      parse_device(device)
    for address in self.workers:
      host, _, port = address.rpartition(':')
      if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(
            f"a worker's address must be host:port, got {address!r}"
        )
    if self.max_concurrent_clients is not None:
      if self.max_concurrent_clients < 1:
        raise ValueError(
            'max_concurrent_clients must be at least 1, got'
            f' {self.max_concurrent_clients}'
        )
      if self.workers:
        raise ValueError(
            'max_concurrent_clients is for the engines of this machine; start'
            ' remote workers with --max_concurrent_computation_calls instead'
        )
    for_local = self.devices or self.deterministic_ops
    if for_local and (self.workers or self.engine == 'worker'):
      raise ValueError(
          "devices and deterministic_ops are for engine='local'; a worker"
          ' computes on the CPU'
      )
    if self.workers and self.engine == 'local':
      raise ValueError(
          "workers are for engine='worker'; the local engine has none"
      )

  def implied_engine(self) -> str | None:
    """The engine that is asked for, by name or by what only it has."""
    if self.workers:
      return 'worker'
    if self.devices or self.deterministic_ops:
      return 'local'
    return self.engine

  def suffix(self) -> str:
    """What tells directories apart whose numbers differ in rounding.

    Empty for the local engine on the CPU.
    """
    if self.engine == 'worker' or self.workers:
      return '-worker'
    kinds = {parse_device(device)[0] for device in self.devices} - {'cpu'}
    return ''.join(f'-{kind}' for kind in sorted(kinds))


def parse_device(device: str) -> tuple[str, list[int] | None]:
  """Splits `gpu:0,1` into its kind and numbers; None stands for all.

  Args:
    device: The text.

  Raises:
    ValueError: If it has another form.
  """
  match = _DEVICE.fullmatch(device)
  if not match:
    raise ValueError(
        f'a device must be cpu, gpu or, by number, gpu:0,1; got {device!r}'
    )
  kind, numbers = match.groups()
  return kind, list(map(int, numbers.split(','))) if numbers else None
