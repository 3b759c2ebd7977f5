"""What is timed against what; each variant runs in a process of its own.

`python -m tff_fedopt.bench.variants COMPARISON VARIANT ENGINE [PLUGIN …]`, the
engine as `runtime.Settings` in JSON, warms up, prints the seconds that took,
and then answers every line of its input with one measurement.
"""

import collections
from collections.abc import Callable
import dataclasses
import json
import os
import signal
import sys
import tempfile
import time
import traceback


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Variants measured in turn.

  Attributes:
    what: One line for people.
    unit: Unit of a measurement.
    variants: Name of each variant, ours first, and a function without arguments
      that prepares it and returns the function that is measured; that returns
      its own figure, or None for the seconds it takes.
  """

  what: str
  unit: str
  variants: dict[str, Callable[[], Callable[[], float | None]]]


@dataclasses.dataclass(frozen=True)
class _Round:
  """The size of a round: clients, examples of each, examples of a batch."""

  clients: int
  examples: int
  batch: int


# ------------------------------------------------------------ models and data


def _emnist():
  """The full-size EMNIST network and a client's random images."""
  from tasks.models import cnn

  return _images(lambda: cnn.ConvDropoutNet(62, seed=1), (28, 28, 1), 62)


def _cifar():
  """The full-size strided ResNet-18-GN and a client's random images."""
  from tasks.models import strided_resnet

  return _images(
      lambda: strided_resnet.StridedResNet(10, seed=1), (32, 32, 3), 10
  )


def _images(network, shape, classes):
  """A classifier of images and a client's random ones."""
  import numpy as np
  import tensorflow as tf

  from tasks.models import objectives
  from tasks.models import wrapper

  spec = collections.OrderedDict(
      x=tf.TensorSpec([None, *shape], tf.float32),
      y=tf.TensorSpec([None], tf.int32),
  )

  def model_fn():
    return wrapper.TaskModel(network(), objectives.classification(), spec)

  def examples(rng, n):
    images = rng.random([n, *shape], np.float32)
    return images, rng.integers(0, classes, n, np.int32)

  return model_fn, examples


def _shakespeare():
  """The full-size character network and a client's random rows."""
  import numpy as np
  import tensorflow as tf

  from tasks.models import language
  from tasks.models import objectives
  from tasks.models import wrapper

  spec = collections.OrderedDict(
      x=tf.TensorSpec([None, 80], tf.int32),
      y=tf.TensorSpec([None, 80], tf.int32),
  )

  def model_fn():
    network = language.RecurrentNet(
        90, seed=1, embedding_size=8, units=[256, 256]
    )
    objective = objectives.next_token(dict(accuracy=[0]))
    return wrapper.TaskModel(network, objective, spec)

  def examples(rng, n):
    rows = rng.integers(1, 90, [n, 81]).astype(np.int32)
    return rows[:, :-1], rows[:, 1:]

  return model_fn, examples


def _keras_emnist():
  """TFF's own network for the same examples."""
  import tensorflow_federated as tff

  # Its data are not used: a synthetic task is the way to the model.
  task = tff.simulation.baselines.emnist.create_character_recognition_task(
      tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=20),
      model_id='cnn',
      only_digits=False,
      use_synthetic_data=True,
  )
  return task.model_fn


def _keras_shakespeare():
  import tensorflow_federated as tff

  task = tff.simulation.baselines.shakespeare.create_character_prediction_task(
      tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=4),
      use_synthetic_data=True,
  )
  return task.model_fn


# ------------------------------------------------------------------- variants


def _named(x, y):
  """A batch as our tasks have it; TFF's own tasks have pairs."""
  return collections.OrderedDict(x=x, y=y)


def _pair(x, y):
  return x, y


def _int64_pair(x, y):
  return x.astype('int64'), y.astype('int64')


def _datasets(examples, size: _Round, structure):
  import numpy as np
  import tensorflow as tf

  rng = np.random.default_rng(0)
  datasets = []
  for _ in range(size.clients):
    elements = structure(*examples(rng, size.examples))
    dataset = tf.data.Dataset.from_tensor_slices(elements)
    datasets.append(dataset.batch(size.batch))
  return datasets


def _inputs(cohort, datasets):
  """What the clients of a round bring: each a number, and one data set."""
  from tff_fedopt.processes import client_input

  return [
      client_input.client_input(str(i), d) for i, d in zip(cohort, datasets)
  ]


