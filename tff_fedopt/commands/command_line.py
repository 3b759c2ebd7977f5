"""What the commands share: flags, help, errors and how they end.

Flags are absl's, so that `--flagfile=FILE` works everywhere. A wrong command
line is one line on standard error and exit code 2.
"""

from collections.abc import Callable, Sequence
import dataclasses
import os
import pathlib
import re
import signal
import sys
from typing import Any

from absl import flags

from tasks.data import sources
from tff_fedopt import plugins
from tff_fedopt import spelling
from tff_fedopt.runtime import inherited

_EVERYWHERE = 'flags of every command'
_IMPORT = (
    'a module, or the path of a Python file, that registers algorithms, tasks'
    ' or tables; may be given several times'
)


class Failed(Exception):
  """A command did what was asked and it failed: one line, exit code 1."""


@dataclasses.dataclass(frozen=True)
class Command:
  """A command of the project.

  Attributes:
    name: As `python -m tff_fedopt` takes it.
    summary: What it does and its exit codes.
    examples: Arguments that somebody may want to copy.
    define: Defines its flags, by `Section`.
    run: Maps flags and arguments to the exit code. A `ValueError` of ours is
      wrong usage.
    arguments: What it takes beside flags, for the help; '' for nothing.
    go_on: How to continue after an interruption.
  """

  name: str
  summary: str
  examples: Sequence[str]
  define: Callable[[flags.FlagValues], None]
  run: Callable[[flags.FlagValues, list[str]], int]
  arguments: str = ''
  go_on: str = ''


class Section:
  """Defines flags that the help shows together."""

  def __init__(self, values: flags.FlagValues, title: str):
    self._values = values
    self._title = title

  def text(self, name: str, default: str | None, meaning: str) -> None:
    self._define(name, default, meaning, str, 'a text')

  def texts(self, name: str, meaning: str) -> None:
    """A flag that may be repeated."""
    self._define(name, [], meaning, str, 'a text', flags.MultiFlag)

  def switch(self, name: str, default: bool | None, meaning: str) -> None:
    self._define(
        name, default, meaning, _true_or_false, 'true or false', boolean=True
    )

  def number(self, name: str, default: float | None, meaning: str) -> None:
    self._define(name, default, meaning, float, 'a number')

  def whole(
      self,
      name: str,
      default: int | None,
      meaning: str,
      least: int | None = None,
  ) -> None:
    expected = 'a whole number'
    if least is not None:
      expected += f', {least} or more'

    def read(text):
      value = int(text)
      if least is not None and value < least:
        raise ValueError(text)
      return value

    self._define(name, default, meaning, read, expected)

  def choice(
      self,
      name: str,
      default: str | None,
      choices: Sequence[str],
      meaning: str,
  ) -> None:
    expected = 'one of ' + ', '.join(choices)

    def read(text):
      if text not in choices:
        raise ValueError(text)
      return text

    self._define(name, default, f'{expected}: {meaning}', read, expected)

  def items(
      self,
      name: str,
      meaning: str,
      read: Callable[[str], Any] = str,
      expected: str = 'labels, separated by commas',
  ) -> None:
    """A flag whose value is a list, separated by commas."""

    def read_all(text):
      parts = [part.strip() for part in text.split(',') if part.strip()]
      if not parts:
        raise ValueError(text)
      return [read(part) for part in parts]

    self._define(name, None, meaning, read_all, expected)

  def _define(
      self, name, default, meaning, read, expected, kind=flags.Flag, **more
  ):
    flag = kind(_Parser(read, expected), None, name, default, meaning, **more)
    flag.help = meaning  # absl adds words to it.
    flags.DEFINE_flag(flag, self._values, self._title)


class _Parser(flags.ArgumentParser):
  """Reads a flag's value; its errors say what would be right."""

  def __init__(self, read, expected):
    self._read = read
    self.expected = expected

  def parse(self, argument):
    if not isinstance(argument, str):
      return argument  # A default.
    try:
      return self._read(argument)
    except ValueError:
      raise ValueError(f'expected {self.expected}') from None


def _true_or_false(text):
  words = {'true': True, '1': True, 'false': False, '0': False}
  if text.lower() not in words:
    raise ValueError(text)
  return words[text.lower()]


def run(command: Command, argv: Sequence[str]) -> int:
  """Runs a command.

  Args:
    command: The command.
    argv: The arguments, without the program's name.

  Returns:
    The exit code; 130 or 143 if it was interrupted (Ctrl-C, SIGTERM).
  """

  def fail(error, code):
    print(f'{command.name}: {" ".join(str(error).split())}', file=sys.stderr)
    return code

  interrupted = 'interrupted' + (command.go_on and f'; {command.go_on}')
  handler = signal.getsignal(signal.SIGTERM)
  try:
    for name in _plugins(argv):
      plugins.load(name)
    values = flags.FlagValues()
    command.define(values)
    everywhere = Section(values, _EVERYWHERE)
    everywhere.text(
        'flagfile', None, 'a file with flags, one --name=value a line'
    )
    everywhere.texts('import', _IMPORT)
    if {'--help', '-h', '-help'} & set(argv):
      print(_help(command, values))
      return 0
    arguments = _parse(command, values, argv)
    # As Ctrl-C: what is under way is ended or saved first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return command.run(values, arguments)
  except BrokenPipeError:
    raise  # Nobody reads on; see `end_with`.
  except ValueError as e:
    if plugins.raised(e):
      raise
    return fail(e, 2)
  except (Failed, OSError) as e:  # A full disk, for one.
    return fail(e, 1)
  except KeyboardInterrupt:
    return fail(interrupted, 128 + signal.SIGINT)
  except SystemExit as e:
    if e.code != 128 + signal.SIGTERM:
      raise
    return fail(interrupted, e.code)
  finally:
    signal.signal(signal.SIGTERM, handler)


