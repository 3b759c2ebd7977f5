"""What the project's commands share."""

import argparse
import os
import pathlib
import sys

from tasks.data import sources


class Parser(argparse.ArgumentParser):
  """Reports a wrong command line in one line, exit code 2."""

  def error(self, message):
    self.exit(2, f'{self.prog}: {message}\n')


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
  try:
    code = main(argv)
    sys.stdout.flush()
  except BrokenPipeError:
    # As `command | head` ends other commands; nothing is left to be flushed.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    code = 141
  sys.exit(code)
