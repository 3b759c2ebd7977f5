"""The two noises of FedInit's training images: of a client, of a class.

    x in [0, 1]
    x = clip((1 + s) x)   s ~ N(0, client²), one draw per client and channel
    x = clip(x + b)       b ~ N(0, classes²), one draw per class

The paper describes them so (a client's cameras differ in the strength of red,
green and blue; a class is lighter or darker) but gives no strengths, and its
code has neither. Whether a class is lighter at all clients alike, and whether
test images are changed, is unknown as well; here the former, and not.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Noise:
  """Strengths of the noises, as standard deviations; 0 for none.

  Attributes:
    client: Of the relative strength of each channel.
    classes: Of the brightness, of 1.
    seed: Seed of the draws.
  """

  client: float = 0.0
  classes: float = 0.0
  seed: int = 0

  def settings(self) -> dict[str, float]:
    """Returns the strengths that are not 0, by name."""
    given = dict(client_noise=self.client, class_noise=self.classes)
    return {name: value for name, value in given.items() if value}

  def strengths(self, client: int) -> np.ndarray:
    """Returns 1 + s of a client, float64 [3]."""
    rng = np.random.default_rng((self.seed, 1, client))
    return 1 + self.client * rng.standard_normal(3)

  def brightness(self, num_classes: int) -> np.ndarray:
    """Returns b of every class, float64 [num_classes]."""
    rng = np.random.default_rng((self.seed, 2))
    return self.classes * rng.standard_normal(num_classes)

  def disturbed(
      self, images: np.ndarray, labels: np.ndarray, client: int
  ) -> np.ndarray:
    """Returns a client's images as it sees them.

    Args:
      images: uint8 [n, height, width, 3].
      labels: int [n].
      client: The client's number.

    Returns:
      uint8, of the same shape.
    """
    if not self.settings():
      return images
    x = np.clip(self.strengths(client) * (images / 255.0), 0, 1)
    shifts = self.brightness(int(labels.max()) + 1)[labels]
    x = np.clip(x + shifts[:, None, None, None], 0, 1)
    return np.round(255 * x).astype(np.uint8)
