"""Federated optimisation algorithms for TensorFlow Federated, by the papers.

Importing this package checks the environment and nothing else; TensorFlow is
loaded by the first use of a name that needs it.
"""

import importlib
import os

from tff_fedopt import environment

__version__ = '0.1.0'

environment.check()

# TensorFlow 2.14 starts with errors about CUDA that mean nothing here. Whoever
# wants its messages sets the variable.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

# Public name -> the module that defines it and its name there; a module stands
# for itself.
_HOME_OF = {
    'algorithms': ('tff_fedopt.algorithms', None),
    'client_input': ('tff_fedopt.processes.client_input', 'client_input'),
    'ClientStateError': (
        'tff_fedopt.processes.client_state',
        'ClientStateError',
    ),
    'ClientWorkError': ('tff_fedopt.experiment.failures', 'ClientWorkError'),
    'collect_client_state': (
        'tff_fedopt.processes.client_state',
        'collect_client_state',
    ),
    'initial_weights': ('tff_fedopt.experiment.rounds', 'initial_weights'),
    'run': ('tff_fedopt.experiment.rounds', 'run'),
    'run_experiment': ('tff_fedopt.experiment.runner', 'run_experiment'),
    'RunSpec': ('tff_fedopt.experiment.spec', 'RunSpec'),
    'runtime': ('tff_fedopt.runtime', None),
    'sweep': ('tff_fedopt.experiment.sweep', 'run_all'),
    'WorkerDied': ('tff_fedopt.runtime', 'WorkerDied'),
}

__all__ = sorted(['__version__', *_HOME_OF])


def __getattr__(name):
  if name not in _HOME_OF:
    raise AttributeError(
        'module %r has no attribute %r; it has %s'
        % (__name__, name, ', '.join(__all__))
    )
  module, inner = _HOME_OF[name]
  module = importlib.import_module(module)
  return module if inner is None else getattr(module, inner)


def __dir__():
  return list(__all__)
