"""Measures rounds and steps side by side: `python -m tff_fedopt bench`."""

from collections.abc import Sequence
import datetime
import os
import pathlib
import signal
import sys

import pandas as pd

from tff_fedopt.bench import measure
from tff_fedopt.bench import variants
from tff_fedopt.commands import command_line
from tff_fedopt.experiment import files


def _print(rows: Sequence[dict[str, str]]) -> None:
  widths = [max(len(r[k]) for r in [*rows, {k: k}]) for k in rows[0]]
  for row in [{k: k for k in rows[0]}, *rows]:
    print('  '.join(v.ljust(w) for v, w in zip(row.values(), widths)).rstrip())
  print(flush=True)


def main(argv: Sequence[str]) -> int:
  parser = command_line.Parser(
      prog='bench', description=(__doc__ or '').split('\n', maxsplit=1)[0]
  )
  parser.add_argument(
      'comparison',
      nargs='*',
      metavar='COMPARISON',
      help='; '.join(f'{k}: {v.what}' for k, v in variants.COMPARISONS.items()),
  )
  parser.add_argument(
      '--turns',
      type=int,
      default=5,
      help='how often each variant is measured after a start',
  )
  parser.add_argument(
      '--starts', type=int, default=2, help='how often all variants are started'
  )
  parser.add_argument(
      '--out', default='runs/bench.csv', help='where the table is saved'
  )
  args = parser.parse_args(argv)
  unknown = [c for c in args.comparison if c not in variants.COMPARISONS]
  if unknown:
    parser.error(
        f'no comparison {unknown[0]!r}; there are ' + ', '.join(variants.COMPARISONS)
    )
  for option in ('turns', 'starts'):
    if getattr(args, option) < 1:
      parser.error(f'--{option} must be at least 1, got {getattr(args, option)}')
  try:
    command_line.check_folder('--out', pathlib.Path(args.out).parent)
  except ValueError as e:
    parser.error(str(e))
  # Ended from outside, the variants are still ended in turn.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  rows = []
  for comparison in args.comparison or variants.COMPARISONS:
    try:
      new = measure.compare(comparison, args.turns, args.starts)
    except RuntimeError as e:
      parser.exit(1, f'bench: {comparison}: {e}\n')
    _print(new)
    rows += new
  date = datetime.date.today().isoformat()
  cores = str(len(os.sched_getaffinity(0)))
  rows = [dict(r, cores=cores, date=date) for r in rows]
  table = pd.DataFrame(rows).to_csv(index=False, lineterminator='\n')
  files.write_atomically(args.out, [table.encode()])
  print(f'saved in {args.out}')
  return 0


if __name__ == '__main__':
  command_line.end_with(main, sys.argv[1:])
