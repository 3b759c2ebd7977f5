"""Makes tables: runs their experiments, writes Markdown, CSV, LaTeX and plots.

Exit code: 0 done, 1 a run failed or a number is outside its tolerance, 2
wrong usage or missing data, 130 or 143 interrupted (Ctrl-C, SIGTERM).
"""

from collections.abc import Sequence
import os
import pathlib
import sys

from absl import flags

from tasks import task as task_lib
from tff_fedopt import papers
from tff_fedopt.commands import command_line
from tff_fedopt.commands import engine_flags
from tff_fedopt.commands import flagfiles
from tff_fedopt.experiment import data_check
from tff_fedopt.papers import claims as claims_lib
from tff_fedopt.tables import origin
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import reference


def _define(values: flags.FlagValues) -> None:
  what = command_line.Section(values, 'what is made')
  what.switch('list', False, 'list the tables and stop')
  what.switch(
      'settings',
      False,
      'print every setting of the tables with where it is from, and stop',
  )
  what.text('paper', None, 'all tables of a paper, if no TABLE is named')
  what.choice(
      'profile',
      'quick',
      task_lib.PROFILES,
      'reduced models on embedded synthetic data; real models and data, fewer'
      ' rounds; as published as far as that is known (see --settings)',
  )
  what.text('data_dir', None, 'folder with the canonical data files')
  what.items('rows', 'only these rows, by label')
  what.items('columns', 'only these columns')
  what.whole('rounds', None, "rounds instead of the profile's", least=1)
  what.items(
      'seeds',
      "seeds instead of the table's",
      int,
      'whole numbers, separated by commas',
  )
  what.choice(
      'form',
      None,
      ('code', 'paper'),
      'adaptive servers as in the published code or algorithm box',
  )
  how = command_line.Section(values, 'how it is made')
  how.text('out_dir', None, 'where results go (default: runs/PROFILE)')
  how.switch('resume', False, 'continue what was interrupted')
  how.whole('jobs', None, 'processes (default: cores, at most 4)', least=1)
  how.switch(
      'dry_run',
      False,
      'print the runs as flagfiles of train and stop; with --out_dir, write'
      ' them there',
  )
  how.switch(
      'store_reference',
      False,
      'store the numbers as the reference in results/',
  )
  how.switch(
      'restamp',
      False,
      're-run the rows that are checked; where their numbers are as stored,'
      ' mark the stored rows as of the code of today',
  )
  how.switch(
      'check',
      False,
      're-run the rows that are checked and compare with the reference',
  )
  how.switch(
      'full',
      False,
      'with --check: every row, not only those checked by default',
  )
  engine_flags.define(values)


def listing() -> str:
  """Returns the available tables: id, paper, what they show, times."""
  lines = []
  for name in papers.names():
    table = papers.get(name)
    times = ', '.join(f'{p}: {table.estimates[p]}' for p in task_lib.PROFILES)
    lines += [
        f'{table.id:20}{table.paper:18}{table.title}',
        f'{"":38}the paper: {table.shows}',
        f'{"":38}{times}',
    ]
  return '\n'.join(lines)


def _chosen(names, paper):
  if names:
    return [papers.get(name) for name in dict.fromkeys(names)]
  if paper is None:
    return [papers.get(name) for name in papers.DEFAULT]
  its_names = papers.names(paper)
  if not its_names:
    known = sorted({papers.get(name).paper for name in papers.names()})
    raise ValueError(
        f'this version has no table of {paper!r}; it has tables of'
        f' {", ".join(known)}'
    )
  return [papers.get(name) for name in its_names]


def _check(values):
  """Refuses flags that do not go together."""
  compares = values.check or values.restamp
  if values.check and values.restamp:
    raise ValueError('--check and --restamp; expected one of them')
  if values.full and not compares:
    raise ValueError('--full belongs to --check or --restamp')
  if compares and (values.rounds or values.seeds or values.store_reference):
    raise ValueError(
        f'--{"check" if values.check else "restamp"} goes without --rounds,'
        ' --seeds, --store_reference'
    )
  if values.store_reference and values.rounds:
    raise ValueError('--store_reference goes without --rounds')
  command_line.check_data_dir(values.data_dir)


def _work(values, chosen):
  """Each table with its options and planned cells."""
  work = []
  for table in chosen:
    rows = values.rows or ()
    compares = values.check or values.restamp
    if compares and not (rows or values.columns or values.full):
      rows = table.check_rows
    options = plan_lib.Options(
        profile=values.profile,
        data_dir=values.data_dir,
        form=values.form,
        rows=rows,
        columns=values.columns or (),
        rounds=values.rounds,
        seeds=values.seeds or (),
    )
    work.append((table, options, plan_lib.plan(table, options)))
    if compares and not reference.path(values.profile, table.id).exists():
      raise ValueError(
          f'{table.id} has no stored reference of profile {values.profile} to'
          ' check; --store_reference makes one'
      )
  plans = [planned for *_, planned in work]
  if values.rounds and not plan_lib.run_specs(plans):
    raise ValueError(
        '--rounds: nothing that was chosen is trained; what is measured has a'
        ' length of its own'
    )
  return work


def _dry_run(work, folder) -> int:
  """Prints the runs as flagfiles, or writes them."""
  found = [
      flagfile
      for table, _, planned in work
      for flagfile in flagfiles.of_table(table.id, planned)
  ]
  if folder:
    for path in flagfiles.write(found, folder):
      print(path)
  else:
    print('\n'.join(flagfile.text for flagfile in found), end='')
  return 0


def _run(values: flags.FlagValues, names: list[str]) -> int:
  if values.list:
    print(listing())
    return 0
  _check(values)
  work = _work(values, _chosen(names, values.paper))
  if values.settings:
    print('\n\n'.join(origin.listing(*one) for one in work))
    return 0
  data_check.require(run for *_, cells in work for c in cells for run in c.runs)
  out_dir = pathlib.Path(values.out_dir or pathlib.Path('runs', values.profile))
  command_line.check_folder('--out_dir', out_dir)
  if values.dry_run:
    return _dry_run(work, values.out_dir and out_dir)
  engine_flags.choose(values)
  from tff_fedopt.tables import session

  return session.make(
      work,
      out_dir=out_dir,
      jobs=values.jobs or min(4, os.cpu_count() or 1),
      resume=values.resume,
      store_reference=values.store_reference,
      check=values.check,
      restamp=values.restamp,
      judge=claims_lib.of_tables,
  )


_COMMAND = command_line.Command(
    name='tables',
    summary=__doc__ or '',
    examples=(
        '--list',
        'afo_main',
        "afo_main --rows='SO LR,EMNIST CR' --jobs=2",
        'afo_main --profile=small --data_dir=DIR --resume',
        'afo_main --dry_run --out_dir=FOLDER',
        '--settings afo_main --profile=paper',
    ),
    define=_define,
    run=_run,
    arguments='[TABLE …]',
    go_on='--resume goes on',
)


def main(argv: Sequence[str]) -> int:
  """Runs the command.

  Args:
    argv: The arguments, without the program's name.

  Returns:
    The exit code.
  """
  return command_line.run(_COMMAND, argv)


if __name__ == '__main__':
  command_line.end_with(main, sys.argv[1:])
