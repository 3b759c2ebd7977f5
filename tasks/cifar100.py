"""CIFAR-100: 500 clients by Pachinko allocation, ResNet-18-GN."""

from tasks import cifar_common
from tasks import task as task_lib

INFO = task_lib.TaskInfo(
    name='cifar100',
    title='CIFAR-100 image classification, Pachinko allocation',
    metric=cifar_common.METRIC,
    weighting='examples',
    settings=task_lib.Settings(
        rounds=4000,
        cohort_size=10,
        batch_size=20,
        local_epochs=1,
        clients=500,
        examples=50_000,
        test_clients=100,
        test_examples=10_000,
        parameters=11_227_812,
        source='official hyperparameters.md; counts from the TFF loader',
    ),
    options=dict(
        partition=task_lib.Option(
            'tff',
            "Split: tff (the fixed file of TFF's loader) or pachinko (the same"
            ' rule, drawn anew from the images of TensorFlow Datasets).',
            choices=('tff', 'pachinko'),
        ),
        alpha=task_lib.Option(
            0.1, 'pachinko: concentration over coarse labels.', minimum=1e-6
        ),
        beta=task_lib.Option(
            10.0, 'pachinko: concentration over fine labels.', minimum=1e-6
        ),
        clients=task_lib.Option(
            500, 'pachinko: training clients of 100 images.', minimum=5
        ),
        partition_seed=task_lib.Option(0, 'pachinko: seed of the split.'),
        **cifar_common.OPTIONS,
    ),
)


def load(request: task_lib.Request) -> task_lib.Task:
  """Opens the data and returns the task.

  Raises:
    ValueError: The split cannot be drawn from the embedded data.
  """
  # pylint: disable=g-import-not-at-top
  from tasks import cache
  from tasks import image_clients
  # pylint: enable=g-import-not-at-top

  options = request.options
  if options['partition'] == 'tff':
    opened = cache.open_clients('cifar100', request.folder('cifar100'))
  elif request.is_synthetic:
    raise ValueError(
        'cifar100, partition: pachinko needs --data_dir with the images of'
        ' TensorFlow Datasets; the embedded data have a fixed split'
    )
  else:
    opened = image_clients.open_cifar100(
        request.data_dir,
        num_clients=options['clients'],
        alpha=options['alpha'],
        beta=options['beta'],
        seed=options['partition_seed'],
    )
  return cifar_common.load(INFO, request, opened, 100)