def _plugins(argv) -> list[str]:
  """Returns what is to be imported before the other flags are known."""
  values = flags.FlagValues()
  section = Section(values, _EVERYWHERE)
  section.texts('import', _IMPORT)
  section.text('task', None, 'as train has it')
  section.text('algorithm', None, 'as train has it')
  try:
    values(['', *argv], known_only=True)
  except (flags.Error, UnicodeDecodeError):
    return []  # It comes again when all flags are read.
  named = [values['task'].value or '', values['algorithm'].value or '']
  modules = [name.rpartition(':')[0] for name in named]
  return [*values['import'].value, *filter(None, modules)]


def _parse(command, values, argv) -> list[str]:
  """Reads the flags; returns the other arguments.

  Raises:
    ValueError: One line: what is wrong, and what would be right.
  """
  try:
    # The flag is defined for the help alone; absl reads the file itself.
    arguments = values([command.name, *argv])[1:]
  except flags.UnrecognizedFlagError as e:
    known = [name for name in values if len(name) > 1]
    switches = [f'no{n}' for n in known if values[n].boolean]
    hint = spelling.near(e.flagname, [*known, *switches], '--')
    raise ValueError(
        f'unknown flag --{e.flagname}; {hint or "--help lists them"}'
    ) from e
  except flags.CantOpenFlagFileError as e:
    reason = str(e).partition('flagfile: ')[2]
    raise ValueError(
        f'--flagfile: {reason}; expected a file with one --flag=value a line'
    ) from e
  except UnicodeDecodeError as e:
    raise ValueError(
        '--flagfile: not a text; expected a file with one --flag=value a line'
    ) from e
  except flags.Error as e:
    raise ValueError(_wrong_value(values, str(e))) from e
  if arguments and not command.arguments:
    raise ValueError(
        f'unexpected argument {arguments[0]!r}; expected flags, --name=value'
    )
  return arguments


def _wrong_value(values, message):
  """absl's message about a value, as all others here are worded."""
  wrong = re.fullmatch(r'flag (--\w+)=(.*): (expected .*)', message, re.DOTALL)
  if wrong:
    return f'{wrong[1]}: {wrong[2]!r}; {wrong[3]}'
  missing = re.fullmatch(
      r'(?:Missing value for flag )?-+(\w+)(?: with no argument)?', message
  )
  if missing:
    expected = values[missing[1]].parser.expected
    return f'--{missing[1]}: no value given; expected {expected}'
  return message


def _help(command, values) -> str:
  """The usage text."""
  usage = f'python -m tff_fedopt {command.name}'
  lines = [command.summary.strip(), '']
  takes = ' '.join(filter(None, (command.arguments, '[--flag=value …]')))
  lines.append(f'usage: {usage} {takes}')
  lines += ['', 'examples:']
  lines += [f'  {usage} {example}'.rstrip() for example in command.examples]
  for section, its_flags in values.flags_by_module_dict().items():
    lines += ['', f'{section}:']
    for flag in its_flags:
      name = f'[no]{flag.name}' if flag.boolean else flag.name
      default = f' [{flag.default}]' if flag.default else ''
      lines.append(f'  --{name}: {flag.help}{default}')
  return '\n'.join(lines)


def check_folder(flag: str, path: str | os.PathLike[str]) -> None:
  """Checks that a folder is there or can be made, without making it.

  Args:
    flag: What names it on the command line.
    path: The folder.

  Raises:
    ValueError: If it cannot be a folder.
  """
  existing = pathlib.Path(path).absolute()
  while not existing.exists():
    existing = existing.parent
  if not existing.is_dir() or not os.access(existing, os.W_OK):
    raise ValueError(
        f'{flag}: {path} cannot be used ({existing} is not a folder that can be'
        ' written)'
    )


def check_data_dir(path: str | None) -> None:
  """Checks `--data_dir`, None for the default, and where data are kept.

  Raises:
    ValueError: If there is no such folder, or no place for data made here.
  """
  sources.user_cache_dir()
  if path is not None and not os.path.isdir(path):
    raise ValueError(f'--data_dir: there is no folder {path}')


def end_with(main, argv) -> None:
  """Ends the process with what `main` returns; quietly if nobody reads on."""
  inherited.settle()
  try:
    code = main(argv)
    sys.stdout.flush()
  except BrokenPipeError:
    # As `command | head` ends other commands; nothing is left to be flushed.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    code = 141
  sys.exit(code)
