"""From CIFAR images to what networks take, in NumPy: two published ways."""

import numpy as np

CROP = 24
_PADDING = 4


def _crops(
    images: np.ndarray,
    top: np.ndarray,
    left: np.ndarray,
    height: int = CROP,
    width: int = CROP,
) -> np.ndarray:
  """The crop of every image at its own corner."""
  windows = np.lib.stride_tricks.sliding_window_view(
      images, (height, width), axis=(1, 2)
  )
  chosen = windows[np.arange(len(images)), top, left]
  return np.moveaxis(chosen, 1, -1)


def standardised(images: np.ndarray) -> np.ndarray:
  """Returns (x - mean) / max(std, 1 / sqrt(values)) of every image.

  Args:
    images: Any numbers, [n, height, width, channels].

  Returns:
    float32, of the same shape.
  """
  images = images.astype(np.float32)
  mean = images.mean(axis=(1, 2, 3), keepdims=True)
  std = images.std(axis=(1, 2, 3), keepdims=True)
  floor = np.float32(1 / np.sqrt(images[0].size)) if len(images) else 1
  return (images - mean) / np.maximum(std, floor)


def central_crops(images: np.ndarray) -> np.ndarray:
  """Returns the standardised central crops, for evaluation.

  Args:
    images: uint8 [n, 32, 32, 3].

  Returns:
    float32 [n, 24, 24, 3].
  """
  margin = (images.shape[1] - CROP) // 2
  return standardised(
      images[:, margin : margin + CROP, margin : margin + CROP]
  )


def random_crops(
    images: np.ndarray, rng: np.random.Generator, images_per_corner: int = 1
) -> np.ndarray:
  """Returns standardised random crops, mirrored with probability one half.

  Args:
    images: uint8 [n, 32, 32, 3] in the order of the batches.
    rng: Source of the draws.
    images_per_corner: How many neighbouring images share the corner of the
      crop; each is mirrored for itself.

  Returns:
    float32 [n, 24, 24, 3].
  """
  n = len(images)
  corners = rng.integers(
      images.shape[1] - CROP + 1, size=(-(-n // images_per_corner), 2)
  )
  top, left = np.repeat(corners, images_per_corner, axis=0)[:n].T
  crops = _crops(images, top, left)
  mirrored = rng.random(n) < 0.5
  crops = np.where(mirrored[:, None, None, None], crops[:, :, ::-1], crops)
  return standardised(crops)


def normalised(
    images: np.ndarray, mean: tuple[float, ...], std: tuple[float, ...]
) -> np.ndarray:
  """Returns (x / 255 - mean) / std by channel.

  Args:
    images: uint8 [n, height, width, channels].
    mean: Of each channel, in [0, 1].
    std: Of each channel.

  Returns:
    float32, of the same shape.
  """
  scale = np.float32(1 / 255) / np.float32(std)
  return images * scale - np.float32(mean) / np.float32(std)


def padded_crops(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
  """Returns normalised images, some mirrored, some moved.

      with probability 1/2: mirrored
      with probability 1/2: a random crop of its size out of the image with 4
        zeros (of the normalised image) on each side

  Source: FL-Simulator, training images of CIFAR.

  Args:
    images: float32 [n, height, width, channels], normalised.
    rng: Source of the draws, each image its own.

  Returns:
    float32, of the same shape.
  """
  n, height, width, _ = images.shape
  mirrored = rng.random(n) < 0.5
  moved = rng.random(n) < 0.5
  # The corner (4, 4) of the padded image gives the image itself.
  corners = rng.integers(2 * _PADDING + 1, size=(n, 2))
  top, left = np.where(moved[:, None], corners, _PADDING).T
  images = np.where(mirrored[:, None, None, None], images[:, :, ::-1], images)
  around = (_PADDING, _PADDING)
  padded = np.pad(images, ((0, 0), around, around, (0, 0)))
  return _crops(padded, top, left, height, width)
