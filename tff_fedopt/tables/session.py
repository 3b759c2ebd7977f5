"""One call of the command: run what is planned, write every output."""

from collections.abc import Callable, Sequence
import functools
import pathlib
import sys
from typing import Any

import tasks
from tff_fedopt.experiment import files
from tff_fedopt.experiment import run_dir as run_dir_lib
from tff_fedopt.tables import announce
from tff_fedopt.tables import measured as measured_lib
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import reference
from tff_fedopt.tables import results as results_lib
from tff_fedopt.tables import stamp
from tff_fedopt.tables import store
from tff_fedopt.tables import verdicts
from tff_fedopt.tables.report import claims as claims_lib
from tff_fedopt.tables.report import latex
from tff_fedopt.tables.report import markdown
from tff_fedopt.tables.report import plots

# Judges the claims that tables decide: ids of tables, profile, folder.
Judge = Callable[[Sequence[str], str, pathlib.Path], Sequence[verdicts.Judged]]


def open_data(specs: Sequence[Any]) -> None:
  """Opens every real data set once, before many runs fail one by one.

  It also writes the partitions that are made from the data, so that processes
  do not all make them.

  Args:
    specs: The runs.

  Raises:
    ValueError: If data is missing or unusable (`tasks.data.sources.DataError`),
      or has too few clients; says what to do.
  """
  real = {
      _data_key(run): run
      for run in specs
      if run.profile != 'quick' or run.data_dir is not None
  }
  if real:
    from tff_fedopt import runtime

    # Before tasks import TFF: its default context complains at exit.
    runtime.use()
  for run in real.values():
    task = tasks.load(
        run.task,
        profile=run.profile,
        data_dir=run.data_dir,
        seed=run.seed,
        batch_size=run.batch_size,
        local_epochs=run.local_epochs,
        **run.task_options,
    )
    if run.cohort_size > len(task.train.client_ids):
      raise ValueError(
          f'{run.task} has {len(task.train.client_ids)} clients, but a round'
          f' needs {run.cohort_size}'
      )


def _data_key(run):
  return (run.task, run.cohort_size, tuple(sorted(run.task_options.items())))


def _run_all(specs, out_dir, jobs, resume, names):
  from tff_fedopt.experiment import sweep

  return sweep.run_all(
      specs,
      out_dir,
      jobs=jobs,
      isolated=True,
      resume=resume,
      on_result=announce.Announcer(len(specs), names),
      name=lambda run: names[run],
  )


def _measure_all(runs, out_dir, resume, names):
  announcer = announce.Announcer(len(runs), names)
  return measured_lib.run_all(
      runs, out_dir, resume=resume, on_result=announcer
  )


def make(
    work: Sequence[
        tuple[Any, plan_lib.Options, Sequence[plan_lib.PlannedCell]]
    ],
    *,
    out_dir: pathlib.Path,
    jobs: int = 1,
    resume: bool = False,
    store_reference: bool = False,
    check: bool = False,
    restamp: bool = False,
    run_all: Callable[..., Sequence[Any]] | None = None,
    judge: Judge | None = None,
) -> int:
  """Runs the planned cells of several tables and writes the tables.

  A run that several tables need is run once.

  Args:
    work: Of each table: its spec, the options, the planned cells.
    out_dir: Where runs and tables go.
    jobs: Processes.
    resume: Whether runs that are there are used or continued.
    store_reference: Whether the numbers become the stored reference.
    check: Whether a number outside its tolerance is an error.
    restamp: Whether stored rows are marked as of today's code if these numbers
      are as stored; see `reference.restamp`.
    run_all: Runs a list of run specs, as `sweep.run_all`; for tests.
    judge: Says what the numbers in `out_dir` say of the papers' claims; None
      where nothing is to be said of them.

  Returns:
    The exit code: 1 if a run failed, the check found a difference, or a stored
    row could not be marked.

  Raises:
    ValueError: If data is missing or unusable, or another process uses
      `out_dir`.
  """
  runs_dir = run_dir_lib.RunDir(out_dir / 'runs')
  with runs_dir.locked('choose another --out_dir'):
    results = _results(work, out_dir, jobs, resume, run_all)
    return _write_all(
        work, results, out_dir, store_reference, check, restamp, judge
    )


