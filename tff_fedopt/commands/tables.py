"""Makes tables: `python -m tff_fedopt.tables [TABLE …] [--profile=…] …`.

Exit code: 0 done, 1 a run failed or a number is outside its tolerance, 2
wrong usage or missing data.
"""

import argparse
from collections.abc import Sequence
import os
import pathlib
import signal
import sys

from tasks import task as task_lib
from tff_fedopt import papers
from tff_fedopt.commands import command_line
from tff_fedopt.tables import plan as plan_lib
from tff_fedopt.tables import reference


def _count(text):
  value = int(text)
  if value < 1:
    raise ValueError(text)
  return value


def _labels(text):
  parts = [part.strip() for part in text.split(',') if part.strip()]
  if not parts:
    raise ValueError(text)
  return parts


def _seeds(text):
  return [int(part) for part in _labels(text)]


# argparse names these in its messages.
_count.__name__ = 'count (1, 2, …)'
_labels.__name__ = 'list of labels'
_seeds.__name__ = 'list of integers'


def _parser():
  parser = command_line.Parser(
      prog='tables',
      allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter,
      description=(
          'Runs the experiments of a table and writes it as Markdown, CSV,'
          ' LaTeX and plots.\nEXAMPLES\n'
          '  tables --list\n'
          '  tables afo_main\n'
          "  tables afo_main --rows='SO LR,EMNIST CR' --jobs=2\n"
          '  tables afo_main --profile=small --data_dir=DIR --resume'
      ),
  )
  add = parser.add_argument
  add('tables', nargs='*', metavar='TABLE', help='table ids; see --list')
  add('--list', action='store_true', help='list the tables and stop')
  add(
      '--profile',
      choices=task_lib.PROFILES,
      default='quick',
      help=(
          'quick: reduced models on embedded synthetic data; small: real'
          ' models and data, fewer rounds; paper: exactly as published'
      ),
  )
  add('--paper', help='all tables of a paper, if no TABLE is named')
  add('--data_dir', help='folder with the canonical data files')
  add('--out_dir', help='where results go (default: runs/PROFILE)')
  add('--resume', action='store_true', help='continue what was interrupted')
  add('--jobs', type=_count, help='processes (default: cores, at most 4)')
  add('--rows', type=_labels, default=[], help='only these rows, by label')
  add('--columns', type=_labels, default=[], help='only these columns')
  add('--rounds', type=_count, help="rounds instead of the profile's")
  add('--seeds', type=_seeds, default=[], help="seeds instead of the table's")
  add(
      '--form',
      choices=('code', 'paper'),
      help='adaptive servers as in the published code or algorithm box',
  )
  add(
      '--store_reference',
      action='store_true',
      help='store the numbers as the reference in results/',
  )
  add(
      '--check',
      action='store_true',
      help='re-run the rows that are checked and compare with the reference',
  )
  add(
      '--full',
      action='store_true',
      help='with --check: every row, not only those checked by default',
  )
  return parser


def listing() -> str:
  """Returns the available tables: id, paper, what they show, times."""
  lines = []
  for name in papers.names():
    table = papers.get(name)
    times = ', '.join(f'{p}: {table.estimates[p]}' for p in task_lib.PROFILES)
    lines += [
        f'{table.id:20}{table.paper:8}{table.title}',
        f'{"":28}the paper: {table.shows}',
        f'{"":28}{times}',
    ]
  return '\n'.join(lines)


def _chosen(parser, flags):
  if flags.tables:
    return [papers.get(name) for name in dict.fromkeys(flags.tables)]
  if flags.paper is None:
    return [papers.get(name) for name in papers.DEFAULT]
  names = papers.names(flags.paper)
  if not names:
    known = sorted({papers.get(name).paper for name in papers.names()})
    parser.error(
        f'this version has no table of {flags.paper!r}; it has tables of'
        f' {", ".join(known)}'
    )
  return [papers.get(name) for name in names]


def main(argv: Sequence[str]) -> int:
  """Runs the command.

  Args:
    argv: The arguments, without the program's name.

  Returns:
    The exit code.
  """
  parser = _parser()
  flags = parser.parse_intermixed_args(argv)
  if flags.list:
    print(listing())
    return 0
  if flags.full and not flags.check:
    parser.error('--full belongs to --check')
  if flags.check and (flags.rounds or flags.seeds or flags.store_reference):
    parser.error('--check goes without --rounds, --seeds, --store_reference')
  if flags.store_reference and flags.rounds:
    parser.error('--store_reference goes without --rounds')
  jobs = flags.jobs or min(4, os.cpu_count() or 1)
  out_dir = pathlib.Path(flags.out_dir or pathlib.Path('runs', flags.profile))
  try:
    command_line.check_data_dir(flags.data_dir)
    chosen = _chosen(parser, flags)
    work = []
    for table in chosen:
      rows = flags.rows
      if flags.check and not (rows or flags.columns or flags.full):
        rows = table.check_rows
      options = plan_lib.Options(
          profile=flags.profile,
          data_dir=flags.data_dir,
          form=flags.form,
          rows=rows,
          columns=flags.columns,
          rounds=flags.rounds,
          seeds=flags.seeds,
      )
      work.append((table, options, plan_lib.plan(table, options)))
      if flags.check and not reference.path(flags.profile, table.id).exists():
        parser.error(
            f'{table.id} has no stored reference of profile {flags.profile} to'
            ' check; --store_reference makes one'
        )
    if flags.rounds and not plan_lib.run_specs([planned for *_, planned in work]):
      parser.error(
          '--rounds: nothing that was chosen is trained; what is measured has'
          ' a length of its own'
      )
    command_line.check_folder('--out_dir', out_dir)
  except ValueError as error:
    parser.error(str(error))
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  from tff_fedopt.tables import session

  # As Ctrl-C: runs save where they are.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
  try:
    return session.make(
        work,
        out_dir=out_dir,
        jobs=jobs,
        resume=flags.resume,
        store_reference=flags.store_reference,
        check=flags.check,
    )
  except ValueError as error:
    # What only the data can tell: a missing file, too few clients.
    parser.error(' '.join(str(error).split()))
  except OSError as error:  # A full disk, for one.
    parser.exit(1, f'tables: {error}; --resume continues\n')
  except KeyboardInterrupt:
    print('tables: interrupted; --resume continues', file=sys.stderr)
    return 128 + signal.SIGINT


if __name__ == '__main__':
  command_line.end_with(main, sys.argv[1:])
