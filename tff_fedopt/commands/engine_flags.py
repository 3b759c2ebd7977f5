"""Flags that say what computations run on."""

from absl import flags

from tff_fedopt import runtime
from tff_fedopt.commands import command_line
from tff_fedopt.runtime import settings as settings_lib


def define(values: flags.FlagValues) -> None:
  """Defines the flags."""
  section = command_line.Section(values, 'what it runs on (docs/engines.md)')
  section.choice(
      'engine',
      None,
      settings_lib.ENGINES,
      'in this process, or in a process of TFF on the CPU (default:'
      f' {runtime.DEFAULT_ENGINE})',
  )
  section.text('devices', None, 'cpu, gpu (all) or gpu:0,1 (default: cpu)')
  section.switch(
      'deterministic_ops', False, 'only deterministic kernels, slower on a GPU'
  )


def choose(
    values: flags.FlagValues, max_concurrent_clients: int | None = None
) -> None:
  """Makes what the flags say what computations will run on.

  Args:
    values: The flags.
    max_concurrent_clients: As `runtime.use` takes it.

  Raises:
    ValueError: If they contradict each other or name a device that is not
      there; whether it is costs an import of TensorFlow, for a GPU only.
  """
  settings = runtime.Settings(
      engine=values.engine,
      devices=(values.devices,) if values.devices else (),
      max_concurrent_clients=max_concurrent_clients,
      deterministic_ops=values.deterministic_ops,
  )
  if settings.devices not in ((), ('cpu',)):
    from tff_fedopt.runtime import devices

    devices.find(settings.devices)
  runtime.choose(settings)
