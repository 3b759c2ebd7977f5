"""From finished runs to the numbers of a table, with their verdicts."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import statistics
from typing import Any

from tff_fedopt.tables import compare
from tff_fedopt.tables import origin
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import published
from tff_fedopt.tables import reduce as reduce_lib
from tff_fedopt.tables import spec as spec_lib


@dataclasses.dataclass(frozen=True)
class CellResult:
  """A cell with its number.

  Attributes:
    planned: What was to be run.
    metric: What the number is: the cell's quantity, or the task's metric.
    status: `done`, `diverged`, `failed` or `not run`.
    values: The number of each seed, in the metric's unit.
    setting: The candidate whose number it is; None without one.
    curves: Of each seed: (rounds, values), values in the metric's unit; of a
      measurement with what it has beside them.
    provenance: Of the first run: versions, commit, cores, task, data kind.
    paper: The published number, None if there is none.
    verdict: See `compare.verdict`.
    obstacles: What stands between the number and the published one, see
      `origin.Comparison`.
  """

  planned: plan_lib.PlannedCell
  metric: Any
  status: str
  values: tuple[float, ...] = ()
  setting: spec_lib.Setting | None = None
  curves: tuple[tuple[Sequence[float], ...], ...] = ()
  provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  paper: published.Published | None = None
  verdict: str = compare.NOT_RUN
  obstacles: tuple[str, ...] = ()

  @property
  def cell(self) -> spec_lib.Cell:
    return self.planned.cell

  @property
  def mean(self) -> float | None:
    return statistics.fmean(self.values) if self.values else None

  @property
  def std(self) -> float | None:
    known = len(self.values) > 1 and all(map(math.isfinite, self.values))
    return statistics.stdev(self.values) if known else None


@dataclasses.dataclass(frozen=True)
class TableResult:
  spec: spec_lib.TableSpec
  options: plan_lib.Options
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


def reduce(
    spec: spec_lib.TableSpec,
    options: plan_lib.Options,
    planned: Sequence[plan_lib.PlannedCell],
    results: Mapping[str, Any],
) -> TableResult:
  """Turns runs into the numbers of a table.

  Args:
    spec: The table.
    options: As given to `plan`.
    planned: What `plan` returned.
    results: The run to its RunResult or MeasuredResult.

  Returns:
    The table with its numbers; see `reduce.reduce` for the rule.
  """
  reduction = spec.reduction[options.profile]
  comparison = origin.Comparison(spec, options)
  cells = []
  for plan_cell in planned:
    numbers = reduce_lib.reduce(
        plan_cell, plan_cell.task_metric, reduction, results
    )
    result = CellResult(
        plan_cell,
        plan_cell.cell.quantity or plan_cell.task_metric,
        **numbers._asdict(),
        paper=plan_cell.published(spec.id),
    )
    between = comparison.obstacles(
        plan_cell,
        result.provenance.get('data_kind'),
        result.setting,
    )
    cells.append(
        dataclasses.replace(
            result,
            verdict=_verdict(result, not between),
            obstacles=between,
        )
    )
  return TableResult(spec, options, tuple(cells))


def _verdict(result, comparable):
  paper = result.paper
  return compare.verdict(
      result.status,
      result.mean,
      result.std,
      paper.value if paper else None,
      paper.std if paper else None,
      comparable,
  )
