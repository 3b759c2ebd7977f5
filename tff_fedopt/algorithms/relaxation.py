"""Relaxed initialisation, around any algorithm.

```
client i:  x_{i,0} = x_t + β (x_t − x_i),   x_i its last local model, first x_0
           x_i = the local model after the last step
server:    averages x_i (paper), or x_t + (x_i − x_{i,0}) (code)
```

With `form='code'` the offset β (x_t − x_i) is left out of the average, as in
FL-Simulator; the two forms agree when all clients take part and η = 1. What a
method reads off the local steps themselves (a control variate, an average
gradient) is measured from x_{i,0} in both forms. Whatever the form, FedDyn
averages x_i, FedVRA uploads x_{i,0} − x_i, and the corrections of Local
Adaptivity act on x_{i,0} − x_i, as N_i says how far the local steps went.

Source: Shen, Sun, Tao: Rethinking the Personalized Relaxed Initialization in
the Federated Learning: Consistency and Generalization, 2026, arXiv:2604.12768,
Algorithm 1; its line 16 is the server's average.

Example:

  >>> import tempfile
  >>> import tff_fedopt
  >>> from tff_fedopt.testing import toy
  >>> process = tff_fedopt.algorithms.build(
  ...     'fedavg', toy.LinearModel, client_learning_rate=0.1, relaxation=0.1,
  ...     state_dir=tempfile.mkdtemp())
  >>> rounds = list(tff_fedopt.run(
  ...     process, toy.Clients(), [['c0', 'c1'], ['c1', 'c3']]))
  >>> [r.round for r in rounds if not r.metrics['diverged']]
  [1, 2]
"""

from tff_fedopt.optimizers import base
from tff_fedopt.processes import local_method
from tff_fedopt.processes import trees


class Relaxed(local_method.Around):
  """Starts the inner method away from the client's last local model."""

  def __init__(self, inner: local_method.LocalMethod, form: str):
    super().__init__(inner)
    self.memory['last'] = 'initial_model'
    self._averages_local_models = form == 'paper'

  def start(self, client: local_method.Client) -> base.Tensors:
    away = trees.sub(client.x, client.memory['last'])
    return trees.add_scaled(
        self.inner.start(client), client.hparams['relaxation'], away
    )

  def upload(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    if self._averages_local_models:
      client = client._replace(origin=client.x)
    return self.inner.upload(client, result)

  def remember(
      self, client: local_method.Client, result: local_method.LocalResult
  ) -> base.State:
    memory = self.inner.remember(client, result)
    memory['last'] = result.y
    return memory
