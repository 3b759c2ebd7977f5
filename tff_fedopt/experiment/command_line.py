"""What the project's commands share."""

import argparse


class Parser(argparse.ArgumentParser):
  """Reports a wrong command line in one line, exit code 2."""

  def error(self, message):
    self.exit(2, f'{self.prog}: {message}\n')
