"""What a reproduced table is, declared: cells, settings, metric, rules.

A `TableSpec` says everything about a table except its numbers; the engine
turns it into runs. A profile (`quick`, `small`, `paper`) is a setting of the
same spec, never another spec.
"""

import dataclasses
from typing import Any, Callable, Mapping, Optional, Sequence

PROFILES = ('quick', 'small', 'paper')
KINDS = ('table', 'heatmap', 'sensitivity')


@dataclasses.dataclass(frozen=True)
class Setting:
  """The settings of one training run, without its seed.

  Attributes:
    task: Name of the task.
    algorithm: Name of the algorithm.
    hyperparameters: Name to value, in the library's names.
    source: Where the hyperparameters come from: the citation of a published
      value, or `ours-tuned (...)` with the grid that was searched.
    rounds: Number of rounds.
    cohort_size: Clients per round.
    batch_size: Examples per local step, None for the task's published one.
    local_epochs: Passes over a client's data, None for the published one.
    evaluate_every: Rounds between two evaluations.
    validation_examples: At most so many validation examples, None for all.
    task_options: Further options of the task.
    label: Names the setting among the candidates of one cell.
  """

  task: str
  algorithm: str
  hyperparameters: Mapping[str, Any]
  source: str
  rounds: int
  cohort_size: int
  batch_size: Optional[int] = None
  local_epochs: Optional[int] = None
  evaluate_every: int = 1
  validation_examples: Optional[int] = None
  task_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  label: str = ''


@dataclasses.dataclass(frozen=True)
class Cell:
  """One number of a table: the best of its candidates.

  Attributes:
    row: Label of the row.
    column: Label of the column.
    candidates: One setting, or several of which the one with the best
      training metric is reported (the published tuning rule).
    panel: Names the sub-table (heat map) the cell is in; '' if there is one.
  """

  row: str
  column: str
  candidates: Sequence[Setting]
  panel: str = ''

  @property
  def key(self) -> tuple[str, str, str]:
    return (self.panel, self.row, self.column)


@dataclasses.dataclass(frozen=True)
class TableSpec:
  """A reproduced table or figure.

  Attributes:
    id: Name on the command line and of the output files.
    title: One line.
    paper: Short name of the paper.
    citation: Which table or figure of which publication.
    shows: What the numbers show, one sentence.
    kind: `table`, `heatmap` or `sensitivity`.
    form: `code` (the update as in the published code) or `paper` (as in the
      published algorithm box) of the adaptive server optimizers.
    row_header: What the rows are.
    column_header: What the columns are.
    build: Maps (profile, form) to the cells, row by row.
    reduction: Profile to the rule that turns a run into one number.
    seeds: Profile to the seeds that are averaged.
    bold_within: Numbers within this fraction of the row's best are bold; None
      for no bold print.
    estimates: Profile to the expected time, with the machine it is for.
    notes: Lines under the table: choices a reader must know.
    check_rows: Rows whose quick numbers are re-run by the reference check.
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
  reduction: Mapping[str, str]
  seeds: Mapping[str, Sequence[int]]
  bold_within: Optional[float] = None
  estimates: Mapping[str, str] = dataclasses.field(default_factory=dict)
  notes: Sequence[str] = ()
  check_rows: Sequence[str] = ()

  def __post_init__(self):
    if self.kind not in KINDS:
      raise ValueError(f'{self.id}: kind {self.kind!r}; one of {KINDS}')
    for name in ('reduction', 'seeds', 'estimates'):
      missing = set(PROFILES) - set(getattr(self, name))
      if missing:
        raise ValueError(f'{self.id}: no {name} for {sorted(missing)}')

  def cells(self, profile: str, form: Optional[str] = None) -> tuple[Cell, ...]:
    """Returns the cells of a profile, checked for double keys.

    Args:
      profile: One of `PROFILES`.
      form: `paper` or `code`; None for the form of the spec.

    Returns:
      The cells, row by row.

    Raises:
      ValueError: If the profile is unknown or two cells have the same key.
    """
    if profile not in PROFILES:
      raise ValueError(
          f'unknown profile {profile!r}; one of {", ".join(PROFILES)}'
      )
    cells = tuple(self.build(profile, form or self.form))
    keys = [cell.key for cell in cells]
    if len(set(keys)) != len(keys):
      raise ValueError(f'{self.id}: two cells have the same key')
    return cells
