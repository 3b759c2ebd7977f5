"""What a reproduced table is, declared: cells, settings, metric, rules.

A `TableSpec` says everything about a table except its numbers; the engine
turns it into runs. A profile (`quick`, `small`, `paper`) is a setting of the
same spec, never another spec.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

from tasks import source as source_lib
from tasks import task as task_lib
from tff_fedopt.experiment import reductions
from tff_fedopt.tables import rate_grids

# For tables whose cells have several candidates.
TUNE_NOTE = (
    'Of several candidate settings a cell reports the one with the best'
    ' training metric, not the best validation metric.'
)
KINDS = ('table', 'heatmap', 'sensitivity', 'curves', 'measured')
RELATIONS = ('', 'ratio', 'speedup', 'gain', 'difference')


@dataclasses.dataclass(frozen=True)
class Setting:
  """One training run as a table's cell has it: a partial `RunSpec`.

  The fields of the same names are a run's; None stands for the task's published
  value. Profile, data and seed come from the command, see `plan.run_spec`.

  Attributes:
    task: Name of the task.
    algorithm: Name of the algorithm.
    hyperparameters: Name to value, in the library's names.
    source: Where what is given here comes from, but for what `sources` names; a
      `tasks.source.Source` or its text.
    rounds: Number of rounds.
    cohort_size: Clients per round.
    batch_size: Examples per local step.
    local_epochs: Passes over a client's data.
    evaluate_every: Rounds between two evaluations.
    validation_examples: At most so many validation examples, None for all.
    task_options: Further options of the task.
    label: Names the setting among the candidates of one cell.
    cohorts: `fixed`, or `bernoulli`: `cohort_size` on average.
    participation: How likely each client is to take part.
    sources: Where single settings come from, by the names of
      `RunSpec.settings`. What is left to the task has the task's source.
  """

  task: str
  algorithm: str
  hyperparameters: Mapping[str, Any]
  source: source_lib.Source
  rounds: int | None = None
  cohort_size: int | None = None
  batch_size: int | None = None
  local_epochs: int | None = None
  evaluate_every: int = 1
  validation_examples: int | None = None
  task_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  label: str = ''
  cohorts: str = 'fixed'
  participation: str = 'equal'
  sources: Mapping[str, source_lib.Source] = dataclasses.field(
      default_factory=dict
  )

  def __post_init__(self):
    object.__setattr__(self, 'source', _parsed(self.source))


@dataclasses.dataclass(frozen=True)
class Quantity:
  """What a cell shows, where that is not the task's metric.

  Attributes:
    name: What the number is: as in `results/paper.csv` if it was published.
    unit: Its unit, '' for none.
    column: Which column of metrics.csv or timing.csv, or which number of
      provenance.json, without its unit; '' for the task's validation metric.
    reduction: The rule that makes one number of the column; None for the
      table's. A target is in the column's unit,
      where a part of a whole (accuracy) is a fraction.
    scale: Factor from the column's unit to `unit`; None for the task's own
      where the column is the task's metric, else 1. Rounds or seconds to a
      target are not scaled.
    higher_is_better: Whether more is better.
    target_is_below: For reductions to a target: whether the column falls to
      it; None for the direction of the task's metric.
    relation: To the number of the cell's baseline: `ratio` (ours / baseline),
      `speedup` (baseline / ours), `gain` (100 (ours / baseline − 1)),
      `difference` (ours − baseline); '' for the number itself.
    at_least: The number of candidates whose number is this or more, in place
      of the best candidate's number.
    of_grid: Likewise, a rule for the candidates as a grid of rates.
    decimals: Digits after the point.
    tolerance: Relative tolerance of the reference check, None for the default;
      inf for what depends on the machine.
    logarithmic: Whether curves have a logarithmic axis.
    source: Where its own reduction or number to reach comes from.
  """

  name: str
  unit: str = ''
  column: str = ''
  reduction: reductions.Reduction | None = None
  scale: float | None = None
  higher_is_better: bool = True
  target_is_below: bool | None = None
  relation: str = ''
  at_least: float | None = None
  of_grid: rate_grids.Rule | None = None
  decimals: int = 1
  tolerance: float | None = None
  logarithmic: bool = False
  source: source_lib.Source | None = None

  def __post_init__(self):
    _check_reduction(self.name, self.reduction)
    if self.relation not in RELATIONS:
      raise ValueError(
          f'{self.name}: relation {self.relation!r}; one of {RELATIONS}'
      )
    if self.is_to_target and self.higher_is_better != (
        self.relation == 'speedup'
    ):
      raise ValueError(
          f'{self.name}: less time to a target is better, and so is a higher'
          ' speedup; set higher_is_better to that'
      )

  @property
  def label(self) -> str:
    return self.name

  @property
  def needs_source(self) -> bool:
    """Whether it has a choice of its own."""
    return self.reduction is not None or self.is_of_candidates

  @property
  def is_to_target(self) -> bool:
    """Whether the number says when a target was reached."""
    return self.reduction is not None and self.reduction.is_to_target

  @property
  def has_curve(self) -> bool:
    """Whether the number is one of a curve over the rounds."""
    return not (
        self.is_to_target or self.relation or self.is_of_candidates
    )

  @property
  def is_of_candidates(self) -> bool:
    """Whether the number is one of all candidates together."""
    return self.at_least is not None or self.of_grid is not None


@dataclasses.dataclass(frozen=True)
class Measured:
  """What a measuring function returns.

  Attributes:
    value: The number, in the unit of the cell's quantity.
    curve: (rounds, values) behind it, if there is one; JSON values. What
      figures of the table's own draw may follow, each a sequence of numbers.
  """

  value: float
  curve: tuple[Sequence[float], ...] | None = None


@dataclasses.dataclass(frozen=True)
class Measure:
  """A number that is computed without a training run of the library.

  Attributes:
    function: Takes `arguments` and `seed` by name, returns a `Measured`. It
      must be a function of its arguments alone.
    arguments: Name to value, values of JSON: they are the cell's settings, and
      a change makes stored numbers stale.
    source: Where the arguments come from, but for what `sources` names; a
      `tasks.source.Source` or its text.
    sources: Where single arguments come from.
  """

  function: Callable[..., Measured]
  arguments: Mapping[str, Any]
  source: source_lib.Source
  sources: Mapping[str, source_lib.Source] = dataclasses.field(
      default_factory=dict
  )

  def __post_init__(self):
    object.__setattr__(self, 'source', _parsed(self.source))


@dataclasses.dataclass(frozen=True)
class Cell:
  """One number of a table: the best of its candidates, or a measurement.

  Attributes:
    row: Label of the row.
    column: Label of the column.
    candidates: One setting, or several of which the one with the best
      training metric is reported (the published tuning rule); none if
      `measure` is given.
    panel: Names the sub-table (heat map) the cell is in; '' if there is one.
    quantity: What the number is; None for the task's validation metric.
    baseline: Candidates of what `quantity.relation` compares with.
    measure: How the number is computed where no run gives it.
  """

  row: str
  column: str
  candidates: Sequence[Setting] = ()
  panel: str = ''
  quantity: Quantity | None = None
  baseline: Sequence[Setting] = ()
  measure: Measure | None = None

  def __post_init__(self):
    name = f'{self.row} / {self.column}'
    if bool(self.candidates) == (self.measure is not None):
      raise ValueError(f'{name}: needs candidates or a measure, and not both')
    if self.measure and not self.quantity:
      raise ValueError(f'{name}: what is measured needs a quantity')
    relation = self.quantity is not None and self.quantity.relation
    if bool(self.baseline) != bool(relation):
      raise ValueError(f'{name}: a baseline goes with a relation')

  @property
  def key(self) -> tuple[str, str, str]:
    return (self.panel, self.row, self.column)


@dataclasses.dataclass(frozen=True)
class TableSpec:
  """A reproduced table or figure.

  Attributes:
    id: Name on the command line and of the output files.
    title: One line.
    paper: Name of the paper, as `--paper` takes it.
    citation: Which table or figure of which publication.
    shows: What the published numbers show, one sentence.
    kind: Which figures belong to it: `table` (curves, time to target),
      `heatmap`, `sensitivity`, `curves`, or `measured` (curves, where the
      measurements have some).
    form: `code` (the update as in the published code) or `paper` (as in the
      published algorithm box) of the adaptive server optimizers.
    forms: The forms that there are of it.
    row_header: What the rows are.
    column_header: What the columns are.
    build: Maps (profile, form) to the cells, row by row.
    reduction: Profile to the rule that turns a run into one number; None where
      nothing is run.
    seeds: Profile to the seeds that are averaged.
    bold_within: Numbers within this fraction of the row's best are bold; None
      for no bold print.
    estimates: Profile to the expected time, with the machine it is for.
    notes: Lines under the table: choices a reader must know.
    check_rows: Rows whose quick numbers are re-run by the reference check.
    figures: Name to a function that draws a further figure of the result.
    sources: Where, in the profile `paper`, `seeds`, `reduction` and `split`
      (that validation is shown) come from.
  """

  id: str
  title: str
  paper: str
  citation: str
  shows: str
  kind: str
  form: str
  row_header: str
  column_header: str
  build: Callable[[str, str], Sequence[Cell]]
  reduction: Mapping[str, reductions.Reduction | None]
  seeds: Mapping[str, Sequence[int]]
  forms: Sequence[str] = ('code', 'paper')
  bold_within: float | None = None
  estimates: Mapping[str, str] = dataclasses.field(default_factory=dict)
  notes: Sequence[str] = ()
  check_rows: Sequence[str] = ()
  figures: Mapping[str, Callable[[Any], Any]] = dataclasses.field(
      default_factory=dict
  )
  sources: Mapping[str, source_lib.Source] = dataclasses.field(
      default_factory=dict
  )

  def __post_init__(self):
    if self.kind not in KINDS:
      raise ValueError(f'{self.id}: kind {self.kind!r}; one of {KINDS}')
    for name in ('reduction', 'seeds', 'estimates'):
      missing = set(task_lib.PROFILES) - set(getattr(self, name))
      if missing:
        raise ValueError(f'{self.id}: no {name} for {sorted(missing)}')
    for reduction in self.reduction.values():
      _check_reduction(self.id, reduction)

  def source_of(self, name: str, profile: str) -> source_lib.Source | None:
    """Where `seeds`, `reduction` or `split` comes from, None if nobody says."""
    if profile != 'paper' and name != 'split':
      return source_lib.REDUCED
    return self.sources.get(name)

  def cells(self, profile: str, form: str | None = None) -> tuple[Cell, ...]:
    """Returns the cells of a profile, checked for double keys.

    Args:
      profile: One of `tasks.task.PROFILES`.
      form: `paper` or `code`; None for the form of the spec.

    Returns:
      The cells, row by row.

    Raises:
      ValueError: If the profile is unknown, there is no such form of the table,
        or two cells have the same key.
    """
    if form and form not in self.forms:
      raise ValueError(
          f'{self.id}: there is no form {form!r} of it, only'
          f' {" and ".join(self.forms)}'
      )
    if profile not in task_lib.PROFILES:
      raise ValueError(
          f'unknown profile {profile!r}; one of {", ".join(task_lib.PROFILES)}'
      )
    cells = tuple(self.build(profile, form or self.form))
    keys = [cell.key for cell in cells]
    if len(set(keys)) != len(keys):
      raise ValueError(f'{self.id}: two cells have the same key')
    return cells


def _parsed(given):
  if isinstance(given, source_lib.Source):
    return given
  return source_lib.Source.parse(given)


def _check_reduction(name, given):
  if not isinstance(given, reductions.Reduction | None):
    raise ValueError(
        f'{name}: reduction {given!r}; expected a reductions.Reduction, as'
        " reductions.parse('last:10') gives one"
    )
