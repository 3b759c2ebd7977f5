"""Settings of FedInit's experiments: methods, conditions, sizes by profile."""

import dataclasses
from typing import Any

from tasks import source
from tff_fedopt.experiment import reductions
from tff_fedopt.papers import scales
from tff_fedopt.tables import spec

_PAPER = source.published('FedInit, Section 5.1')
_CODE = source.code('woodenchild95/FL-Simulator, 502bec6, its defaults')
_FIGURE2 = source.guessed('not published by method; Figure 2 suggests it')
_NOISE = source.guessed('the paper has both noises, but gives no strengths')
# What all runs have, unless a cell says otherwise.
_BASE = {
    **dict.fromkeys(
        (
            'rounds',
            'client_learning_rate',
            'client_learning_rate_schedule',
            'server_learning_rate',
            'cohort_size',
            'track_consistency',
            'task option alpha',
            'task option clients',
            'task option labels',
            'task option unlabelled',
            'task option temperature',
            'task option unlabelled_weight',
            'task option model',
            'task option network',
            'task option pooled',
            'task option beta',
        ),
        _PAPER,
    ),
    **dict.fromkeys(
        (
            'form',
            'client_weighting',
            'weight_decay',
            'max_gradient_norm',
            'client_optimizer',
            'client_state',
            'correction',
            'local_steps',
            'relaxation',
            'beta1',
            'beta2',
            'tau',
            'initial_accumulator',
            'bias_correction',
            'rho',
            'alpha',
            'option',
            'local_epochs',
            'batch_size',
            'evaluate_every',
            'validation_examples',
            'cohorts',
            'participation',
            'task option partition',
            'task option images',
            'task option crop',
            'task option groups',
            'task option weight_decay',
        ),
        _CODE,
    ),
    **dict.fromkeys(
        ('task option client_noise', 'task option class_noise'), _NOISE
    ),
    'task option partition_seed': source.guessed(
        "the authors' split has the seed of the run; here all runs share one"
    ),
}
OF_TABLES = {
    'seeds': source.guessed(
        "three repetitions are published, their seeds are not; the code's"
        ' default is 20'
    ),
    'reduction': source.guessed(
        'the last 50 rounds are published; the filter that smooths is not'
    ),
    'split': source.code(
        'woodenchild95/FL-Simulator, 502bec6: all test images, every round'
    ),
}
# What Table 6 adds to each method is not published; Figure 2 suggests these.
_RELAXATION = {
    'FedAvg': 0.1,
    'FedAdam': 0.1,
    'FedSAM': 0.1,
    'SCAFFOLD': 0.05,
    'FedDyn': 0.05,
    'FedCM': 0.05,
}
RELAXED = tuple(_RELAXATION)
METHODS = (*RELAXED, 'FedInit')
NETWORKS = {'ResNet-18-GN': 'resnet18_strided', 'VGG-11': 'vgg11'}

_ALGORITHMS = {
    'FedAvg': ('fedavg', {}),
    'FedAdam': (
        'fedadam',
        {
            'server_learning_rate': 0.1,
            'beta1': 0.9,
            'beta2': 0.99,
            'tau': 0.01,
            'initial_accumulator': 0.0,
            'bias_correction': False,
        },
    ),
    'FedSAM': ('fedsam', {'rho': 0.1}),
    'SCAFFOLD': ('scaffold', {'option': 2}),
    'FedDyn': ('feddyn', {'alpha': 0.1}),
    'FedCM': ('fedcm', {'alpha': 0.1}),
    'FedInit': ('fedinit', {'relaxation': 0.1}),
}


@dataclasses.dataclass(frozen=True)
class Condition:
  """A column: how many clients take part, and how their labels differ.

  Attributes:
    clients: C in the paper.
    batch_size: In the paper.
    alpha: Dirichlet parameter.
  """

  clients: int
  batch_size: int
  alpha: float


CONDITIONS = {
    f'{share}-{clients} Dir-{alpha}': Condition(clients, batch, alpha)
    for share, clients, batch in (('10%', 100, 50), ('5%', 200, 25))
    for alpha in (0.6, 0.1)
}
HARD = '10%-100 Dir-0.1'


