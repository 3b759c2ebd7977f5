"""What a number of a table belongs to, and what has changed since.

A stamp holds the settings behind a cell (candidates with every hyperparameter,
baseline, seeds, reduction, quantity), the data of its task, and the code of
task and algorithms. The code of algorithms is recorded and not compared: the
check runs the numbers again, which says more.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import json
from typing import Any

from tasks import code_hash
from tff_fedopt.experiment import identity
from tff_fedopt.tables import plan as plan_lib

# Of a quantity, what decides only how the number is shown or compared.
_SHOWN = ('decimals', 'tolerance', 'logarithmic', 'source')


@dataclasses.dataclass(frozen=True)
class Stamp:
  """What a number belongs to, as JSON values.

  Attributes:
    rule: Seeds, reduction, quantity; of a measurement its function's name and
      arguments.
    candidates: Settings of each, without the seed.
    baseline: The same of what the number is related to.
    data: File to hash, see `experiment.identity.Identity`.
    task_code: The same of the task's code; the measuring module's for a
      measurement.
    algorithm_code: The same of all candidates' algorithms.
  """

  rule: Mapping[str, Any]
  candidates: Sequence[Mapping[str, Any]]
  baseline: Sequence[Mapping[str, Any]]
  data: Mapping[str, str]
  task_code: Mapping[str, str]
  algorithm_code: Mapping[str, str]

  @property
  def spec_sha(self) -> str:
    """Changes with whatever setting decides the number."""
    return identity.sha256([self.rule, self.candidates, self.baseline])[:16]

  @property
  def task_sha(self) -> str:
    """Changes with the task's data and code."""
    return identity.task_sha(self.data, self.task_code)[:16]


def of(planned: plan_lib.PlannedCell, reduction: Any) -> Stamp:
  """Returns the stamp of a cell as it is today.

  Args:
    planned: The cell.
    reduction: The table's rule for the profile.

  Raises:
    ValueError: If a data file is missing (`tasks.data.sources.DataError`).
  """
  cell = planned.cell
  rule = {'seeds': ' '.join(map(str, planned.seeds))}
  if cell.quantity is not None:
    for field in dataclasses.fields(cell.quantity):
      value = getattr(cell.quantity, field.name)
      if field.name not in _SHOWN and value not in (None, ''):
        plain = isinstance(value, (bool, int, float, str))
        rule[f'quantity {field.name}'] = value if plain else str(value)
  if planned.measured:
    call = planned.measured[0]
    rule['function'] = call.name
    rule.update(
        (f'argument {name}', value)
        for name, value in call.measure.arguments.items()
    )
    # As it comes back from a file.
    rule = json.loads(identity.canonical_json(rule))
    return Stamp(rule, (), (), {}, call.code(), {})
  rule['reduction'] = str(reduction)
  data, task_code, algorithm_code = {}, {}, {}
  for run in planned.runs:
    its_data, its_code = identity.of_task(
        run.task, run.profile, run.data_dir, run.task_options
    )
    data.update(its_data)
    task_code.update(its_code)
    algorithm_code.update(identity.algorithm_code(run.algorithm))
  return Stamp(
      rule,
      _settings(planned.candidates),
      _settings(planned.baseline),
      data,
      task_code,
      algorithm_code,
  )


def _settings(candidates):
  found = []
  for candidate in candidates:
    settings = candidate.runs[0].settings()
    del settings['seed']
    found.append(settings)
  return tuple(found)


def differences(before: Stamp, now: Stamp) -> list[str]:
  """Says in words what has changed; empty if nothing that counts has.

  Args:
    before: The stored stamp.
    now: Today's.
  """
  return [
      *setting_differences(before, now),
      *identity.of_code(before.task_code, now.task_code),
  ]


def changed_code(before: Stamp, now: Stamp) -> list[str]:
  """The files of the task whose code has changed."""
  return code_hash.differences(before.task_code, now.task_code)


def setting_differences(before: Stamp, now: Stamp) -> list[str]:
  """The same of settings and data alone."""
  return [
      *identity.of_settings(before.rule, now.rule),
      *_of_candidates('candidates', before.candidates, now.candidates),
      *_of_candidates('baseline', before.baseline, now.baseline),
      *identity.of_data(before.data, now.data),
  ]


def _of_candidates(name, before, now):
  if len(before) != len(now):
    return [f'{name}: {len(before)} stored, {len(now)} now']
  return identity.named(
      line
      for one, other in zip(before, now)
      for line in identity.of_settings(one, other)
  )


def to_json(stamps: Mapping[tuple[str, ...], Stamp]) -> dict[str, Any]:
  """Packs the stamps of a table, what they share once.

  Args:
    stamps: Key of the cell to its stamp.

  Returns:
    `common`: settings of all candidates; `shared`: what rows refer to by
    number; `rows`: key and parts of each, of candidates only what is not
    common.
  """
  every = [
      settings
      for stamp in stamps.values()
      for settings in (*stamp.candidates, *stamp.baseline)
  ]
  common = {
      name: value
      for name, value in (every[0] if every else {}).items()
      if all(name in s and s[name] == value for s in every)
  }
  shared, numbers = [], {}

  def number(value):
    text = identity.canonical_json(value)
    if text not in numbers:
      numbers[text] = len(shared)
      shared.append(value)
    return numbers[text]

  def packed(candidates):
    return [
        number({n: v for n, v in settings.items() if n not in common})
        for settings in candidates
    ]

  rows = [
      {
          'key': list(key),
          'rule': number(stamp.rule),
          'candidates': packed(stamp.candidates),
          'baseline': packed(stamp.baseline),
          'data': number(stamp.data),
          'task_code': number(stamp.task_code),
          'algorithm_code': number(stamp.algorithm_code),
      }
      for key, stamp in stamps.items()
  ]
  return {'common': common, 'shared': shared, 'rows': rows}


def from_json(values: Mapping[str, Any]) -> dict[tuple[str, ...], Stamp]:
  """Unpacks what `to_json` returned."""
  common, shared = values['common'], values['shared']

  def unpacked(numbers: Iterable[int]):
    return tuple({**common, **shared[n]} for n in numbers)

  return {
      tuple(row['key']): Stamp(
          rule=shared[row['rule']],
          candidates=unpacked(row['candidates']),
          baseline=unpacked(row['baseline']),
          data=shared[row['data']],
          task_code=shared[row['task_code']],
          algorithm_code=shared[row['algorithm_code']],
      )
      for row in values['rows']
  }
