"""`python -m tff_fedopt.train`: see `tff_fedopt.commands.train`."""

import sys

from tff_fedopt.commands import command_line
from tff_fedopt.commands import train

if __name__ == '__main__':
  command_line.end_with(train.main, sys.argv[1:])
