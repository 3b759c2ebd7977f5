"""CIFAR-10: clients with Dirichlet label shares, as FedOpt or as FedInit."""

from tasks import cifar_common
from tasks import source
from tasks import task as task_lib
from tasks.data import cifar
from tasks.data import hidden_labels

_THIRD_PARTY = source.guessed(
    "a third party's configuration (Flower, conf/cifar10/config.yaml): the"
    " authors' list leaves CIFAR-10 out"
)
INFO = task_lib.TaskInfo(
    name='cifar10',
    title='CIFAR-10 image classification, Dirichlet split',
    dataset='cifar10',
    metric=cifar_common.METRIC,
    weighting='examples',
    published=cifar_common.published(
        parameters=11_181_642,
        test_clients=1,
        where=_THIRD_PARTY,
    ),
    options=dict(
        partition=task_lib.Option(
            'hsu',
            'Split: hsu (Dirichlet, without replacement, as published), flsim'
            ' (Dirichlet, classes recycled) or iid.',
            choices=('hsu', 'flsim', 'iid'),
            source=source.OFFICIAL,
        ),
        alpha=task_lib.Option(
            0.1,
            'Concentration of the Dirichlet splits.',
            minimum=1e-6,
            source=_THIRD_PARTY,
        ),
        clients=task_lib.Option(
            0,
            'Training clients; 0 for the published 500, of which the embedded'
            ' images make 50.',
            source=_THIRD_PARTY,
        ),
        partition_seed=task_lib.Option(
            0,
            'Seed of the split; its own, so that runs of other seeds share the'
            ' data.',
            source=source.guessed("the seed of the authors' split is unknown"),
        ),
        **hidden_labels.OPTIONS,
        **cifar_common.NOISE,
        **cifar_common.OPTIONS,
    ),
    files=lambda data_dir, options: cifar.files(
        'cifar10', data_dir
    ),
)


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens, if needed makes, the partition and returns the task."""
  published = 50 if request.is_synthetic else INFO.default('clients')
  opened = cifar_common.open_dealt(
      INFO, request, request.options['clients'] or published
  )
  return cifar_common.load(INFO, request, opened, 10)
