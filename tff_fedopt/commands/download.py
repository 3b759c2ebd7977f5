"""Downloads hosted data sets, checked before they come to their place.

Exit code: 0 the data are there, 2 they cannot be fetched, or wrong usage.
"""

from collections.abc import Sequence
import os
import sys

from absl import flags

from tasks.data import download
from tasks.data import sources
from tff_fedopt import spelling
from tff_fedopt.commands import command_line

_KNOWN = ', '.join(sources.DATASETS)


def _define(values: flags.FlagValues) -> None:
  section = command_line.Section(values, 'where')
  place = f'folder of the data files (default: {sources.default_data_dir()})'
  section.text('data_dir', None, place)


def _run(values: flags.FlagValues, datasets: list[str]) -> int:
  if not datasets:
    raise ValueError(f'no data set named; one of {_KNOWN}')
  for dataset in datasets:
    if dataset not in sources.DATASETS:
      hint = spelling.near(dataset, sources.DATASETS)
      raise ValueError(
          f'unknown data set {dataset!r}; {hint or "one of " + _KNOWN}'
      )
  for dataset in datasets:
    try:
      path = download.download(dataset, values.data_dir)
    except OSError as e:
      raise ValueError(f'{e}; name a folder that can be written') from e
    found = sources.find(dataset, os.path.dirname(path))
    print(f'{path}: {found.kind}, {found.counts}')
  return 0


_COMMAND = command_line.Command(
    name='download',
    summary=(__doc__ or '')
    + '\nData sets:\n'
    + '\n'.join(f'  {k}: about {v.size}' for k, v in sources.DATASETS.items()),
    examples=('shakespeare', 'emnist stackoverflow --data_dir=DIR'),
    define=_define,
    run=_run,
    arguments='DATASET …',
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
