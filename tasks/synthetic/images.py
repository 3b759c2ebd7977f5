"""Synthetic handwriting by writers, and photographs in a label hierarchy."""

from collections.abc import Iterator
from typing import Any

import numpy as np

CLASSES = 62
_WRITERS = 150
_POINTS = 20  # along one stroke
_GRID = np.arange(28) + 0.5
_ALONG = np.linspace(0, 1, _POINTS)[:, None]
# Weights of the three control points of a quadratic curve, along it.
_BASIS = np.concatenate(
    [(1 - _ALONG) ** 2, 2 * _ALONG * (1 - _ALONG), _ALONG**2], axis=1
)


def _letter_shapes(rng: np.random.Generator) -> np.ndarray:
  """Control points [62, 3 strokes, 3, 2] of quadratic curves in a unit square.

  A third of the lower-case letters are small copies of the upper-case ones, so
  that, as in the real data, some pairs can hardly be told apart.
  """
  shapes = rng.uniform(0.0, 1.0, (CLASSES, 3, 3, 2))
  # Strokes of one letter hang together: each begins where another one ended.
  shapes[:, 1, 0] = shapes[:, 0, 2]
  shapes[:, 2, 0] = shapes[:, 0, 1]
  # All capitals are about as tall and wide as the unit square.
  points = np.einsum('pc,nscd->nspd', _BASIS, shapes).reshape(CLASSES, -1, 2)
  low = points.min(axis=1)[:, None, None]
  high = points.max(axis=1)[:, None, None]
  shapes = (shapes - low) / (high - low)
  for upper in range(10, 36, 3):
    small = 0.5 + 0.75 * (shapes[upper] - 0.5)
    shapes[upper + 26] = small + rng.normal(0, 0.03, small.shape)
  return shapes


def _render(points: np.ndarray, width: np.ndarray) -> np.ndarray:
  """Ink [n, 28, 28] in [0, 1] of strokes through points [n, k, 2] in pixels."""
  scale = 1 / (2 * width[:, None, None] ** 2)
  across = np.exp(-((_GRID - points[..., :1]) ** 2) * scale)
  down = np.exp(-((_GRID - points[..., 1:]) ** 2) * scale)
  ink = np.zeros((len(points), 28, 28), np.float32)
  for k in range(points.shape[1]):
    np.maximum(ink, down[:, k, :, None] * across[:, k, None, :], out=ink)
  return np.minimum(1.0, 1.6 * ink)


def _write(
    labels: np.ndarray,
    shapes: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
  """Characters [n, 28, 28] of one writer, background 1.0, ink towards 0.0."""
  n = len(labels)
  # The hand of the writer: own letter forms, slant, size, rotation, pen.
  own = shapes + rng.normal(0, 0.09, shapes.shape)
  slant, turn = rng.normal(0, 0.35), rng.normal(0, 0.12)
  size = rng.uniform(13, 19)
  pen = rng.uniform(0.7, 1.5)
  # The mood of the moment.
  control = own[labels] + rng.normal(0, 0.04, (n,) + shapes.shape[1:])
  points = np.einsum('pc,nscd->nspd', _BASIS, control).reshape(n, -1, 2) - 0.5
  slants = slant + rng.normal(0, 0.05, n)
  turns = turn + rng.normal(0, 0.05, n)
  sizes = size * np.exp(rng.normal(0, 0.06, n))
  x = points[..., 0] - slants[:, None] * points[..., 1]
  y = points[..., 1]
  cos, sin = np.cos(turns)[:, None], np.sin(turns)[:, None]
  placed = np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)
  shift = rng.normal(0, 0.8, (n, 1, 2))
  ink = _render(
      14 + sizes[:, None, None] * placed + shift,
      pen * np.exp(rng.normal(0, 0.08, n)),
  )
  uneven = 1 - rng.uniform(0, 0.25, ink.shape)
  return (1 - ink * uneven).astype(np.float32)


