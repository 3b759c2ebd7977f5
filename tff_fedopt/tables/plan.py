"""From a table's spec to runs: which cells, candidates and seeds."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import tasks
from tff_fedopt.tables import measured as measured_lib
from tff_fedopt.tables import published as published_lib
from tff_fedopt.tables import spec as spec_lib


@dataclasses.dataclass(frozen=True)
class Options:
  """What the command line may choose about a table.

  Attributes:
    profile: `quick`, `small` or `paper`.
    data_dir: Folder of the canonical files, None for the profile's default.
    form: `code` or `paper`; None for the form of the table.
    rows: Labels of rows (or panels) to run, empty for all.
    columns: Labels of columns to run, empty for all.
    rounds: Rounds instead of the profile's; such numbers are never compared.
    seeds: Seeds instead of the profile's, empty for those.
  """

  profile: str = 'quick'
  data_dir: str | None = None
  form: str | None = None
  rows: Sequence[str] = ()
  columns: Sequence[str] = ()
  rounds: int | None = None
  seeds: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class Candidate:
  """One candidate setting of a cell as runs, one a seed."""

  setting: spec_lib.Setting
  runs: tuple[Any, ...]  # RunSpec


@dataclasses.dataclass(frozen=True)
class PlannedCell:
  """A cell with its runs: of its candidates and baseline, or measurements."""

  cell: spec_lib.Cell
  candidates: tuple[Candidate, ...] = ()
  baseline: tuple[Candidate, ...] = ()
  measured: tuple[measured_lib.MeasuredRun, ...] = ()

  @property
  def runs(self) -> tuple[Any, ...]:
    """All training runs."""
    both = (*self.candidates, *self.baseline)
    return tuple(run for candidate in both for run in candidate.runs)

  @property
  def seeds(self) -> tuple[int, ...]:
    runs = self.measured or self.candidates[0].runs
    return tuple(run.seed for run in runs)

  @property
  def task_metric(self) -> Any:
    """The metric of the task; None without one."""
    if not self.cell.candidates:
      return None
    return tasks.info(self.cell.candidates[0].task).metric

  def published(self, table: str) -> published_lib.Published | None:
    """The cell's published number, None if there is none.

    Args:
      table: The table's id.

    Raises:
      ValueError: If it is in another unit than ours.
    """
    cell, quantity = self.cell, self.cell.quantity
    return published_lib.find(
        table,
        cell.row,
        cell.column,
        quantity and quantity.name,
        published_lib.units(quantity or self.task_metric),
    )


def plan(
    spec: spec_lib.TableSpec, options: Options
) -> tuple[PlannedCell, ...]:
  """Turns the cells of a table into run specs.

  Args:
    spec: The table.
    options: Profile, filters and overrides.

  Returns:
    The planned cells, in the order of the table.

  Raises:
    ValueError: If a filter names no row or column, a setting is refused, or a
      published number is in another unit than ours.
  """
  cells = spec.cells(options.profile, options.form)
  row_names = {c.row for c in cells} | {c.panel for c in cells if c.panel}
  rows = _labels(spec, 'row', options.rows, row_names)
  columns = _labels(spec, 'column', options.columns, {c.column for c in cells})
  seeds = options.seeds or spec.seeds[options.profile]
  chosen = [
      planned(cell, options, seeds)
      for cell in cells
      if (not rows or {cell.row, cell.panel} & rows)
      and (not columns or cell.column in columns)
  ]
  if not chosen:
    raise ValueError(
        f'{spec.id} has no cell in row {" or ".join(sorted(rows))} and column'
        f' {" or ".join(sorted(columns))}'
    )
  for cell in chosen:
    cell.published(spec.id)  # A wrong unit is said before anything is run.
  return tuple(chosen)


def planned(
    cell: spec_lib.Cell, options: Options, seeds: Sequence[int]
) -> PlannedCell:
  """Returns a cell with its runs.

  Args:
    cell: The cell.
    options: As for `plan`.
    seeds: One run of each candidate, or one measurement, a seed.

  Raises:
    ValueError: If a setting is refused.
  """
  if cell.measure:
    return PlannedCell(
        cell,
        measured=tuple(
            measured_lib.MeasuredRun(cell.measure, seed) for seed in seeds
        ),
    )
  candidates, baseline = (
      tuple(
          Candidate(
              setting, tuple(run_spec(setting, options, s) for s in seeds)
          )
          for setting in settings
      )
      for settings in (cell.candidates, cell.baseline)
  )
  return PlannedCell(cell, candidates, baseline)


def run_spec(setting: spec_lib.Setting, options: Options, seed: int) -> Any:
  """Returns the `RunSpec` of a setting, completed by options and a seed.

  Args:
    setting: The setting.
    options: Profile, folder of the data, and rounds instead of the setting's.
    seed: The run's seed.

  Raises:
    ValueError: If a value is refused.
  """
  from tff_fedopt.experiment import spec as run_spec_lib

  given = vars(setting) | {'rounds': options.rounds or setting.rounds}
  for name in ('source', 'sources', 'label'):
    del given[name]
  return run_spec_lib.RunSpec(
      **given, seed=seed, profile=options.profile, data_dir=options.data_dir
  )


def _labels(spec, what, wanted, known):
  """Puts labels that hold commas together again; checks that all are known."""
  found, parts = set(), list(wanted)
  while parts:
    for length in range(len(parts), 0, -1):
      label = ', '.join(parts[:length])
      if label in known:
        break
    else:
      raise ValueError(
          f'{spec.id}: unknown {what} {parts[0]!r}; one of'
          f' {"; ".join(sorted(known))}'
      )
    found.add(label)
    parts = parts[length:]
  return found


def run_specs(plans: Sequence[Sequence[PlannedCell]]) -> list[Any]:
  """Returns the training runs of several tables, each once."""
  return list(
      dict.fromkeys(
          run for planned in plans for cell in planned for run in cell.runs
      )
  )


def measured_runs(
    plans: Sequence[Sequence[PlannedCell]],
) -> list[measured_lib.MeasuredRun]:
  """Returns the measurements of several tables, each once."""
  return list(
      dict.fromkeys(
          run for planned in plans for cell in planned for run in cell.measured
      )
  )