def _results(work, out_dir, jobs, resume, run_all):
  """Runs what is planned."""
  plans = [planned for _, _, planned in work]
  names = announce.names(work)
  specs = plan_lib.run_specs(plans)
  open_data(specs)
  results = []
  if specs:
    run_all = run_all or functools.partial(_run_all, names=names)
    results += run_all(specs, out_dir / 'runs', jobs, resume)
  return results + _measure_all(
      plan_lib.measured_runs(plans), out_dir / 'measured', resume, names
  )


def _write_all(
    work, results, out_dir, store_reference, check, restamp, judge
):
  """Writes the tables; returns the exit code."""
  by_run = {result.spec: result for result in results}
  code, made = 0, []
  for table, options, planned in work:
    result = results_lib.reduce(table, options, planned, by_run)
    stamps = _stamps(table, options, planned)
    rows = store.rows(result, stamps)
    if store_reference:
      stored = reference.store(
          table, options.profile, options.form, rows, stamps
      )
      print(f'stored: {stored}', file=sys.stderr)
    # Numbers of another length or form are not those that are stored.
    is_whole = not options.rounds and result.form == table.form
    compared = (
        reference.differences(options.profile, rows, stamps)
        if is_whole
        else None
    )
    out_dir.mkdir(parents=True, exist_ok=True)
    store.write(out_dir / f'{table.id}.csv', rows)
    made.append((result, compared, is_whole))
    if check:
      code = max(code, _report_check(table, rows, compared))
    elif restamp:
      code = max(code, _restamp(table, options, rows))
    if any(cell.status == 'failed' for cell in result.cells):
      code = 1
  # Some claims are about several tables, so all have their numbers by now.
  judged = _judged(made, out_dir, judge)
  texts = [
      write(result, compared, judged, out_dir) for result, compared, _ in made
  ]
  if not check and not restamp:
    # At last: every file is there even if nobody reads on.
    print(*texts, sep='\n')
    if judged:
      print(claims_lib.summary(judged))
  print(f'results: {out_dir}', file=sys.stderr)
  return code


def _judged(made, out_dir, judge):
  """What the tables of this call say of the claims that they decide."""
  whole = [result for result, _, is_whole in made if is_whole]
  if not judge or not whole:
    return []
  names = [result.spec.id for result in whole]
  return judge(names, whole[0].options.profile, out_dir)


def _report_check(table, rows, compared):
  if compared is None:
    print(f'{table.id}: no stored reference')
    return 1
  for line in compared:
    print(f'{table.id}: {line}')
  print(f'{table.id}: {len(rows)} numbers, {len(compared)} outside')
  return 1 if compared else 0


def _restamp(table, options, rows):
  every = plan_lib.Options(
      profile=options.profile, data_dir=options.data_dir, form=options.form
  )
  today = _stamps(table, every, plan_lib.plan(table, every))
  lines = reference.restamp(table, options.profile, rows, today)
  for line in lines:
    print(line)
  print(f'{table.id}: {len(rows)} numbers, {len(lines)} rows not marked')
  return 1 if lines else 0


def _stamps(table, options, planned):
  reduction = table.reduction[options.profile]
  return {cell.cell.key: stamp.of(cell, reduction) for cell in planned}


def write(
    result: results_lib.TableResult,
    compared: Sequence[str] | None,
    judged: Sequence[verdicts.Judged],
    out_dir: pathlib.Path,
) -> str:
  """Writes Markdown, LaTeX and figures, each moved into place.

  Args:
    result: The table.
    compared: How it differs from the stored reference, None without one.
    judged: Claims with their verdicts; of other tables too.
    out_dir: An existing folder.

  Returns:
    The Markdown.
  """
  name = result.spec.id
  own = claims_lib.decided_by(name, judged)
  text = markdown.render(result, compared, own)
  for suffix, content in (('md', text), ('tex', latex.render(result, own))):
    files.write_text(out_dir / f'{name}.{suffix}', content)
  plots.draw(result, out_dir)
  return text
