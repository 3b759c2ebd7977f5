"""From the runs of a cell to its number."""

from collections.abc import Mapping
import json
import math
import pathlib
import statistics
from typing import Any, NamedTuple

from tff_fedopt.experiment import reductions
from tff_fedopt.tables import rate_grids
from tff_fedopt.tables import spec as spec_lib

_TIMES = ('round_time', 'evaluation_time')
# A round with its evaluation, of the rounds that were evaluated.
WHOLE = 'whole_round_time'


class Numbers(NamedTuple):
  """What the runs of a cell gave; see `results.CellResult`."""

  status: str
  values: tuple[float, ...] = ()
  setting: spec_lib.Setting | None = None
  curves: tuple[tuple[Any, Any], ...] = ()
  provenance: Mapping[str, Any] = {}


class _Best(NamedTuple):
  """The best candidate and its runs, or why there is none."""

  status: str
  candidate: Any = None
  runs: tuple[Any, ...] = ()


def reduce(
    planned: Any, metric, reduction: reductions.Reduction | None, results
) -> Numbers:
  """Reduces the runs of one cell.

  Rule: of several candidates the one counts whose training metric, reduced as
  the table says and averaged over seeds, is best; its number is the cell's
  quantity. The candidates of the baseline are treated alike.

  Args:
    planned: An `plan.PlannedCell`.
    metric: The metric of its task; None for a measured cell.
    reduction: The table's rule for its profile.
    results: The run to its RunResult or MeasuredResult.

  Returns:
    The numbers.
  """
  if planned.cell.measure:
    return _of_measurements(planned, results)
  quantity = planned.cell.quantity or _validation(metric)
  if quantity.is_of_candidates:
    return _of_candidates(planned, quantity, metric, reduction, results)
  best = _best(planned.candidates, metric, reduction, results)
  if best.status != 'done':
    return Numbers(best.status)
  values = [_value(run, quantity, metric, reduction) for run in best.runs]
  if quantity.relation:
    baseline = _best(planned.baseline, metric, reduction, results)
    if baseline.status != 'done':
      return Numbers(baseline.status)
    values = [
        _relation(quantity.relation, ours, theirs)
        for ours, theirs in zip(
            values,
            (_value(r, quantity, metric, reduction) for r in baseline.runs),
        )
    ]
  return Numbers(
      'done',
      tuple(values),
      best.candidate.setting,
      tuple(_curve(run, quantity, metric) for run in best.runs)
      if quantity.has_curve
      else (),
      _provenance(best.runs[0]),
  )


def _of_measurements(planned, results):
  calls = [results.get(run) for run in planned.measured]
  for bad in (None, 'failed', 'diverged'):
    if any((call and call.status) == bad for call in calls):
      return Numbers(bad or 'not run')
  return Numbers(
      'done',
      tuple(call.measured.value for call in calls),
      curves=tuple(c.measured.curve for c in calls if c.measured.curve),
      provenance=calls[0].provenance,
  )


def _validation(metric):
  return spec_lib.Quantity(
      metric.label, metric.unit, higher_is_better=metric.higher_is_better
  )


def _statuses(candidate, results):
  runs = tuple(results.get(run) for run in candidate.runs)
  if any(run is None for run in runs):
    return 'not run', runs
  statuses = {run.status for run in runs} - {'done'}
  if statuses:
    return ('failed' if 'failed' in statuses else 'diverged'), runs
  return 'done', runs


def _best(candidates, metric, reduction, results):
  train = spec_lib.Quantity(
      metric.label,
      column=f'train/{metric.name}',
      higher_is_better=metric.higher_is_better,
  )
  sign = 1 if metric.higher_is_better else -1
  best, best_score = None, -math.inf
  worst = 'not run'
  for candidate in candidates:
    status, runs = _statuses(candidate, results)
    if status != 'done':
      # A failure must be seen even when another candidate diverged.
      if worst != 'failed' and status != 'not run':
        worst = status
      continue
    score = sign * statistics.fmean(
        _value(run, train, metric, reduction) for run in runs
    )
    if score > best_score and math.isfinite(score):
      best, best_score = _Best('done', candidate, runs), score
  return best or _Best(worst)


def _of_candidates(planned, quantity, metric, reduction, results):
  """A number of all candidates: NaN for that of a run that diverged."""
  values, provenance = [], {}
  for candidate in planned.candidates:
    status, runs = _statuses(candidate, results)
    if status in ('not run', 'failed'):
      return Numbers(status)
    done = [run.status == 'done' for run in runs]
    if all(done):
      provenance = provenance or _provenance(runs[0])
    values.append([
        _value(run, quantity, metric, reduction) if is_done else math.nan
        for run, is_done in zip(runs, done)
    ])
  if quantity.of_grid is None:
    by_seed = zip(*values)
    found = (sum(v >= quantity.at_least for v in own) for own in by_seed)
    return Numbers('done', tuple(map(float, found)), provenance=provenance)
  found = rate_grids.numbers(
      quantity.of_grid,
      [
          rate_grids.log_rates(candidate.setting.hyperparameters)
          for candidate in planned.candidates
      ],
      values,
      metric.higher_is_better,
  )
  if any(map(math.isnan, found)):
    return Numbers('diverged')
  return Numbers('done', found, provenance=provenance)


def _relation(relation, ours, baseline):
  """How two numbers relate; NaN where neither reached its target."""
  if relation == 'difference':
    return ours - baseline
  if relation == 'speedup':
    ours, baseline = baseline, ours
  if not baseline or (math.isinf(ours) and math.isinf(baseline)):
    return math.nan
  ratio = ours / baseline
  return 100 * (ratio - 1) if relation == 'gain' else ratio


def _value(run, quantity, metric, reduction):
  higher = quantity.higher_is_better
  if quantity.is_to_target:
    higher = metric.higher_is_better
    if quantity.target_is_below is not None:
      higher = not quantity.target_is_below
  column, scale = _column(quantity, metric)
  number = (quantity.reduction or reduction).apply(
      _frame(run, quantity, column), column, higher
  )
  # When a target was reached is not in the column's unit.
  return number if quantity.is_to_target else scale * number


def _column(quantity, metric):
  column = quantity.column or f'validation/{metric.name}'
  scale = quantity.scale
  if scale is None:
    is_metric = column.split('/')[-1] == metric.name
    scale = metric.scale if is_metric else 1.0
  return column, scale


def _frame(run, quantity, column):
  """The run's metrics, with times or what is the same in all rounds if needed.
  """
  frame = run.frame
  if column in (*_TIMES, WHOLE) or isinstance(
      quantity.reduction, reductions.SecondsTo
  ):
    frame = frame.merge(run.timing, on='round')
    evaluated = frame.filter(like='validation/').notna().any(axis=1)
    whole = frame['round_time'] + frame['evaluation_time']
    frame = frame.assign(**{WHOLE: whole.where(evaluated)})
  if column not in frame:
    constant = _provenance(run).get(column)
    if constant is not None:
      frame = frame.assign(**{column: constant})
  return frame


def _curve(run, quantity, metric):
  column, scale = _column(quantity, metric)
  frame = _frame(run, quantity, column)[['round', column]].dropna()
  rounds, values = frame.to_numpy().T
  return rounds.astype(int), scale * values


def _provenance(run):
  return json.loads(
      (pathlib.Path(run.run_dir) / 'provenance.json').read_text()
  )
