"""Flags that say what one run is: from flags to a `RunSpec`, and back."""

from collections.abc import Sequence
import dataclasses
import json
import typing
from typing import Any

from absl import flags

import tasks
from tasks import task as task_lib
from tff_fedopt import algorithms
from tff_fedopt import plugins
from tff_fedopt.commands import command_line
from tff_fedopt.experiment import sampling
from tff_fedopt.experiment import spec as spec_lib

_RUN = 'the run'
_HYPERPARAMETERS = 'hyperparameters'


def define(values: flags.FlagValues) -> None:
  """Defines the flags of a run, hyperparameters excepted."""
  run = command_line.Section(values, _RUN)
  own = ', or MODULE:NAME of a module to import'
  run.text('task', None, f'one of {", ".join(tasks.names())}{own}')
  names = ', '.join(algorithms.names())
  run.text('algorithm', 'fedavg', f'one of {names}{own}')
  for name, meaning in (
      ('rounds', "rounds (default: the task's)"),
      ('cohort_size', "clients per round (default: the task's)"),
      ('batch_size', "examples per local step (default: the task's)"),
      ('local_epochs', "passes over a client's data (default: the task's)"),
      ('validation_examples', 'evaluate on a sample of so many examples'),
  ):
    run.whole(name, None, meaning, least=1)
  run.choice(
      'cohorts',
      'fixed',
      sampling.COHORTS,
      'always cohort_size clients, or so many on average',
  )
  run.text(
      'participation',
      'equal',
      "how likely a client is to take part: equal, examples (by a client's"
      ' number of them), or JSON weights such as {"client id": 2.5}',
  )
  run.whole('evaluate_every', 1, 'rounds between evaluations', least=1)
  run.whole(
      'validation_seed', 0, 'seed of the sample of validation examples', least=0
  )
  run.whole('seed', 0, 'seed of everything random', least=0)
  run.choice(
      'profile',
      'quick',
      task_lib.PROFILES,
      'reduced model and embedded data, or data files',
  )
  run.text('data_dir', None, 'folder with the data files')
  run.texts(
      'task_option', "a task's option, NAME=VALUE; may be given several times"
  )


def define_hyperparameters(values: flags.FlagValues) -> None:
  """Defines a flag for every hyperparameter of every algorithm."""
  section = command_line.Section(values, _HYPERPARAMETERS)
  makers = {
      bool: section.switch,
      float: section.number,
      int: section.whole,
  }
  for name, fields in _hyperparameter_fields().items():
    if name != 'state_dir':  # Clients' memory is part of the run directory.
      make = makers.get(_kind(fields), section.text)
      make(name, None, _meaning(fields))


def _hyperparameter_fields() -> dict[str, dict[str, dataclasses.Field]]:
  """Returns name -> algorithm -> field, over all algorithms."""
  fields = {}
  for algorithm in algorithms.names():
    for field in dataclasses.fields(algorithms.hyperparameters(algorithm)):
      fields.setdefault(field.name, {})[algorithm] = field
  return fields


def _kind(fields) -> type:
  kind = next(iter(fields.values())).type
  alternatives = [t for t in typing.get_args(kind) if t is not type(None)]
  kind = alternatives[0] if alternatives else kind
  # What is parsed is written as text.
  return kind if kind in (bool, float, int) else str


def _meaning(fields) -> str:
  """Meaning, defaults and users of a hyperparameter."""
  by_default = {}
  for algorithm, field in fields.items():
    by_default.setdefault(field.default, []).append(algorithm)
  defaults = '; '.join(
      f'{default}' if len(by_default) == 1 else f'{default} in {", ".join(who)}'
      for default, who in by_default.items()
      if default is not None
  )
  by_text = {}
  for algorithm, field in fields.items():
    by_text.setdefault(field.metadata['help'], []).append(algorithm)
  text = '; '.join(
      meaning if len(by_text) == 1 else f'{meaning} in {", ".join(who)}'
      for meaning, who in by_text.items()
  )
  if defaults:
    text += f' (default: {defaults})'
  if len(fields) < len(algorithms.names()):
    text += f'; {", ".join(fields)} only'
  return text


def spec(values: flags.FlagValues) -> spec_lib.RunSpec:
  """Returns the run that the flags describe.

  Raises:
    ValueError: One line that names what is missing, unknown or impossible.
  """
  if values.task is None:
    raise ValueError(f'--task is missing; one of {", ".join(tasks.names())}')
  values.task = plugins.own_name(values.task)
  values.algorithm = plugins.own_name(values.algorithm)
  names = {f.name for f in dataclasses.fields(spec_lib.RunSpec)}
  return spec_lib.RunSpec(
      hyperparameters={
          flag.name: flag.value
          for flag in values.get_flags_for_module(_HYPERPARAMETERS)
          if flag.value is not None
      },
      task_options=_task_options(values.task_option),
      **{
          flag.name: flag.value
          for flag in values.get_flags_for_module(_RUN)
          if flag.name in names
      },
  )


def _task_options(given: Sequence[str]) -> dict[str, Any]:
  options = {}
  for text in given:
    name, equals, value = text.partition('=')
    if not equals:
      raise ValueError(f'--task_option={text}; expected NAME=VALUE')
    try:
      options[name] = json.loads(value)
    except ValueError:
      options[name] = value
  return options


def lines(run: spec_lib.RunSpec) -> list[str]:
  """Returns the flags of a run, one a line: `spec` makes the same run of them.

  Args:
    run: The run.
  """
  given = run.to_json()
  options = given.pop('task_options')
  given.update(given.pop('hyperparameters'))
  given = {name: value for name, value in given.items() if value is not None}
  return (
      [f'--import={name}' for name in plugins.loaded()]
      + [f'--{name}={_text(value)}' for name, value in given.items()]
      + [f'--task_option={name}={json.dumps(v)}' for name, v in options.items()]
  )


def _text(value) -> str:
  return value if isinstance(value, str) else json.dumps(value)
