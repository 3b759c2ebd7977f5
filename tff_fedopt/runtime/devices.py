"""The devices on which the local engine computes."""

from collections.abc import Sequence
import contextlib

import tensorflow as tf

from tff_fedopt.runtime import settings


def find(devices: Sequence[str]) -> tuple[str, ...]:
  """Returns TensorFlow's names of devices.

  TensorFlow takes a GPU's memory as it needs it, if this is called first.

  Args:
    devices: Each `cpu` or `gpu` (all of them) or, such as `gpu:0,1`, some.

  Raises:
    ValueError: If one is not there; says what is.
  """
  for gpu in tf.config.list_physical_devices('GPU'):
    with contextlib.suppress(RuntimeError):  # TensorFlow runs already.
      tf.config.experimental.set_memory_growth(gpu, True)
  names = []
  for device in devices:
    kind, numbers = settings.parse_device(device)
    there = tf.config.list_logical_devices(kind.upper())
    if not there:
      raise ValueError(
          f'{device}: TensorFlow found no GPU, only the CPU; install the NVIDIA'
          ' driver and `bash scripts/setup.sh --with gpu`, or use cpu'
      )
    for number in range(len(there)) if numbers is None else numbers:
      if number >= len(there):
        raise ValueError(
            f'{device}: there is no {kind}:{number}; TensorFlow found'
            f' {kind}:0{f" to {kind}:{len(there) - 1}" if there[1:] else ""}'
        )
      names.append(there[number].name)
  if len(set(names)) < len(names):
    raise ValueError(f'devices: {", ".join(devices)} names one twice')
  return tuple(names)


def is_one_cpu(names: Sequence[str]) -> bool:
  """Whether these of TensorFlow's devices are the CPU as a whole."""
  return len(names) == 1 and 'CPU' in names[0]


def make_deterministic() -> None:
  """Makes TensorFlow take only deterministic kernels, in all of the process.

  It then refuses what draws from a generator without a seed.
  """
  tf.config.experimental.enable_op_determinism()


def models(names: Sequence[str]) -> list[str]:
  """Returns what each of TensorFlow's devices is: `CPU`, or the GPU's model."""
  found = []
  for name in names:
    _, _, kind_and_number = name.rpartition('device:')
    kind, _, number = kind_and_number.partition(':')
    if kind == 'GPU':
      gpu = tf.config.list_physical_devices('GPU')[int(number)]
      details = tf.config.experimental.get_device_details(gpu)
      found.append(details.get('device_name', gpu.name))
    else:
      found.append('CPU')
  return found
