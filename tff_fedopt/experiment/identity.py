"""What a run's numbers belong to: its settings, its data, its code.

Settings are the resolved spec; data are files, by their content, or the code
that makes the embedded ones; code is that of the task, of the algorithm, and of
the loop that runs them. Two runs of one identity have the same numbers.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import functools
import hashlib
import json
from typing import Any

import tasks
from tasks import code_hash
from tasks import synthetic
from tasks.data import content

# What the loop itself decides: who takes part, what is measured and when.
_LOOP = ('evaluation', 'participation', 'rounds', 'sampling')

# A difference in many candidates or files is named by its first ones.
MOST_NAMED = 6


@dataclasses.dataclass(frozen=True)
class Identity:
  """An identity, as JSON values.

  Attributes:
    settings: Name to value, what has none left out.
    data: File to the SHA-256 of its content; empty for embedded data.
    task_code: File to the hash of its code, that of embedded data's generators
      included; see `tasks.code_hash`.
    algorithm_code: File to the hash of its code, the loop's included.
  """

  settings: Mapping[str, Any]
  data: Mapping[str, str]
  task_code: Mapping[str, str]
  algorithm_code: Mapping[str, str]

  @functools.cached_property
  def sha(self) -> str:
    """The SHA-256 of the canonical JSON, in hex, wherever the files are."""
    algorithm_code = sorted(self.algorithm_code.values())
    return sha256([self.settings, self.task_sha, algorithm_code])

  @property
  def task_sha(self) -> str:
    """The same of the task alone: its data and code."""
    return task_sha(self.data, self.task_code)

  def to_json(self) -> dict[str, Any]:
    """Returns the parts by name."""
    parts = dataclasses.fields(self)
    return {part.name: dict(getattr(self, part.name)) for part in parts}

  @classmethod
  def from_json(cls, values: Mapping[str, Any]) -> 'Identity':
    """Returns the identity of `to_json`; missing parts are empty."""
    parts = dataclasses.fields(cls)
    return cls(**{part.name: values.get(part.name, {}) for part in parts})


def of(spec: Any) -> Identity:
  """Returns the identity of a run.

  Args:
    spec: A `spec.RunSpec`.

  Raises:
    ValueError: If a data file is missing (`tasks.data.sources.DataError`).
  """
  data, task_code = of_task(
      spec.task, spec.profile, spec.data_dir, spec.task_options
  )
  return Identity(
      spec.settings(), data, task_code, algorithm_code(spec.algorithm)
  )


def of_task(
    task: str, profile: str, data_dir: str | None, options: Mapping[str, Any]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
  """Returns the data and the code of a task, see `Identity`."""
  info = tasks.info(task)
  code = dict(
      code_hash.of_module(tasks.module_of(task), without=('tasks.synthetic',))
  )
  embedded = profile == 'quick' and data_dir is None
  if embedded and info.dataset in synthetic.names():
    return {}, {**code, **synthetic.code(info.dataset)}
  files = content.of_files(info.files(data_dir, options))
  return {**files, **info.digest()}, code


def algorithm_code(algorithm: str) -> Mapping[str, str]:
  """Returns the code of an algorithm and of the loop, see `Identity`."""
  from tff_fedopt import algorithms

  code = dict(code_hash.of_module(algorithms.module_of(algorithm)))
  package = __name__.rpartition('.')[0]
  for name in _LOOP:
    code.update(code_hash.of_module(f'{package}.{name}', alone=True))
  return code


def task_sha(data: Mapping[str, str], task_code: Mapping[str, str]) -> str:
  """The SHA-256 of a task's data and code, in hex."""
  return sha256([data, sorted(task_code.values())])


def differences(before: Identity, now: Identity) -> list[str]:
  """Says in words in which parts two identities differ.

  Args:
    before: That of what is stored.
    now: That of what is asked for.

  Returns:
    Such as `stored with client_learning_rate 0.03, now 0.01`, `data cifar10.npz
    has changed` or `code of tasks/models/cnn.py has changed`.
  """
  return [
      *of_settings(before.settings, now.settings),
      *of_data(before.data, now.data),
      *of_code(before.task_code, now.task_code),
      *of_code(before.algorithm_code, now.algorithm_code),
  ]


def of_settings(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> list[str]:
  """The settings that differ, in words."""
  return [
      f'stored with {name} {text(before.get(name))}, now {text(now.get(name))}'
      for name in sorted(before.keys() | now.keys())
      if before.get(name) != now.get(name)
  ]


def of_data(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
  """The data files that differ, in words."""
  if bool(before) != bool(now):
    kinds = {False: 'embedded data', True: 'data files'}
    return [f'stored with {kinds[bool(before)]}, now {kinds[bool(now)]}']
  return named(
      f'data {name} has changed'
      for name in sorted(before.keys() | now.keys())
      if before.get(name) != now.get(name)
  )


def of_code(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
  """The modules that differ, in words."""
  return named(
      f'code of {name} has changed'
      for name in code_hash.differences(before, now)
  )


def named(lines: Iterable[str]) -> list[str]:
  """The lines, each once; of many the first, and how many more there are."""
  lines = list(dict.fromkeys(lines))
  left = len(lines) - MOST_NAMED
  return lines if left <= 1 else [*lines[:MOST_NAMED], f'{left} more changes']


def text(value: Any) -> str:
  """A setting's value as one reads it."""
  if value is None:
    return 'none'
  if isinstance(value, float):
    return repr(value).removesuffix('.0')
  return value if isinstance(value, str) else json.dumps(value)


def canonical_json(values: Any) -> str:
  """The one JSON text of a value: sorted keys, no spaces, finite numbers."""
  return json.dumps(
      values,
      sort_keys=True,
      separators=(',', ':'),
      allow_nan=False,
      default=dict,  # Other mappings.
  )


def sha256(values: Any) -> str:
  """The SHA-256 of a value's canonical JSON, in hex."""
  return hashlib.sha256(canonical_json(values).encode('utf-8')).hexdigest()