def _ours(task, size, **hyperparameters):
  def prepare():
    from tff_fedopt import algorithms
    from tff_fedopt import runtime

    runtime.use()
    model_fn, examples = task()
    process = algorithms.build(
        'fedavg', model_fn, client_learning_rate=0.01, **hyperparameters
    )
    datasets = _datasets(examples, size, _named)
    return _next_rounds(process, _inputs(range(size.clients), datasets))

  return prepare


def _on_worker(variant):
  """A variant of ours on the other engine."""

  def prepare():
    from tff_fedopt import runtime

    runtime.choose(runtime.Settings(engine='worker'))
    return variant()

  return prepare


def _algorithm(task, size, algorithm, hyperparameters, drawn=False):
  """Rounds of an algorithm whose clients, of 100, may remember.

  Args:
    task: Gives model and examples.
    size: The size of a round.
    algorithm: Name of the algorithm.
    hyperparameters: Those beside what all share.
    drawn: Whether every round draws its clients; else they are always the same.
  """

  def prepare():
    from tff_fedopt import algorithms
    from tff_fedopt import runtime
    from tff_fedopt.experiment import sampling
    from tff_fedopt.processes import client_state

    runtime.use()
    model_fn, examples = task()
    state_dir = os.path.join(tempfile.mkdtemp(), 'state')
    hp = algorithms.validate(
        algorithm,
        dict(
            client_learning_rate=0.01,
            client_weighting='uniform',
            **hyperparameters,
        ),
    )
    process = algorithms.build_parsed(
        algorithm, model_fn, hp.placed(_REGISTERED, state_dir)
    )
    datasets = _datasets(examples, size, _named)
    data = _inputs(range(size.clients), datasets)
    state = process.initialize()
    done = 0

    def measured():
      nonlocal data, state, done
      if drawn:
        cohort = sampling.cohort(_REGISTERED, size.clients, 0, done + 1)
        data = _inputs(cohort, datasets)
      state = process.next(state, data).state
      done += 1
      # Deleting what is old is part of the cost.
      client_state.collect_client_state(state)

    return measured

  return prepare


def _algorithms(task, size, **variants):
  """Rounds of algorithms side by side: name to (algorithm, hyperparameters)."""
  return {
      name: _algorithm(task, size, *chosen) for name, chosen in variants.items()
  }


_MEMORY = dict(
    fedavg=('fedavg', {}),
    fedinit=('fedinit', dict(relaxation=0.1)),
    scaffold=('scaffold', {}),
    feddyn=('feddyn', {}),
    fedcm=('fedcm', {}),
    fedsam=('fedsam', {}),
)
_CORRECTED = {
    correction: (
        'fedadagrad',
        dict(client_optimizer='adagrad', correction=correction),
    )
    for correction in ('none', 'local', 'global')
}
_PRIMAL_DUAL = dict(
    fedavg=('fedavg', {}),
    fedvra=(
        'fedvra',
        dict(gamma=0.1, dual_step='rho:0.3', aggregation_step='N/m'),
    ),
    scaffold=('scaffold', {}),
)


def _stock(task, keras_model_fn, size, structure):
  """`build_weighted_fed_avg` with every default of TFF."""

  def prepare():
    import tensorflow_federated as tff

    _, examples = task()
    process = tff.learning.algorithms.build_weighted_fed_avg(
        keras_model_fn(),
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.01),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
    )
    return _next_rounds(process, _datasets(examples, size, structure))

  return prepare


def _next_rounds(process, data):
  state = process.initialize()

  def measured():
    nonlocal state
    state = process.next(state, data).state

  return measured


def _plain(task, size):
  """The same model and steps in one TensorFlow graph, without TFF."""

  def prepare():
    import tensorflow as tf

    model_fn, examples = task()
    model = model_fn()
    variables = model.trainable_variables
    datasets = _datasets(examples, size, _named)

    @tf.function
    def train(weights, dataset, seed):
      for v, w in zip(variables, weights):
        v.assign(w)
      step, rows = tf.zeros([], tf.int64), 0.0
      for batch in dataset:
        model.seed_randomness(seed, step)
        with tf.GradientTape() as tape:
          output = model.forward_pass(batch, training=True)
        for v, g in zip(variables, tape.gradient(output.loss, variables)):
          v.assign_sub(0.01 * g)
        step += 1
        rows += tf.cast(output.num_examples, tf.float32)
      return [rows * (w - v) for w, v in zip(weights, variables)], rows

    weights = [tf.constant(v.numpy()) for v in variables]

    def measured():
      nonlocal weights
      total, count = [tf.zeros_like(w) for w in weights], 0.0
      for seed, dataset in enumerate(datasets):
        change, rows = train(weights, dataset, tf.constant(seed, tf.int64))
        total = [t + c for t, c in zip(total, change)]
        count += rows
      weights = [w - t / count for w, t in zip(weights, total)]

    return measured

  return prepare


