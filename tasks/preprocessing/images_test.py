"""Crops against TensorFlow's image operations."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.simulation.baselines.cifar100 import (
  image_classification_preprocessing,
)

from tasks.preprocessing import images as preprocessing


def _images(n=6):
  return np.random.default_rng(0).integers(
      0, 256, (n, 32, 32, 3), dtype=np.uint8
  )


def test_central_crops_equal_tff():
  images = _images()
  images[1] = 7  # No spread: the standard deviation has a floor.
  preprocess = image_classification_preprocessing.create_preprocess_fn(
      tff.simulation.baselines.ClientSpec(
          num_epochs=1, batch_size=6, shuffle_buffer_size=1
      ),
      crop_shape=(24, 24, 3),
  )
  raw = tf.data.Dataset.from_tensor_slices(
      dict(image=images, label=np.zeros(6, np.int64))
  )
  (expected, _), = preprocess(raw)
  ours = preprocessing.central_crops(images)
  assert ours.dtype == np.float32
  np.testing.assert_allclose(ours, expected, atol=1e-5)


def _corners(images, crops):
  """Top, left and mirrored of every crop, found by search."""
  found = []
  for image, crop in zip(images, crops, strict=True):
    for top in range(9):
      for left in range(9):
        part = image[None, top : top + 24, left : left + 24]
        for mirrored in (False, True):
          shown = part[:, :, ::-1] if mirrored else part
          if np.allclose(preprocessing.standardised(shown)[0], crop):
            found.append((top, left, mirrored))
  return found


@pytest.mark.parametrize('images_per_corner', [1, 4])
def test_random_crops_are_crops(images_per_corner):
  images = _images(10)
  crops = preprocessing.random_crops(
      images, np.random.default_rng(1), images_per_corner
  )
  corners = _corners(images, crops)
  assert len(corners) == 10
  places = [corner[:2] for corner in corners]
  for start in range(0, 10, images_per_corner):
    assert len(set(places[start : start + images_per_corner])) == 1
  assert len(set(places)) > 10 // images_per_corner // 2
  assert len({mirrored for *_, mirrored in corners}) == 2


def test_random_crops_reach_every_corner_and_mirror_half():
  # Each pixel is its own position, so that the crop tells where it is from.
  image = np.zeros((32, 32, 3), np.uint8)
  image[..., 0] = np.arange(32)[:, None]
  image[..., 1] = np.arange(32)
  images = np.repeat(image[None], 4000, axis=0)
  crops = preprocessing.random_crops(images, np.random.default_rng(0))
  mirrored = crops[:, 0, 0, 1] > crops[:, 0, -1, 1]
  assert np.mean(mirrored) == pytest.approx(0.5, abs=0.03)
  # 81 corners x 2; standardising keeps them apart.
  assert len(np.unique(crops[:, 0, 0].round(4), axis=0)) == 162


def test_same_generator_same_crops():
  images = _images()
  one, same, other = (
      preprocessing.random_crops(images, np.random.default_rng(seed))
      for seed in (1, 1, 2)
  )
  np.testing.assert_array_equal(one, same)
  assert not np.array_equal(one, other)


def test_normalised_by_channel():
  images = _images()
  mean, std = (0.5, 0.25, 0.1), (0.2, 0.5, 1.0)
  np.testing.assert_allclose(
      preprocessing.normalised(images, mean, std),
      (images / 255 - np.array(mean)) / np.array(std),
      atol=1e-5,
  )


def test_padded_crops():
  """Half are mirrored, half moved, independently; what comes in is 0."""
  n = 600
  # Every pixel says where it is; 0 is nowhere.
  places = np.arange(1, 1025, dtype=np.float32).reshape(1, 32, 32, 1)
  images = np.repeat(places, n, axis=0)
  crops = preprocessing.padded_crops(images, np.random.default_rng(1))
  assert crops.shape == images.shape and crops.dtype == np.float32
  mirrored, moves = [], []
  padded = {
      flipped: np.pad(images[0, :, ::-1] if flipped else images[0],
                      ((4, 4), (4, 4), (0, 0)))
      for flipped in (False, True)
  }
  for crop in crops:
    flipped = bool(crop[16, 16, 0] > crop[16, 17, 0])
    (top, left), = [
        (top, left)
        for top in range(9)
        for left in range(9)
        if np.array_equal(
            padded[flipped][top : top + 32, left : left + 32], crop
        )
    ]
    mirrored.append(flipped)
    moves.append((top, left))
  moved = np.array([move != (4, 4) for move in moves])
  # Four standard deviations of a mean of 600 coins are 0.08.
  assert abs(np.mean(mirrored) - 0.5) < 0.08
  # One move in 81 is none.
  assert abs(moved.mean() - 0.5 * 80 / 81) < 0.08
  assert abs(np.mean(np.array(mirrored)[moved]) - 0.5) < 0.12
  assert {top for top, _ in moves} == set(range(9))
  assert {left for _, left in moves} == set(range(9))
  # Each direction for itself: about 300 moves reach nearly all of 81 places.
  assert len(set(moves)) > 60
