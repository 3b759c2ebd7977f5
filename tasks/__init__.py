"""The seven tasks of Adaptive Federated Optimization, and those of users.

`names` and `info` need no TensorFlow; `load` imports it and reads data. A task
of one's own is a module with `INFO` and `load(request)`, made known by
`register`, or what `from_client_data` makes of client data and a model.
"""

from collections.abc import Callable
import difflib
import functools
import importlib
import re
import types
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


def module_of(name: str) -> str:
  """The name of the module that defines a task.

  Raises:
    ValueError: If there is no such task.
  """
  source = _module(name)
  return getattr(source, '__name__', None) or source.load.__module__


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
  if batch_size is None:
    batch_size = module.INFO.default('batch_size')
  if local_epochs is None:
    local_epochs = module.INFO.default('local_epochs')
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


def register(source: Any) -> _task.TaskInfo:
  """Makes a task of one's own known to `names`, `info` and `load`.

  Args:
    source: A module, its dotted name, or any object, that has `INFO`, a
      `task.TaskInfo`, and `load(request)`, which turns a `task.Request` into a
      `task.Task`. It may be registered again.

  Returns:
    Its `INFO`.

  Raises:
    ValueError: If it has not, or there is another task of that name.
  """
  shown = source
  if isinstance(source, str):
    try:
      source = importlib.import_module(source)
    except ModuleNotFoundError as e:
      raise ValueError(f'no task in {shown!r}: {e}') from e
  found = getattr(source, 'INFO', None)
  if not isinstance(found, _task.TaskInfo) or not callable(
      getattr(source, 'load', None)
  ):
    raise ValueError(
        f'no task in {shown!r}: expected INFO, a tasks.task.TaskInfo, and'
        ' load(request)'
    )
  if not re.fullmatch(r'\w+', found.name, re.ASCII):
    raise ValueError(
        f'a task named {found.name!r}; expected letters, digits and _'
    )
  if _sources.get(found.name, source) is not source:
    raise ValueError(
        f'there is a task {found.name!r} already; name it otherwise'
    )
  _sources[found.name] = source
  return found


def from_client_data(
    name: str,
    train: Any,
    test: Any,
    model_fn: Callable[[], Any],
    *,
    metric: _task.Metric,
    title: str = '',
    weighting: str = 'examples',
    published: _task.Published = _task.Published(),
) -> _task.TaskInfo:
  """Registers a task of client data and a model, as TFF has them.

  A round shuffles a client's examples with the run's seed, goes through them
  `local_epochs` times and batches them. All profiles have the same data and
  model.

  Args:
    name: Of the task.
    train: `tff.simulation.datasets.ClientData` of the training clients; an
      element is one example, not batched, in the structure of the model's
      `input_spec`.
    test: The same of the clients that are validated and tested on.
    model_fn: Returns a new `tff.learning.models.VariableModel`, always with the
      same initial weights: give its initializers a seed.
    metric: Which of the model's metrics tables show.
    title: One line.
    weighting: `examples`, or `tokens` if the model has a metric `num_tokens`.
    published: What runs have where they are told nothing else.

  Returns:
    What is known of the task.

  Raises:
    ValueError: If there is another task of that name.
  """
  @functools.cache
  def digest():
    from tasks.data import plain_clients  # pylint: disable=g-import-not-at-top

    return {
        what: plain_clients.PlainClients(clients, batch_size=1).digest()
        for what, clients in (('train', train), ('test', test))
    }

  own = _task.TaskInfo(
      name=name,
      title=title or name,
      metric=metric,
      weighting=weighting,
      published=published,
      digest=digest,
  )

  def load_own(request):
    from tasks import pipeline  # pylint: disable=g-import-not-at-top

    return pipeline.from_client_data(own, request, train, test, model_fn)

  # The code that decides is the model's.
  module = getattr(model_fn, 'func', model_fn).__module__
  return register(
      types.SimpleNamespace(INFO=own, load=load_own, __name__=module)
  )


def _module(name):
  if name not in _sources:
    near = difflib.get_close_matches(str(name), _sources, n=1)
    hint = f'did you mean {near[0]}?' if near else ', '.join(_sources)
    raise ValueError(f'There is no task {name!r}; {hint}')
  source = _sources[name]
  return importlib.import_module(source) if isinstance(source, str) else source
