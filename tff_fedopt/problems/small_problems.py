"""Federated problems whose optimum is known; TensorFlow is loaded on use.

All clients count alike, are all different, and give their whole data as one
batch, so that a local step is a full gradient step.
"""

from collections.abc import Sequence

import numpy as np

from tff_fedopt.experiment import sampling
from tff_fedopt.problems import array_problem

CLIENTS = 6


class Problem(array_problem.ArrayProblem):
  """A problem whose clients have rows.

  Attributes:
    optimum: The best model, float64.
  """

  def __init__(
      self,
      first: np.ndarray,
      optimum: np.ndarray,
      rows: Sequence[np.ndarray],
      steps: Sequence[int],
  ):
    """Keeps the problem; `rows` are each client's, [rows, columns]."""
    super().__init__(first, [dict(rows=own) for own in rows], steps)
    self.optimum = optimum


class LeastSquares(Problem):
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
    pooled = np.concatenate(batches)
    optimum = np.linalg.lstsq(pooled[:, :-1], pooled[:, -1], rcond=None)[0]
    super().__init__(np.zeros([dimension]), optimum, batches, steps)

  def loss(self, x, batch, received):
    import tensorflow as tf

    rows = batch['rows']
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
    points, labels = np.concatenate(batches), np.concatenate(labels)
    first = centres + np.array([[1.0, 0.8], [-0.8, 1.0], [1.0, -0.8]])
    optimum = np.stack([
        points[labels == c].mean(axis=0) for c in range(self._CLUSTERS)
    ])
    super().__init__(first, optimum, batches, steps)

  def loss(self, x, batch, received):
    import tensorflow as tf

    from tasks.models import two_block

    rows = batch['rows']

    def half_squares(centroids):
      away = rows[:, tf.newaxis] - centroids
      return 0.5 * tf.reduce_sum(tf.square(away), axis=2)

    y = two_block.project_to_simplex(
        -half_squares(received) / self._TEMPERATURE
    )
    own = tf.reduce_sum(y * half_squares(x), axis=1)
    squares = tf.reduce_sum(tf.square(y), axis=1)
    return tf.reduce_mean(own + self._TEMPERATURE / 2 * squares)


PROBLEMS = dict(quadratics=LeastSquares, kmeans=KMeans)
