"""One entry to all commands: `tff_fedopt COMMAND [ARGUMENT …]`.

`python -m tff_fedopt` is the same where the package is not installed.
"""

import importlib
import sys

from tff_fedopt import spelling
from tff_fedopt.commands import command_line

COMMANDS = (
    'bench',
    'claims',
    'doctor',
    'download',
    'gpu_check',
    'tables',
    'train',
)


def main(argv: list[str]) -> int:
  """Runs a command.

  Args:
    argv: The command's name, then its arguments.

  Returns:
    Its exit code.
  """
  known = ', '.join(COMMANDS)
  if argv[:1] in (['--help'], ['-h']):
    print(f'{__doc__}\n\nCommands: {known}; COMMAND --help says more.')
    return 0
  if not argv or argv[0] not in COMMANDS:
    wanted = f'unknown command {argv[0]!r}' if argv else 'no command'
    hint = argv and spelling.near(argv[0], COMMANDS)
    print(f'tff_fedopt: {wanted}; {hint or "one of " + known}', file=sys.stderr)
    return 2
  module = importlib.import_module(f'tff_fedopt.commands.{argv[0]}')
  return module.main(argv[1:])


def command() -> None:
  """The installed command."""
  command_line.end_with(main, sys.argv[1:])


if __name__ == '__main__':
  command()