def _lstm_step(features, units, batch, length, layer):
  """A forward and backward pass of one recurrent layer."""

  def prepare():
    import numpy as np
    import tensorflow as tf

    from tasks.models import fast_lstm

    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=[batch, length, features]), tf.float32)
    lengths = rng.integers(length // 2, length + 1, batch)
    mask = tf.constant(np.arange(length)[None] < lengths[:, None])
    lengths = tf.constant(lengths, tf.int32)
    keras = tf.keras.layers.LSTM(units, return_sequences=True)
    keras.build((None, length, features))
    weights = keras.trainable_variables

    @tf.function
    def step():
      with tf.GradientTape() as tape:
        if layer == 'keras':
          y = keras(x, mask=mask)
        else:
          y = fast_lstm.lstm(tf.transpose(x, [1, 0, 2]), *weights, lengths)
        loss = tf.reduce_sum(tf.square(y))
      return tape.gradient(loss, weights)

    def measured():
      for _ in range(10):  # A single step is too short to time.
        gradients = step()
      gradients[0].numpy()

    return measured

  return prepare


def _registered(count):
  """A round of ten one-example clients among `count` registered ones."""

  def prepare():
    import numpy as np

    from tasks.data import client_data
    from tff_fedopt import algorithms
    from tff_fedopt import runtime
    from tff_fedopt.experiment import rounds
    from tff_fedopt.experiment import sampling

    runtime.use()
    ids = [str(i) for i in range(count)]
    model_fn, examples = _emnist()

    class Clients(client_data.SeededClients):
      """Any number of clients with one random example each."""

      @property
      def client_ids(self):
        return ids

      @property
      def element_type_structure(self):
        return self.dataset_for_client('0', 0).element_spec

      def arrays_for_client(self, client_id, seed):
        return examples(np.random.default_rng(seed), 1)

    clients = Clients(batch_size=1)
    process = algorithms.build('fedavg', model_fn)
    cohorts = (
        [str(i) for i in sampling.cohort(count, 10, 0, t)]
        for t in range(10**9)
    )
    results = rounds.run(process, clients, cohorts)
    return lambda: next(results) and None

  return prepare


def _growth(rounds_per_turn, variant):
  """Megabytes that this process and its worker grew by."""

  def prepare():
    from tff_fedopt import runtime

    page = os.sysconf('SC_PAGE_SIZE')

    step = variant()
    for _ in range(50):
      step()  # Allocators and caches fill up first.

    def resident():
      pages = 0
      for pid in [os.getpid(), *runtime.worker_pids()]:
        with open(f'/proc/{pid}/statm', encoding='ascii') as f:
          pages += int(f.read().split()[1])
      return pages * page / 2**20

    def measured():
      before = resident()
      for _ in range(rounds_per_turn):
        step()
      return resident() - before

    return measured

  return prepare


_EMNIST = _Round(clients=10, examples=100, batch=20)
_SHAKESPEARE = _Round(clients=10, examples=16, batch=4)
_CIFAR = _Round(clients=4, examples=500, batch=50)
_EMPTY = _Round(clients=10, examples=0, batch=20)
_SMALL = _Round(clients=2, examples=20, batch=20)

_REGISTERED = 100  # Clients, where some of them may take part.

COMPARISONS = dict(
    emnist_round=Comparison(
        'a round of the EMNIST CNN, 10 clients × 100 examples, batch 20',
        's',
        dict(
            ours=_ours(_emnist, _EMNIST),
            worker=_on_worker(_ours(_emnist, _EMNIST)),
            tff_default=_stock(_emnist, _keras_emnist, _EMNIST, _pair),
            plain_tf=_plain(_emnist, _EMNIST),
        ),
    ),
    shakespeare_round=Comparison(
        'a round of the Shakespeare LSTM, 10 clients × 16 rows, batch 4',
        's',
        dict(
            ours=_ours(_shakespeare, _SHAKESPEARE),
            tff_default=_stock(
                _shakespeare, _keras_shakespeare, _SHAKESPEARE, _int64_pair
            ),
            plain_tf=_plain(_shakespeare, _SHAKESPEARE),
        ),
    ),
    empty_round=Comparison(
        'a round of the EMNIST CNN whose 10 clients have no examples',
        's',
        dict(
            ours=_ours(_emnist, _EMPTY),
            worker=_on_worker(_ours(_emnist, _EMPTY)),
            tff_default=_stock(_emnist, _keras_emnist, _EMPTY, _pair),
        ),
    ),
    memory_emnist=Comparison(
        'a round of the EMNIST CNN, clients with memory beside FedAvg',
        's',
        _algorithms(_emnist, _EMNIST, **_MEMORY),
    ),
    memory_resnet=Comparison(
        'a round of the strided ResNet-18-GN, 4 clients × 500 examples, batch'
        ' 50, clients with memory beside FedAvg',
        's',
        _algorithms(_cifar, _CIFAR, **_MEMORY),
    ),
    correction_emnist=Comparison(
        'a round of the EMNIST CNN with AdaGrad at the clients: no, local and'
        ' global correction',
        's',
        _algorithms(_emnist, _EMNIST, **_CORRECTED),
    ),
    primal_dual_emnist=Comparison(
        'a round of the EMNIST CNN, FedVRA and SCAFFOLD beside FedAvg',
        's',
        _algorithms(_emnist, _EMNIST, **_PRIMAL_DUAL),
    ),
    lstm_step_256=Comparison(
        '10 training steps of an LSTM layer of 256 units, batch 4, 80'
        ' positions',
        's',
        dict(
            ours=_lstm_step(256, 256, 4, 80, 'fast'),
            keras=_lstm_step(256, 256, 4, 80, 'keras'),
        ),
    ),
    lstm_step_670=Comparison(
        '10 training steps of an LSTM layer of 670 units, batch 16, 20'
        ' positions',
        's',
        dict(
            ours=_lstm_step(96, 670, 16, 20, 'fast'),
            keras=_lstm_step(96, 670, 16, 20, 'keras'),
        ),
    ),
    registered_clients=Comparison(
        'a round of 10 one-example clients among 100 to 1 000 000',
        's',
        {
            str(n): _registered(n)
            for n in (100, 10_000, 1_000_000)
        },
    ),
    memory_growth=Comparison(
        'growth over 200 rounds, process and worker together; with_state:'
        ' SCAFFOLD with state files, 2 of 100 clients a round',
        'MB',
        dict(
            ours=_growth(200, _ours(_emnist, _SMALL)),
            with_state=_growth(
                200, _algorithm(_emnist, _SMALL, 'scaffold', {}, drawn=True)
            ),
        ),
    ),
)


# Before the name of an algorithm: a comparison of its own.
BESIDE_FEDAVG = 'beside_fedavg:'


def comparison(name: str) -> Comparison:
  """Returns a comparison.

  Args:
    name: A key of `COMPARISONS`, or `BESIDE_FEDAVG` and the name of an
      algorithm with the defaults of its hyperparameters.
  """
  if not name.startswith(BESIDE_FEDAVG):
    return COMPARISONS[name]
  algorithm = name.removeprefix(BESIDE_FEDAVG)
  return Comparison(
      f'a round of the EMNIST CNN, {algorithm} beside FedAvg',
      's',
      _algorithms(
          _emnist,
          _EMNIST,
          fedavg=('fedavg', {}),
          **{algorithm: (algorithm, {})},
      ),
  )


def main(argv):
  """Answers every line of standard input with one measurement."""
  try:
    _answer(*argv)
  except Exception:  # pylint: disable=broad-exception-caught
    traceback.print_exc()
  finally:
    sys.stdout.flush()
    sys.stderr.flush()
    # TFF's default context would leave a worker that holds our output open.
    if os.getpgrp() == os.getpid():
      os.killpg(0, signal.SIGKILL)


def _answer(comparison_name, name, engine, *plugin_names):
  from tff_fedopt import plugins
  from tff_fedopt import runtime

  runtime.choose(runtime.Settings(**json.loads(engine)))
  start = time.perf_counter()
  for plugin in plugin_names:
    plugins.load(plugin)
  chosen = comparison(comparison_name)
  measured = chosen.variants[name]()

  def measure():
    begin = time.perf_counter()
    figure = measured()
    return time.perf_counter() - begin if figure is None else figure

  if chosen.unit == 's':
    measure()
    print(time.perf_counter() - start, flush=True)
    measure()  # The second call may still compile.
  else:
    print(time.perf_counter() - start, flush=True)
  for _ in sys.stdin:
    print(measure(), flush=True)


if __name__ == '__main__':
  main(sys.argv[1:])