# In the paper profile the condition says how many clients there are, and rounds
# are those of the task.
_SCALES = {
    # The embedded CIFAR-10 has 5000 images: 20 clients of 250. Half of them
    # take part in a round, or else memory would be of no use in so few rounds.
    'quick': scales.Scale(
        60, 10, 2, local_epochs=1, batch_size=50, task_options={'clients': 20}
    ),
    # Clients have 2500 images; an epoch of the whole network takes minutes. The
    # test images may be stored class by class, so all of them are used.
    'small': scales.Scale(
        80, 10, 10, local_epochs=1, batch_size=25, task_options={'clients': 20}
    ),
    'paper': scales.Scale(None, 10, 1, local_epochs=5, source=_CODE),
}
# Cuts the local epochs short.
_LOCAL_STEPS = {'small': '5'}
SEEDS = scales.seeds(20, 21, 22)
# Kernel and length of the published smoothing are unknown; this is a mean.
SMOOTHED = {
    'quick': reductions.Smooth(3, 10, 'max'),
    'small': reductions.Smooth(2, 50, 'max'),
    'paper': reductions.Smooth(5, 50, 'max'),
}
# Standard deviation of both noises.
NOISE = 0.1
# Client rate of the quick Figure 2. At the published 0.1 a model of 60 rounds
# moves so much between two visits of a client that what it remembers is noise.
SLOW = 0.03
_PUBLISHED_ROUNDS = {'cifar10': 500, 'cifar100': 800}


def hyperparameters(
    method: str, form: str, relaxed: bool = False
) -> tuple[str, dict[str, Any]]:
  """Returns the algorithm of a method, and its hyperparameters.

  Args:
    method: One of `METHODS`.
    form: `paper` or `code`.
    relaxed: Whether relaxed initialisation is added.
  """
  algorithm, own = _ALGORITHMS[method]
  decay = 0.9995 if method == 'FedDyn' else 0.998
  values = {
      'form': form,
      'client_learning_rate': 0.1,
      'client_learning_rate_schedule': f'exponential:{decay}:1',
      'client_weighting': 'uniform',
      'weight_decay': 1e-3,
      'max_gradient_norm': 10.0,
      **own,
  }
  if relaxed:
    values['relaxation'] = _RELAXATION[method]
  return algorithm, values


def setting(
    profile: str,
    form: str,
    method: str,
    condition: str = HARD,
    *,
    task: str = 'cifar10',
    network: str = 'ResNet-18-GN',
    relaxed: bool = False,
    local_epochs: int | None = None,
    **changed: Any,
) -> spec.Setting:
  """Returns the setting of a cell.

  Args:
    profile: `quick`, `small` or `paper`.
    form: `paper` or `code`.
    method: One of `METHODS`.
    condition: A key of `CONDITIONS`.
    task: `cifar10` or `cifar100`.
    network: A key of `NETWORKS`.
    relaxed: Whether relaxed initialisation is added.
    local_epochs: Instead of the profile's.
    **changed: Hyperparameters instead of the method's.
  """
  scale, where = _SCALES[profile], CONDITIONS[condition]
  algorithm, values = hyperparameters(method, form, relaxed)
  if profile in _LOCAL_STEPS and not local_epochs:
    values['local_steps'] = _LOCAL_STEPS[profile]
  sources = dict(_BASE)
  if form == 'paper':
    sources.update(dict.fromkeys(('form', 'cohorts'), _PAPER))
  if 'relaxation' in changed:
    sources['relaxation'] = source.published('FedInit, Figures 1 and 2')
  elif relaxed:
    sources['relaxation'] = _FIGURE2
  if 'client_learning_rate' in changed:
    sources['client_learning_rate'] = source.REDUCED
  if 'local_steps' in values:
    sources['local_steps'] = source.REDUCED
  if local_epochs:
    sources['local_epochs'] = source.guessed(
        'Figure 1 goes over K; at which values is unknown'
    )
  if scale.rounds is None:
    sources['rounds'] = _PAPER
  if network == 'VGG-11':
    sources['task option network'] = source.guessed(
        'VGG-11 is named; its form was never published'
    )
  return scale.setting(
      task=task,
      algorithm=algorithm,
      hyperparameters={**values, **changed},
      source=_CODE,
      sources=sources,
      rounds=scale.rounds or _PUBLISHED_ROUNDS[task],
      batch_size=scale.batch_size or where.batch_size,
      local_epochs=local_epochs or scale.local_epochs,
      cohorts='bernoulli' if form == 'code' else 'fixed',
      task_options={
          'partition': 'flsim',
          'alpha': where.alpha,
          'clients': where.clients,
          'images': 'padded32',
          'network': NETWORKS[network],
          # The optimizer's, in the hyperparameters, takes its place.
          'weight_decay': 0.0,
          'client_noise': NOISE,
          'class_noise': NOISE,
          **scale.task_options,
      },
  )
