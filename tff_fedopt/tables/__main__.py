"""`python -m tff_fedopt.tables`: see `tff_fedopt.commands.tables`."""

import sys

from tff_fedopt.commands import command_line
from tff_fedopt.commands import tables

if __name__ == '__main__':
  command_line.end_with(tables.main, sys.argv[1:])
