"""Federated optimisation algorithms for TensorFlow Federated, by the papers.

Importing this package checks the environment and nothing else; TensorFlow is
loaded by the first use of a name that needs it.
"""

import importlib

from tff_fedopt import environment

environment.check()

# Public name -> the module that defines it; a module stands for itself.
_MODULE_OF = {
    'algorithms': 'tff_fedopt.algorithms',
    'client_input': 'tff_fedopt.processes.client_input',
    'collect_client_state': 'tff_fedopt.processes.client_state',
    'initial_weights': 'tff_fedopt.experiment.rounds',
    'run': 'tff_fedopt.experiment.rounds',
    'RunSpec': 'tff_fedopt.experiment.spec',
    'runtime': 'tff_fedopt.runtime',
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name):
  if name not in _MODULE_OF:
    raise AttributeError(
        'module %r has no attribute %r; it has %s'
        % (__name__, name, ', '.join(__all__))
    )
  module = importlib.import_module(_MODULE_OF[name])
  if module.__name__ == __name__ + '.' + name:
    return module
  return getattr(module, name)


def __dir__():
  return sorted(set(globals()) | set(__all__))
