"""Where each setting of a cell is from, and what keeps it from comparison.

A number is compared with the published one only if nothing stands between: the
profile is `paper`, the data are the canonical ones, and every setting is the
authors' own as far as paper or code say it.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import functools
from typing import Any

import tasks
from tasks import source as source_lib
from tff_fedopt.experiment import identity
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import spec as spec_lib

# What the command or the cell's own label says of a run.
_NO_SETTINGS = ('task', 'algorithm', 'seed', 'profile')
# What a setting may leave to its task.
OF_TASK = ('rounds', 'cohort_size', 'batch_size', 'local_epochs')
_OPTION = 'task option '
# As one reads them; other names are what they are.
_WORDS = {
    'client_learning_rate': 'client rate',
    'client_learning_rate_schedule': 'schedule of the client rate',
    'server_learning_rate': 'server rate',
    'client_epsilon': 'client ε',
    'tau': 'τ',
    'cohort_size': 'clients per round',
    'batch_size': 'batch',
    'evaluate_every': 'evaluation every so many rounds',
    'validation_examples': 'validation examples',
    'split': 'validation in place of test',
}
# Of these a smaller number is a part of the published one.
_COUNTS = ('rounds', 'cohort_size', 'local_epochs', 'validation_examples')
_REDUCED = source_lib.REDUCED


@dataclasses.dataclass(frozen=True)
class Stated:
  """A setting with its source; None if nobody has said it."""

  name: str
  value: Any
  source: source_lib.Source | None

  @property
  def line(self) -> str:
    return f'{self.name} = {identity.text(self.value)}  [{self.source}]'


def word(name: str) -> str:
  """A setting's name as one reads it in a sentence."""
  plain = name.removeprefix(_OPTION)
  text = _WORDS.get(plain, plain.replace('_', ' '))
  # Also a hyperparameter's name.
  of_task = plain in ('alpha', 'weight_decay') and plain != name
  return f'{text} of the task' if of_task else text


def of_setting(setting: spec_lib.Setting, run: Any) -> dict[str, Stated]:
  """Returns every setting of a run by name, with its source.

  Args:
    setting: As the table has it.
    run: Its `RunSpec`.

  Returns:
    Name, as in `RunSpec.settings`, to the setting.
  """
  values = run.settings()
  values.setdefault('validation_examples', 'all')
  info = tasks.info(run.task)
  return {
      name: Stated(name, value, _source(setting, name, info, run.profile))
      for name, value in values.items()
      if name not in _NO_SETTINGS
  }


def _source(setting, name, info, profile):
  if name in setting.sources:
    return setting.sources[name]
  if name.startswith(_OPTION):
    option = name.removeprefix(_OPTION)
    if option in setting.task_options:
      return setting.source
    if profile == 'quick' and info.options[option].quick is not None:
      return _REDUCED
    return info.options[option].source
  if name in OF_TASK and getattr(setting, name) is None:
    return info.published.source
  if name in setting.hyperparameters or name in OF_TASK:
    return setting.source
  return None


def of_table(
    table: spec_lib.TableSpec, profile: str, planned: plan_lib.PlannedCell
) -> dict[str, Stated]:
  """Returns what a cell has of its table: seeds, reduction, quantity.

  Args:
    table: The table.
    profile: The profile.
    planned: One of its cells.
  """
  quantity = planned.cell.quantity
  values: dict[str, Any] = {}
  if planned.runs:
    values['seeds'] = ' '.join(map(str, planned.seeds))
    if not (quantity and quantity.reduction):
      values['reduction'] = str(table.reduction[profile])
    if not (quantity and quantity.column):
      values['split'] = 'validation'
  found = {
      name: Stated(name, value, table.source_of(name, profile))
      for name, value in values.items()
  }
  if quantity and quantity.needs_source:
    rule = [str(quantity.reduction or '')]
    if quantity.at_least is not None:
      rule.append(f'at least {quantity.at_least:g}')
    if quantity.of_grid is not None:
      rule.append(str(quantity.of_grid))
    text = ', '.join(filter(None, rule))
    found['quantity'] = Stated('quantity', text, quantity.source)
  return found


def of_cell(
    table: spec_lib.TableSpec, profile: str, planned: plan_lib.PlannedCell
) -> list[dict[str, Stated]]:
  """Returns the settings of each candidate of a cell, its baseline's last.

  Args:
    table: The table.
    profile: The profile.
    planned: One of its cells.
  """
  own = of_table(table, profile, planned)
  measure = planned.cell.measure
  if measure:
    arguments = {
        name: Stated(name, value, measure.sources.get(name, measure.source))
        for name, value in measure.arguments.items()
    }
    return [{**own, **arguments}]
  return [
      {**of_setting(candidate.setting, candidate.runs[0]), **own}
      for candidate in (*planned.candidates, *planned.baseline)
  ]


