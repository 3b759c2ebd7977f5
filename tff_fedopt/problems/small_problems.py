"""Federated problems whose optimum is known; TensorFlow is loaded on use.

All clients count alike, are all different, and give their whole data as one
batch, so that a local step is a full gradient step.
"""

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np

from tff_fedopt.experiment import sampling
from tff_fedopt.problems import array_model

CLIENTS = 6


class Problem:
  """A problem as client data.

  Attributes:
    client_ids: The clients' names.
    first: The first model, an array.
    optimum: The best model, an array.
  """

  first: np.ndarray
  optimum: np.ndarray

  def __init__(self, batches: Sequence[np.ndarray], steps: Sequence[int]):
    """Keeps each client's only batch, and how often it is gone through."""
    self.client_ids = [str(i) for i in range(len(batches))]
    self._batches = batches
    self._steps = steps

  def dataset_for_client(self, client_id: str, seed: int):
    """Returns the client's batches of any round."""
    del seed
    import tensorflow as tf

    i = int(client_id)
    batch = collections.OrderedDict(rows=self._batches[i])
    return tf.data.Dataset.from_tensors(batch).repeat(self._steps[i])

  def loss(self, x: Any, rows: Any, received: Any) -> Any:
    """Returns f_i at x, a scalar tensor; `received` is the server's x."""
    raise NotImplementedError

  def model_fn(self):
    """Returns the problem as a `tff.learning.models.VariableModel`."""
    import tensorflow as tf

    return array_model.build(
        self.first,
        dict(rows=tf.TensorSpec(self._batches[0].shape, tf.float64)),
        lambda x, batch, received: self.loss(x, batch['rows'], received),
    )


class Quadratics(Problem):
  """f_i(x) = mean over the rows a of client i of (⟨a, x⟩ − target)².

  Curvatures and minimisers of the clients differ.
  """

  def __init__(self, seed: int, steps: Sequence[int], dimension: int = 8):
    rng = np.random.default_rng(sampling.derive_seed(seed, 'partition'))
    batches = []
    for scale in np.linspace(0.8, 1.1, CLIENTS):
      rows = scale * rng.normal(size=[24, dimension])
      targets = rows @ (2 * rng.normal(size=[dimension, 1]))
      batches.append(np.concatenate([rows, targets], axis=1))
    super().__init__(batches, steps)
    pooled = np.concatenate(batches)
    self.first = np.zeros([dimension])
    self.optimum = np.linalg.lstsq(pooled[:, :-1], pooled[:, -1], rcond=None)[0]

  def loss(self, x, rows, received):
    import tensorflow as tf

    errors = tf.linalg.matvec(rows[:, :-1], x) - rows[:, -1]
    return tf.reduce_mean(tf.square(errors))


class KMeans(Problem):
  """k-means: centroids x are shared, assignments y stay with the client.

  ```
  f_i(x, y) = mean over the points a of client i of
              ½ Σ_c y_c ‖a − x_c‖² + τ/2 ‖y‖²,     y in the simplex
  block y:  y = Π(−½ ‖a − x_c‖² / τ) at the received centroids
  block x:  local steps
  ```

  Clusters lie so far apart that at the optimum each y is a corner of the
  simplex, and the optimal centroids are the means of the clusters. Clients
  hold them in different proportions.
  """

  _CLUSTERS = 3
  _TEMPERATURE = 0.1

  def __init__(self, seed: int, steps: Sequence[int]):
    rng = np.random.default_rng(sampling.derive_seed(seed, 'partition'))
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    batches, labels = [], []
    for i in range(CLIENTS):
      # 18, 4 and 2 points, another cluster being large at every client.
      label = (np.repeat([0, 1, 2], [18, 4, 2]) + i) % self._CLUSTERS
      # What a client holds of a cluster is not in its middle either.
      shift = 0.6 * rng.normal(size=[self._CLUSTERS, 2])
      noise = 0.3 * rng.normal(size=[len(label), 2])
      batches.append(centres[label] + shift[label] + noise)
      labels.append(label)
    super().__init__(batches, steps)
    points, labels = np.concatenate(batches), np.concatenate(labels)
    self.first = centres + np.array([[1.0, 0.8], [-0.8, 1.0], [1.0, -0.8]])
    self.optimum = np.stack([
        points[labels == c].mean(axis=0) for c in range(self._CLUSTERS)
    ])

  def loss(self, x, rows, received):
    import tensorflow as tf

    from tasks.models import two_block

    def half_squares(centroids):
      away = rows[:, tf.newaxis] - centroids
      return 0.5 * tf.reduce_sum(tf.square(away), axis=2)

    y = two_block.project_to_simplex(
        -half_squares(received) / self._TEMPERATURE
    )
    own = tf.reduce_sum(y * half_squares(x), axis=1)
    squares = tf.reduce_sum(tf.square(y), axis=1)
    return tf.reduce_mean(own + self._TEMPERATURE / 2 * squares)


PROBLEMS = dict(quadratics=Quadratics, kmeans=KMeans)