def characters(seed: int) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
  """Yields writers with the features of the 62-class EMNIST.

  Each writer has own letter forms, slant, size, pen, number of characters and
  balance of classes; an eighth of the characters are the test split.

  Args:
    seed: Seed of everything.

  Yields:
    (split, client id, examples), splits 'all_train' and 'all_test'.
  """
  rng = np.random.default_rng(seed)
  shapes = _letter_shapes(rng)
  # Digits are as frequent as all letters together, as in the real data.
  prior = np.where(np.arange(CLASSES) < 10, 0.5 / 10, 0.5 / 52)
  for writer in range(_WRITERS):
    count = int(np.clip(rng.lognormal(np.log(75), 0.4), 24, 200))
    balance = rng.dirichlet(40 * prior)
    labels = rng.choice(CLASSES, size=count, p=balance)
    pixels = _write(labels, shapes, rng)
    examples = [
        dict(label=int(label), pixels=image)
        for label, image in zip(labels, pixels)
    ]
    held = max(2, count // 8)
    yield 'all_train', f'writer_{writer:03d}', examples[held:]
    yield 'all_test', f'writer_{writer:03d}', examples[:held]


def photographs(
    fine: np.ndarray,
    coarse: np.ndarray,
    spread: float,
    seed: int,
    rng: np.random.Generator,
) -> np.ndarray:
  """Returns uint8 images [n, 32, 32, 3] of labels in a hierarchy.

  The coarse label decides the colours of background and object and the texture;
  the fine label changes hue, form and coarseness of the texture a little. Each
  image has its own place, light, contrast and noise.

  Args:
    fine: int [n].
    coarse: int [n].
    spread: How much images of a class differ in looks, standard deviation; the
      classes themselves differ by about 1.
    seed: Seed of what the classes look like.
    rng: Source of what differs between images.
  """
  looks = np.random.default_rng(seed)
  # Of a class: colours of background and object, texture, form of the object.
  of_coarse = looks.normal(0, 1, (100, 12))
  of_fine = looks.normal(0, 1, (100, 12))
  latent = 0.8 * of_coarse[coarse] + 0.6 * of_fine[fine]
  latent = latent + rng.normal(0, spread, latent.shape)
  n = len(fine)
  column = lambda values: values[:, None, None]
  y, x = np.meshgrid(np.linspace(-1, 1, 32), np.linspace(-1, 1, 32),
                     indexing='ij')
  x = x[None] + column(rng.normal(0, 0.12, n))
  y = y[None] + column(rng.normal(0, 0.12, n))
  # Object: an ellipse or a cross, by the sign and size of the seventh entry.
  long = column(0.5 * np.exp(0.35 * latent[:, 6]))
  wide = column(0.5 * np.exp(0.35 * latent[:, 7]))
  ellipse = (x / long) ** 2 + (y / wide) ** 2
  cross = np.minimum(np.abs(x) / long, np.abs(y) / wide) * 3
  form = np.where(column(latent[:, 8]) > 0, ellipse, cross)
  mask = 1 / (1 + np.exp(np.clip(8 * (form - 1), -30, 30)))
  # Texture: stripes; a mirror image has the same angle to the upright.
  angle = column(0.8 * np.abs(latent[:, 9]))
  often = column(4 * np.exp(0.4 * latent[:, 10]))
  phase = column(rng.uniform(0, 2 * np.pi, n))
  stripes = np.sin(often * (np.cos(angle) * x + np.sin(angle) * y) + phase)
  back = latent[:, None, None, 0:3] + 0.5 * stripes[..., None]
  front = latent[:, None, None, 3:6]
  image = back * (1 - mask[..., None]) + front * mask[..., None]
  light = rng.normal(0, 0.3, (n, 1, 1, 1))
  contrast = np.exp(rng.normal(0, 0.2, (n, 1, 1, 1)))
  image = contrast * image + light + rng.normal(0, 0.35, image.shape)
  return np.clip(127 + 45 * image, 0, 255).astype(np.uint8)
