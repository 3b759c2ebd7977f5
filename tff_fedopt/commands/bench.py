"""Measures rounds and steps side by side, as ratios within one run.

Exit code: 0 done, 1 a variant failed, 2 wrong usage.
"""

from collections.abc import Sequence
import datetime
import os
import pathlib
import sys

from absl import flags
import pandas as pd

from tff_fedopt import algorithms
from tff_fedopt import plugins
from tff_fedopt import spelling
from tff_fedopt.bench import measure
from tff_fedopt.bench import variants
from tff_fedopt.commands import command_line
from tff_fedopt.commands import engine_flags
from tff_fedopt.experiment import files


def _define(values: flags.FlagValues) -> None:
  section = command_line.Section(values, 'how it is measured')
  section.whole(
      'turns', 5, 'how often each variant is measured after a start', least=1
  )
  section.whole('starts', 2, 'how often all variants are started', least=1)
  section.text(
      'algorithm',
      None,
      'a round of this algorithm beside one of FedAvg; also MODULE:NAME of a'
      ' module to import',
  )
  section.text('out', 'runs/bench.csv', 'where the table is saved')
  engine_flags.define(values)


def _run(values: flags.FlagValues, comparisons: list[str]) -> int:
  for name in comparisons:
    if name not in variants.COMPARISONS:
      hint = spelling.near(name, variants.COMPARISONS)
      known = 'there are ' + ', '.join(variants.COMPARISONS)
      raise ValueError(f'no comparison {name!r}; {hint or known}')
  if values.algorithm:
    algorithm = plugins.own_name(values.algorithm)
    algorithms.hyperparameters(algorithm)  # Is there one?
    comparisons = [*comparisons, variants.BESIDE_FEDAVG + algorithm]
  command_line.check_folder('--out', pathlib.Path(values.out).parent)
  engine_flags.choose(values)
  measured = []
  for name in comparisons or variants.COMPARISONS:
    try:
      table = measure.compare(name, values.turns, values.starts)
    except RuntimeError as e:
      raise command_line.Failed(f'{name}: {e}') from e
    print(table.to_string(index=False, justify='left'), end='\n\n', flush=True)
    measured.append(table)
  table = pd.concat(measured).assign(
      cores=len(os.sched_getaffinity(0)),
      date=datetime.date.today().isoformat(),
  )
  text = table.to_csv(index=False, lineterminator='\n')
  files.write_atomically(values.out, [text.encode()])
  print(f'saved in {values.out}')
  return 0


_COMMAND = command_line.Command(
    name='bench',
    summary=(__doc__ or '')
    + '\nComparisons (without one, all of them):\n'
    + '\n'.join(f'  {k}: {v.what}' for k, v in variants.COMPARISONS.items()),
    examples=(
        'emnist_round',
        'lstm_step_256 --turns=3 --out=bench.csv',
        '--algorithm=examples/fedexp.py:fedexp',
    ),
    define=_define,
    run=_run,
    arguments='[COMPARISON …]',
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
