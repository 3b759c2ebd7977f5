"""What the two CIFAR tasks share: ResNet-18-GN on augmented 24x24 crops."""

import numpy as np

from tasks import image_preprocessing
from tasks import task as task_lib

METRIC = task_lib.Metric('accuracy', 'accuracy', '%', 100.0, True)
SHUFFLE_BUFFER = 500

OPTIONS = dict(
    groups=task_lib.Option(
        2, 'Groups of every group normalisation; 2 as published.', minimum=1
    ),
    weight_decay=task_lib.Option(
        1e-4,
        'λ of the penalty λ Σ w² on convolutions and the dense layer. The'
        ' published code declares 1e-4; it had no effect in runs before July'
        ' 2020. 0 for none.',
    ),
    crop=task_lib.Option(
        'batch',
        'Training images: random 24x24 crops, mirrored at random, the corner'
        ' drawn per batch as the code of the published runs did, or per image'
        ' as later code does; none crops the centre.',
        choices=('batch', 'image', 'none'),
    ),
    **task_lib.COMMON,
)


def load(
    info: task_lib.TaskInfo, request: task_lib.Request, opened, classes: int
) -> task_lib.Task:
  """Returns the task on opened images.

  Args:
    info: The task.
    request: What was asked for.
    opened: `cache.Opened` with examples of `image` and `label`.
    classes: Number of classes.
  """
  # pylint: disable=g-import-not-at-top
  from tasks import assembly
  from tasks.models import objectives
  from tasks.models import resnet
  # pylint: enable=g-import-not-at-top

  options = request.options
  size = dict(filters=8, blocks=(1, 1, 1)) if request.is_reduced else {}
  images_per_corner = dict(batch=request.batch_size, image=1)

  def prepare(examples, rng):
    if options['crop'] == 'none':
      return prepare_eval(examples)
    images = image_preprocessing.random_crops(
        examples['image'], rng, images_per_corner[options['crop']]
    )
    return images, examples['label'].astype(np.int32)

  def prepare_eval(examples):
    images = image_preprocessing.central_crops(examples['image'])
    return images, examples['label'].astype(np.int32)

  pipeline = assembly.Pipeline(
      prepare=prepare,
      prepare_eval=prepare_eval,
      x=((24, 24, 3), 'float32'),
      y=((), 'int32'),
      decode=lambda raw: dict(image=raw['image'], label=raw['label']),
      shuffle_buffer=SHUFFLE_BUFFER,
      eval_batch_size=100,
  )
  return assembly.assemble(
      info,
      request,
      opened,
      pipeline,
      lambda: resnet.ResNet(
          classes, request.seed, groups=options['groups'], **size
      ),
      objectives.classification(),
      weight_decay=options['weight_decay'],
  )
