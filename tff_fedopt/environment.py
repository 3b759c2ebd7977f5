"""What this library runs on, checked without importing TensorFlow.

This file and the package's `__init__.py` must parse on old and future Pythons:
a wrong interpreter gets one line, not a syntax error.
"""

import os
import platform
import sys

PYTHONS = ((3, 10), (3, 11))
# Distribution -> the release that works. TFF's internals are used, so exactly
# one; any patch of TensorFlow 2.14 does.
RELEASES = {'tensorflow-federated': '0.87.0', 'tensorflow': '2.14'}
REMEDY = 'run `bash scripts/setup.sh` and use .venv/bin/python'


def installed_version(distribution):
  """Returns the installed release of a distribution, or None."""
  # Not at the top: Python 3.7 has no such module and shall get the line too.
  from importlib import metadata  # pylint: disable=g-import-not-at-top

  try:
    return metadata.version(distribution)
  except metadata.PackageNotFoundError:
    return None


def problem(
    python=None, system=None, machine=None, version_of=installed_version
):
  """Returns the first reason why this library cannot run here, or None.

  Args:
    python: Version tuple of the interpreter; None means the running one.
    system: Name of the operating system as `platform.system()` gives it.
    machine: Name of the processor as `platform.machine()` gives it.
    version_of: Distribution name -> installed release or None.

  Returns:
    One line: what is wrong, what would be right.
  """
  python = tuple(python or sys.version_info)[:2]
  system = system or platform.system()
  machine = machine or platform.machine()
  if (system, machine) != ('Linux', 'x86_64'):
    return (
        'tff_fedopt needs Linux x86_64, the only platform of TensorFlow '
        'Federated 0.87; this is %s %s' % (system, machine)
    )
  if python not in PYTHONS:
    return 'tff_fedopt needs Python 3.10 or 3.11; this is %d.%d; %s' % (
        python + (REMEDY,)
    )
  for distribution, wanted in RELEASES.items():
    needs = 'tff_fedopt needs %s %s' % (distribution, wanted)
    found = version_of(distribution)
    if found is None:
      return '%s, which is not installed; %s' % (needs, REMEDY)
    parts = wanted.split('.')
    if found.split('.')[: len(parts)] != parts:
      return '%s; installed is %s; %s' % (needs, found, REMEDY)
  return None


def check():
  """Raises ImportError with one line where this library cannot run.

  Run as `python -m tff_fedopt…` or as the installed command `tff_fedopt`, it
  prints the line and exits with status 2.
  """
  reason = problem()
  if reason is None:
    return
  # While Python looks for the module to run, and so imports the package that
  # holds it, sys.argv[0] is '-m'. That tells a command from an import.
  program = os.path.basename(sys.argv[0]) if sys.argv else ''
  if program in ('-m', 'tff_fedopt'):
    sys.stderr.write(reason + '\n')
    sys.exit(2)
  raise ImportError(reason)
