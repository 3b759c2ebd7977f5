"""One call of the command: run what is planned, write every output."""

from collections.abc import Callable, Sequence
import functools
import pathlib
import sys
from typing import Any

import pandas as pd

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
from tff_fedopt.tables.report import latex
from tff_fedopt.tables.report import markdown
from tff_fedopt.tables.report import plots


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
    return _write_all(work, results, out_dir, store_reference, check, restamp)


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


def _write_all(work, results, out_dir, store_reference, check, restamp):
  """Writes the tables; returns the exit code."""
  by_run = {result.spec: result for result in results}
  code, texts = 0, []
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
    compared = (
        reference.differences(options.profile, rows, stamps)
        if not options.rounds and result.form == table.form
        else None
    )
    text = markdown.render(result, compared)
    write(result, rows, text, out_dir)
    if check:
      code = max(code, _report_check(table, rows, compared))
    elif restamp:
      code = max(code, _restamp(table, options, rows))
    else:
      texts.append(text)
    if any(cell.status == 'failed' for cell in result.cells):
      code = 1
  # At last: every file is there even if nobody reads on.
  print(*texts, sep='\n')
  print(f'results: {out_dir}', file=sys.stderr)
  return code


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
    rows: pd.DataFrame,
    text: str,
    out_dir: pathlib.Path,
) -> None:
  """Writes Markdown, CSV, LaTeX and figures, each moved into place."""
  out_dir.mkdir(parents=True, exist_ok=True)
  name = result.spec.id
  store.write(out_dir / f'{name}.csv', rows)
  for suffix, content in (('md', text), ('tex', latex.render(result))):
    files.write_text(out_dir / f'{name}.{suffix}', content)
  plots.draw(result, out_dir)
