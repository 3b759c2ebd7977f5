"""A table from outside the package: FedExP beside FedAvg.

    python -m tff_fedopt tables fedexp_tags --import=examples/fedexp_table.py
"""

import pathlib

from tff_fedopt import papers
from tff_fedopt import plugins
from tff_fedopt.experiment import reductions
from tff_fedopt.tables import spec

plugins.load(str(pathlib.Path(__file__).with_name('fedexp.py')))

_METHODS = {'FedAvg': 'fedavg', 'FedExP': 'fedexp'}
_ROUNDS = {'quick': 40, 'small': 100, 'paper': 1500}


def _cells(profile, form):
  del form
  return [
      spec.Cell('SO LR', label, [_setting(profile, algorithm)])
      for label, algorithm in _METHODS.items()
  ]


def _setting(profile, algorithm):
  return spec.Setting(
      task='stackoverflow_tag',
      algorithm=algorithm,
      hyperparameters={
          'client_learning_rate': 10.0, 'client_weighting': 'uniform'
      },
      source='guessed: an example, not tuned',
      rounds=_ROUNDS[profile],
      cohort_size=10,
      evaluate_every=4,
      validation_examples=500,
  )


papers.register(
    spec.TableSpec(
        id='fedexp_tags',
        title='FedExP beside FedAvg',
        paper='FedExP',
        citation='no published table: an example',
        shows='extrapolation makes up for clients that disagree',
        kind='table',
        form='paper',
        forms=('paper',),
        row_header='task',
        column_header='method',
        build=_cells,
        reduction=dict.fromkeys(_ROUNDS, reductions.parse('last:3')),
        seeds={'quick': (0,), 'small': (0,), 'paper': (1,)},
        estimates=dict.fromkeys(_ROUNDS, 'not measured'),
    )
)
