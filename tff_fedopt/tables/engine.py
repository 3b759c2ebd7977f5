"""From a table's spec to its numbers: plan the runs, run them, reduce them."""

import dataclasses
import hashlib
import json
import math
import pathlib
import statistics
from typing import Any, Mapping, Optional, Sequence

import tasks
from tff_fedopt.experiment import compare
from tff_fedopt.tables import published
from tff_fedopt.tables import record
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
  data_dir: Optional[str] = None
  form: Optional[str] = None
  rows: Sequence[str] = ()
  columns: Sequence[str] = ()
  rounds: Optional[int] = None
  seeds: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class Candidate:
  """One candidate setting of a cell as runs, one a seed."""

  setting: spec_lib.Setting
  runs: tuple[Any, ...]  # RunSpec


@dataclasses.dataclass(frozen=True)
class PlannedCell:
  cell: spec_lib.Cell
  candidates: tuple[Candidate, ...]

  @property
  def spec_sha(self) -> str:
    """Changes with whatever decides the number, candidates included."""
    prints = [run.fingerprint() for c in self.candidates for run in c.runs]
    return hashlib.sha256('\n'.join(prints).encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class CellResult:
  """A cell with its number.

  Attributes:
    planned: What was to be run.
    metric: The task's metric.
    status: `done`, `diverged`, `failed` or `not run`.
    values: The reduced metric of each seed, in the metric's unit.
    setting: The candidate whose number it is; None without a number.
    curves: Of each seed: (rounds, values), values in the metric's unit.
    provenance: Of the first run: versions, commit, cores, task, data kind.
    paper: The published number, None if there is none.
    verdict: See `compare.verdict`.
  """

  planned: PlannedCell
  metric: Any
  status: str
  values: tuple[float, ...] = ()
  setting: Optional[spec_lib.Setting] = None
  curves: tuple[tuple[Sequence[int], Sequence[float]], ...] = ()
  provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  paper: Optional[published.Published] = None
  verdict: str = compare.NOT_RUN

  @property
  def cell(self) -> spec_lib.Cell:
    return self.planned.cell

  @property
  def mean(self) -> Optional[float]:
    return statistics.fmean(self.values) if self.values else None

  @property
  def std(self) -> Optional[float]:
    return statistics.stdev(self.values) if len(self.values) > 1 else None


@dataclasses.dataclass(frozen=True)
class TableResult:
  spec: spec_lib.TableSpec
  options: Options
  cells: tuple[CellResult, ...]

  @property
  def form(self) -> str:
    return self.options.form or self.spec.form

  @property
  def data_kinds(self) -> tuple[str, ...]:
    kinds = {c.provenance.get('data_kind') for c in self.cells} - {None}
    return tuple(sorted(kinds))

  @property
  def panels(self) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c.cell.panel for c in self.cells))


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
    ValueError: If a filter names no row or column, or a setting is refused.
  """
  from tff_fedopt.experiment import spec as run_spec

  cells = spec.cells(options.profile, options.form)
  row_names = {c.row for c in cells} | {c.panel for c in cells if c.panel}
  _check_filter('row', options.rows, row_names)
  _check_filter('column', options.columns, {c.column for c in cells})
  seeds = options.seeds or spec.seeds[options.profile]
  planned = []
  for cell in cells:
    if options.rows and not {cell.row, cell.panel} & set(options.rows):
      continue
    if options.columns and cell.column not in options.columns:
      continue
    candidates = []
    for setting in cell.candidates:
      runs = tuple(
          run_spec.RunSpec(
              task=setting.task,
              algorithm=setting.algorithm,
              hyperparameters=setting.hyperparameters,
              rounds=options.rounds or setting.rounds,
              cohort_size=setting.cohort_size,
              batch_size=setting.batch_size,
              local_epochs=setting.local_epochs,
              seed=seed,
              profile=options.profile,
              data_dir=options.data_dir,
              task_options=setting.task_options,
              evaluate_every=setting.evaluate_every,
              validation_examples=setting.validation_examples,
          )
          for seed in seeds
      )
      candidates.append(Candidate(setting, runs))
    planned.append(PlannedCell(cell, tuple(candidates)))
  return tuple(planned)


def _check_filter(what, wanted, known):
  for name in wanted:
    if name not in known:
      raise ValueError(
          f'unknown {what} {name!r}; one of {", ".join(sorted(known))}'
      )


def run_specs(plans: Sequence[Sequence[PlannedCell]]) -> list[Any]:
  """Returns the runs of several tables, each once."""
  unique = {}
  for planned in plans:
    for cell in planned:
      for candidate in cell.candidates:
        for run in candidate.runs:
          unique.setdefault(run.fingerprint(), run)
  return list(unique.values())


def reduce(
    spec: spec_lib.TableSpec,
    options: Options,
    planned: Sequence[PlannedCell],
    results: Mapping[str, Any],
) -> TableResult:
  """Turns runs into the numbers of a table.

  Rule: a cell with several candidates takes the one whose training metric,
  reduced the same way and averaged over seeds, is best; its number is the
  validation metric.

  Args:
    spec: The table.
    options: As given to `plan`.
    planned: What `plan` returned.
    results: Fingerprint of the run to its RunResult.

  Returns:
    The table with its numbers.
  """
  numbers = published.of_table(spec.id)
  reduction = spec.reduction[options.profile]
  cells = []
  for plan_cell in planned:
    cell = plan_cell.cell
    metric = tasks.info(cell.candidates[0].task).metric
    result = _reduce_cell(plan_cell, metric, reduction, results)
    paper = numbers.get((cell.row, cell.column))
    comparable = (
        options.profile == 'paper'
        and result.provenance.get('data_kind') == 'canonical'
        and not options.rounds
    )
    cells.append(
        dataclasses.replace(
            result,
            paper=paper,
            verdict=compare.verdict(
                result.status,
                result.mean,
                result.std,
                paper.value if paper else None,
                paper.std if paper else None,
                comparable,
            ),
        )
    )
  return TableResult(spec, options, tuple(cells))


def _reduce_cell(plan_cell, metric, reduction, results):
  best, status = None, 'not run'
  sign = 1 if metric.higher_is_better else -1
  for candidate in plan_cell.candidates:
    runs = [results.get(run.fingerprint()) for run in candidate.runs]
    if any(run is None for run in runs):
      continue
    bad = [run.status for run in runs if run.status != 'done']
    if bad:
      # A failure must be seen even when another candidate diverged.
      if status != 'failed':
        status = 'failed' if 'failed' in bad else 'diverged'
      continue
    score = sign * statistics.fmean(
        _value(run, 'train', metric, reduction) for run in runs
    )
    if math.isfinite(score) and (best is None or score > best[0]):
      best = (score, candidate, runs)
  if best is None:
    return CellResult(plan_cell, metric, status)
  _, candidate, runs = best
  return CellResult(
      plan_cell,
      metric,
      'done',
      values=tuple(_value(r, 'validation', metric, reduction) for r in runs),
      setting=candidate.setting,
      curves=tuple(_curve(r, metric) for r in runs),
      provenance=_provenance(runs),
  )


def _value(run, split, metric, reduction):
  from tff_fedopt.experiment import metrics

  return metric.scale * metrics.reduce(
      run.frame, f'{split}/{metric.name}', reduction
  )


def _curve(run, metric):
  frame = run.frame[['round', f'validation/{metric.name}']].dropna()
  rounds, values = frame.to_numpy().T
  return rounds.astype(int), metric.scale * values


def _provenance(runs):
  first = json.loads(
      (pathlib.Path(runs[0].run_dir) / 'provenance.json').read_text()
  )
  return first


def records(result: TableResult) -> list[dict[str, str]]:
  """Returns the table as rows for `record.write`.

  `tolerance` is left empty: it belongs to stored references only.
  """
  return [_record(result, cell) for cell in result.cells]


def _record(result, cell_result):
  cell, options, paper = cell_result.cell, result.options, cell_result.paper
  runs = cell_result.planned.candidates[0].runs
  setting = cell_result.setting
  provenance = cell_result.provenance
  values = {
      'table': result.spec.id,
      'panel': cell.panel,
      'row': cell.row,
      'column': cell.column,
      'metric': cell_result.metric.name,
      'split': 'validation',
      'unit': cell_result.metric.unit,
      'reduction': result.spec.reduction[options.profile],
      'paper_value': paper and paper.value,
      'paper_std': paper and paper.std,
      'paper_source': paper and paper.source,
      'ours_mean': cell_result.mean,
      'ours_std': cell_result.std,
      'status': cell_result.status,
      'seeds': ' '.join(str(run.seed) for run in runs),
      'rounds': runs[0].rounds,
      'profile': options.profile,
      'form': result.form,
      'setting': setting and _setting_text(setting),
      'setting_source': setting and setting.source,
      'spec_sha': cell_result.planned.spec_sha,
      'verdict': cell_result.verdict,
      **{name: provenance.get(name) for name in _PROVENANCE_FIELDS},
      'data': provenance.get('data_kind'),
  }
  return {name: _text(values.get(name)) for name in record.FIELDS}


_PROVENANCE_FIELDS = (
    'task_sha',
    'commit',
    'tff',
    'tf',
    'python',
    'cores',
    'date',
    'wall_seconds',
)


def _setting_text(setting):
  return ' '.join(
      f'{name}={_text(value)}'
      for name, value in sorted(setting.hyperparameters.items())
  )


def _text(value):
  if value is None:
    return ''
  return f'{value:.6g}' if isinstance(value, float) else str(value)
