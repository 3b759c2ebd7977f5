"""The seven tasks of Adaptive Federated Optimization, one file each.

`names` and `info` need no TensorFlow; `load` imports it and reads data.
"""

import difflib
import importlib
from typing import Any

from tasks import task as _task

PUBLISHED = (
    'cifar10',
    'cifar100',
    'emnist_autoencoder',
    'emnist_character',
    'shakespeare',
    'stackoverflow_tag',
    'stackoverflow_word',
)
# Name -> the module that has its INFO and load, imported when asked for.
_sources: dict[str, Any] = {name: f'tasks.{name}' for name in PUBLISHED}


def names() -> list[str]:
  """The names of all tasks: the published ones, then those registered."""
  return list(_sources)


def info(name: str) -> _task.TaskInfo:
  """What is known of a task before any data is read.

  Args:
    name: One of `names()`.

  Returns:
    Metric, weighting, published setting and options.

  Raises:
    ValueError: If there is no such task.
  """
  return _module(name).INFO


def load(
    name: str,
    *,
    profile: str = 'quick',
    data_dir: str | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    local_epochs: int | None = None,
    **options: Any,
) -> _task.Task:
  """Opens the data of a task and puts the model beside it.

  Args:
    name: One of `names()`.
    profile: `quick` has a smaller model, and embedded synthetic data unless
      `data_dir` is given; `small` and `paper` have the published model and
      read real files.
    data_dir: Folder of the data files; None for TFF's own cache (`small` and
      `paper`).
    seed: Seed of the initial weights.
    batch_size: Examples per batch; None for the published one.
    local_epochs: Passes over a client's examples per round; None for the
      published number.
    **options: Options of the task; see `info(name).options`.

  Returns:
    A `Task`.

  Raises:
    ValueError: If a value is impossible, or the data is missing or unusable
      (`tasks.data.sources.DataError`).
  """
  module = _module(name)
  published = module.INFO.published
  batch_size = published.batch_size if batch_size is None else batch_size
  if local_epochs is None:
    local_epochs = published.local_epochs
  for field, value in dict(
      batch_size=batch_size, local_epochs=local_epochs
  ).items():
    if value < 1:
      raise ValueError(f'{field}: {value}; must be 1 or more')
  return module.load(
      _task.Request(
          profile=profile,
          data_dir=data_dir,
          seed=seed,
          batch_size=batch_size,
          local_epochs=local_epochs,
          options=module.INFO.resolve(profile, options),
      )
  )


def _module(name):
  if name not in _sources:
    near = difflib.get_close_matches(str(name), _sources, n=1)
    hint = f'did you mean {near[0]}?' if near else ', '.join(_sources)
    raise ValueError(f'There is no task {name!r}; {hint}')
  source = _sources[name]
  return importlib.import_module(source) if isinstance(source, str) else source
