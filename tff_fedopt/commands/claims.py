"""Prints each claim of the papers with its verdict, computed on every call.

Exit code: 0 done, 2 wrong usage.
"""

from collections.abc import Sequence
import pathlib
import sys

from absl import flags

from tasks import task as task_lib
from tff_fedopt.commands import command_line
from tff_fedopt.papers import claims as claims_lib
from tff_fedopt.tables.report import claims as report


def _define(values: flags.FlagValues) -> None:
  what = command_line.Section(values, 'whose numbers')
  what.choice(
      'profile',
      'quick',
      task_lib.PROFILES,
      'numbers of the quick, the small, the paper profile',
  )
  what.text('out_dir', None, "a run's folder (default: the stored references)")


def _run(values: flags.FlagValues, arguments: list[str]) -> int:
  out_dir = values.out_dir and pathlib.Path(values.out_dir)
  if out_dir and not out_dir.is_dir():
    raise ValueError(f'--out_dir {out_dir}: no such folder')
  chosen = claims_lib.select(arguments)
  judged = claims_lib.judge(chosen, values.profile, out_dir)
  print(*map(report.line, judged), sep='\n')
  print(f'{values.profile}: {report.summary(judged)}')
  return 0


_COMMAND = command_line.Command(
    name='claims',
    summary=__doc__ or '',
    examples=('', 'afo_main', 'afo-05 --profile=small'),
    define=_define,
    run=_run,
    arguments='[PAPER|TABLE|ID …]',
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
