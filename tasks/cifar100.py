"""CIFAR-100: clients by Pachinko allocation as in FedOpt, or as in FedInit."""

from tasks import cifar_common
from tasks import source
from tasks import task as task_lib
from tasks.data import cifar
from tasks.data import sources

INFO = task_lib.TaskInfo(
    name='cifar100',
    title='CIFAR-100 image classification, Pachinko allocation',
    dataset='cifar100',
    metric=cifar_common.METRIC,
    weighting='examples',
    published=cifar_common.published(
        parameters=11_227_812,
        test_clients=100,
        where=source.OFFICIAL_LIST,
    ),
    options=dict(
        partition=task_lib.Option(
            'tff',
            "Split: tff (the fixed file of TFF's loader), pachinko (the same"
            ' rule, drawn anew from the images of TensorFlow Datasets), or by'
            ' fine label: hsu (Dirichlet, without replacement), flsim'
            ' (Dirichlet, classes recycled), iid.',
            choices=('tff', 'pachinko', 'hsu', 'flsim', 'iid'),
            source=source.TFF_FILES,
        ),
        alpha=task_lib.Option(
            0.1,
            'pachinko: concentration over coarse labels; hsu, flsim: over fine'
            ' ones.',
            minimum=1e-6,
            source=source.TFF_FILES,
        ),
        beta=task_lib.Option(
            10.0,
            'pachinko: concentration over fine labels.',
            minimum=1e-6,
            source=source.TFF_FILES,
        ),
        clients=task_lib.Option(
            500,
            'Training clients; with pachinko of 100 images each. tff has its'
            ' own.',
            minimum=5,
            source=source.TFF_FILES,
        ),
        partition_seed=task_lib.Option(
            0,
            'Seed of the split, where it is drawn.',
            source=source.TFF_FILES,
        ),
        **cifar_common.NOISE,
        **cifar_common.OPTIONS,
    ),
    files=lambda data_dir, options: cifar.files(
        'cifar100',
        data_dir,
        federated=options['partition'] != 'pachinko',
    ),
)


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens the data and returns the task.

  Raises:
    ValueError: The split cannot be drawn from the embedded data, or has no
      noise.
  """
  options = request.options
  noise = cifar_common.noise(options)
  if options['partition'] in cifar.RULES:
    opened = cifar_common.open_dealt(INFO, request, options['clients'])
  elif noise.settings():
    raise ValueError(
        f'cifar100, {next(iter(noise.settings()))}: there is none with'
        f' partition={options["partition"]}; use hsu, flsim or iid'
    )
  elif options['partition'] == 'tff':
    opened = sources.open_clients(INFO.dataset, request.folder(INFO.dataset))
  elif request.is_synthetic:
    raise ValueError(
        'cifar100, partition: pachinko needs --data_dir with the images of'
        ' TensorFlow Datasets; the embedded data have a fixed split'
    )
  else:
    opened = cifar.open_cifar100(
        request.data_dir,
        num_clients=options['clients'],
        alpha=options['alpha'],
        beta=options['beta'],
        seed=options['partition_seed'],
    )
  return cifar_common.load(INFO, request, opened, 100)
