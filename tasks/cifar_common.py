"""What the two CIFAR tasks share: images and networks of FedOpt and FedInit."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tasks import source
from tasks import task as task_lib
from tasks.data import hidden_labels
from tasks.data import noise as noise_lib
from tasks.preprocessing import images as preprocessing

METRIC = task_lib.Metric('accuracy', 'accuracy', '%', 100.0, True)
SHUFFLE_BUFFER = 500

# Of the training images by channel: mean and standard deviation, as published
# with FL-Simulator.
_CHANNELS = {
    10: ((0.491, 0.482, 0.447), (0.247, 0.243, 0.262)),
    100: ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
}

_NO_NOISE = source.published('Adaptive Federated Optimization: none')
NOISE = dict(
    client_noise=task_lib.Option(
        0.0,
        'FedInit: standard deviation of the strength of red, green and blue'
        ' among clients. Published without a value.',
        source=_NO_NOISE,
    ),
    class_noise=task_lib.Option(
        0.0,
        'FedInit: standard deviation of the brightness among classes. Published'
        ' without a value.',
        source=_NO_NOISE,
    ),
)

OPTIONS = dict(
    images=task_lib.Option(
        'crops24',
        'crops24: standardised 24x24 crops, see crop (FedOpt); padded32: whole'
        ' images normalised by channel; for training mirrored and moved by up'
        ' to 4 pixels, each with probability 1/2 (FedInit).',
        choices=('crops24', 'padded32'),
        source=source.OFFICIAL,
    ),
    network=task_lib.Option(
        'resnet18',
        'resnet18: strides only in the stem (FedOpt); resnet18_strided: strides'
        ' in all stages, or vgg11 without normalisation (FedInit).',
        choices=('resnet18', 'resnet18_strided', 'vgg11'),
        source=source.OFFICIAL,
    ),
    groups=task_lib.Option(
        2,
        'Groups of every group normalisation; 2 as published.',
        minimum=1,
        source=source.code(
            'TensorFlow Addons before November 2020, the default of its layer,'
            " which the authors' code takes"
        ),
    ),
    weight_decay=task_lib.Option(
        1e-4,
        'λ of the penalty λ Σ w² on convolutions and the dense layer. The'
        ' published code declares 1e-4; it had no effect in runs before July'
        ' 2020. 0 for none.',
        source=source.guessed(
            'the code declares it, but it had no effect in runs before July'
            ' 2020; which of them the paper has is unknown'
        ),
    ),
    crop=task_lib.Option(
        'batch',
        'crops24, training images: random 24x24 crops, mirrored at random, the'
        ' corner drawn per batch as the code of the published runs did, or per'
        ' image as later code does; none crops the centre.',
        choices=('batch', 'image', 'none'),
        source=source.OFFICIAL,
    ),
    **task_lib.COMMON,
)


def published(
    parameters: int, test_clients: int, where: source.Source
) -> task_lib.Published:
  """Returns the published setting of one of the tasks."""
  return task_lib.Published(
      rounds=4000,
      cohort_size=10,
      batch_size=20,
      local_epochs=1,
      clients=500,
      examples=50_000,
      test_clients=test_clients,
      test_examples=10_000,
      parameters=parameters,
      source=where,
  )


def noise(options: Mapping[str, Any]) -> noise_lib.Noise:
  """Returns the noises that options ask for."""
  return noise_lib.Noise(
      client=options['client_noise'],
      classes=options['class_noise'],
      seed=options['partition_seed'],
  )


def open_dealt(
    info: task_lib.TaskInfo, request: task_lib.Request, num_clients: int
) -> Any:
  """Opens the images, dealt to clients as the option `partition` says.

  Args:
    info: The task.
    request: What was asked for.
    num_clients: Training clients.

  Returns:
    `sources.Opened`.
  """
  from tasks.data import cifar  # pylint: disable=g-import-not-at-top

  options = request.options
  return cifar.open_split(
      info.dataset,
      request.folder(info.dataset),
      rule=options['partition'],
      num_clients=num_clients,
      alpha=options['alpha'],
      seed=options['partition_seed'],
      noise=noise(options),
  )


def load(
    info: task_lib.TaskInfo,
    request: task_lib.Request,
    opened: Any,
    classes: int,
) -> task_lib.Task:
  """Returns the task on opened images.

  Args:
    info: The task.
    request: What was asked for.
    opened: `sources.Opened` with examples of `image` and `label`.
    classes: Number of classes.

  Raises:
    ValueError: The network does not take the images.
  """
  # pylint: disable=g-import-not-at-top
  from tasks import pipeline as pipeline_lib
  from tasks.models import objectives
  # pylint: enable=g-import-not-at-top

  options = request.options
  whole = options['images'] == 'padded32'
  if options['network'] == 'vgg11' and not whole:
    raise ValueError(
        f'{info.name}, network: vgg11 halves images five times and does not'
        ' take 24x24 crops; use images=padded32'
    )
  images_per_corner = dict(batch=request.batch_size, image=1)

  def prepare(examples, rng):
    if whole:
      images = preprocessing.padded_crops(
          preprocessing.normalised(
              examples['image'], *_CHANNELS[classes]
          ),
          rng,
      )
      return images, examples['label'].astype(np.int32)
    if options['crop'] == 'none':
      return prepare_eval(examples)
    images = preprocessing.random_crops(
        examples['image'], rng, images_per_corner[options['crop']]
    )
    return images, examples['label'].astype(np.int32)

  def prepare_eval(examples):
    images = (
        preprocessing.normalised(examples['image'], *_CHANNELS[classes])
        if whole
        else preprocessing.central_crops(examples['image'])
    )
    return images, examples['label'].astype(np.int32)

  pipeline = pipeline_lib.Pipeline(
      prepare=prepare,
      prepare_eval=prepare_eval,
      x=((32, 32, 3) if whole else (24, 24, 3), 'float32'),
      y=((), 'int32'),
      decode=lambda raw: dict(image=raw['image'], label=raw['label']),
      shuffle_buffer=SHUFFLE_BUFFER,
      eval_batch_size=100,
      relabel=hidden_labels.of(request),
  )
  return pipeline_lib.assemble(
      info,
      request,
      opened,
      pipeline,
      lambda: _network(request, classes),
      objectives.classification(),
      weight_decay=options['weight_decay'],
  )


def _network(request, classes):
  """The network asked for, or a smaller one of its family."""
  # pylint: disable=g-import-not-at-top
  from tasks.models import resnet
  from tasks.models import strided_resnet
  from tasks.models import vgg
  # pylint: enable=g-import-not-at-top

  options, reduced = request.options, request.is_reduced
  if options['network'] == 'vgg11':
    size = dict(filters=8) if reduced else {}
    return vgg.Vgg11(classes, request.seed, **size)
  kind, blocks = resnet.ResNet, (1, 1, 1)
  if options['network'] == 'resnet18_strided':
    kind, blocks = strided_resnet.StridedResNet, (1, 1)
  size = dict(filters=8, blocks=blocks) if reduced else {}
  return kind(classes, request.seed, groups=options['groups'], **size)