class Comparison:
  """What keeps the numbers of a table from comparison with the published."""

  def __init__(self, table: spec_lib.TableSpec, options: plan_lib.Options):
    """Keeps the table and the options that were given to `plan`."""
    self._table = table
    self._options = options

  @functools.cached_property
  def _cells(self):
    """The cells of the profile `paper`, by key."""
    return {cell.key: cell for cell in self._table.cells('paper')}

  def obstacles(
      self,
      planned: plan_lib.PlannedCell,
      data_kind: str | None = None,
      chosen: spec_lib.Setting | None = None,
  ) -> tuple[str, ...]:
    """Says what stands between a cell's number and the published one.

    Rows and columns that were left out do not: a cell's number does not depend
    on other cells.

    Args:
      planned: The cell.
      data_kind: `canonical`, `synthetic`, ...; None if it is not known yet.
      chosen: The candidate whose number it is; None for the first.

    Returns:
      Each obstacle in words; empty if there is none.
    """
    parts = []
    if data_kind == 'subset':
      parts.append('subset of the data')
    elif data_kind not in (None, 'canonical', 'computed'):
      parts.append(f'{data_kind} data')
    listed = self._listed(planned, chosen)
    other = self._published(planned.cell.key)
    told = set()
    if other is None:
      parts.append('no such cell in the profile paper')
    else:
      for name, text in _differences(listed[0], other):
        told.add(name)
        parts.append(text)
    return tuple(parts) + tuple(_unsaid(listed, told))

  def _listed(self, planned, chosen):
    """The settings of the candidate whose number it is, and of the baseline."""
    listed = of_cell(self._table, self._options.profile, planned)
    if planned.measured:
      return listed
    settings = [candidate.setting for candidate in planned.candidates]
    number = settings.index(chosen) if chosen in settings else 0
    return [listed[number], *listed[len(settings) :][:1]]

  def _published(self, key):
    """The values of the cell in the profile `paper`, of all candidates."""
    cell, table = self._cells.get(key), self._table
    if cell is None:
      return None
    if cell.measure:
      return [dict(cell.measure.arguments)]
    seeds = table.seeds['paper']
    own = {
        'seeds': ' '.join(map(str, seeds)),
        'reduction': str(table.reduction['paper']),
    }
    options = plan_lib.Options(profile='paper')
    planned = plan_lib.planned(cell, options, seeds[:1])
    return [
        {**own, **{name: one.value for name, one in settings.items()}}
        for settings in (
            of_setting(candidate.setting, candidate.runs[0])
            for candidate in planned.candidates
        )
    ]


def _unsaid(listed, told):
  """Settings that neither paper nor code say, in words."""
  for kind, what in (
      (source_lib.TUNED, 'tuned here'),
      (source_lib.GUESSED, 'guessed'),
      (None, 'without a source'),
  ):
    names = dict.fromkeys(
        word(name)
        for settings in listed
        for name, one in settings.items()
        if (one.source and one.source.kind) == kind and name not in told
    )
    if names:
      yield f'{", ".join(names)} {what}'


def _differences(
    here: Mapping[str, Stated], others: list[Mapping[str, Any]]
) -> Iterable[tuple[str, str]]:
  """Settings that are not those of the profile `paper`, in words."""
  for name, one in here.items():
    values = [other[name] for other in others if name in other]
    if not values or one.value in values:
      continue
    if one.source and one.source.kind == source_lib.TUNED:
      continue  # It is said that it was tuned.
    if len({identity.text(value) for value in values}) > 1:
      continue  # Searched there.
    link = 'of' if name in _COUNTS or name == 'seeds' else 'for'
    yield name, (
        f'{word(name)} {identity.text(one.value)} {link}'
        f' {identity.text(values[0])}'
    )


def listing(
    table: spec_lib.TableSpec,
    options: plan_lib.Options,
    planned: Iterable[plan_lib.PlannedCell],
) -> str:
  """Returns all settings of a table's cells with their sources, as text.

  Args:
    table: The table.
    options: As given to `plan`.
    planned: The cells.
  """
  comparison = Comparison(table, options)
  lines = [f'{table.id}: {table.title}', f'profile {options.profile}']
  for cell in planned:
    name = ' / '.join(part for part in cell.cell.key if part)
    lines += ['', name]
    if cell.runs:
      lines.append(f'  task = {cell.runs[0].task}')
      algorithms = dict.fromkeys(run.algorithm for run in cell.runs)
      lines.append(f'  algorithm = {", ".join(algorithms)}')
    lines += [f'  {line}' for line in _merged(of_cell(
        table, options.profile, cell
    ))]
    between = comparison.obstacles(cell)
    if between:
      lines.append(f'  not comparable: {"; ".join(between)}')
    else:
      lines.append(
          '  comparable' + (', on canonical data' if cell.runs else '')
      )
  return '\n'.join(lines)


def _merged(listed):
  """One line a setting and source; of candidates all values."""
  values: dict[tuple[str, Any], list[str]] = {}
  for settings in listed:
    for one in settings.values():
      texts = values.setdefault((one.name, one.source), [])
      if (text := identity.text(one.value)) not in texts:
        texts.append(text)
  for (name, its_source), texts in values.items():
    yield f'{name} = {", ".join(texts)}  [{its_source or "no source"}]'
