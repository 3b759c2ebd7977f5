"""The federated loop: cohorts in, one result per round out."""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import concurrent.futures
import contextlib
import dataclasses
import math
from typing import Any, NamedTuple
import warnings

import numpy as np
import tensorflow_federated as tff
import tree

from tff_fedopt import runtime
from tff_fedopt.experiment import failures
from tff_fedopt.experiment import sampling
from tff_fedopt.experiment import user_clients
from tff_fedopt.processes import client_input as client_input_lib
from tff_fedopt.processes import client_state
from tff_fedopt.processes import composition


@dataclasses.dataclass(frozen=True)
class RoundResult:
  """What one round left behind.

  Attributes:
    round: The round's number, from 1.
    weights: Trainable weights of the server's model after the round, a list of
      arrays in the model's order.
    metrics: What the process measured, and `diverged`: whether a server weight
      or the training loss is not finite, or no client's update was.
    state: The server's state after the round.
  """

  round: int
  weights: list[np.ndarray]
  metrics: Mapping[str, Any]
  state: Any

  @property
  def diverged(self) -> bool:
    return self.metrics['diverged']


def model_weights(process: tff.learning.templates.LearningProcess, state):
  """Returns the `ModelWeights` in a server state, two lists of arrays."""
  if isinstance(state, tff.learning.templates.LearningAlgorithmState):
    # Composed processes keep the weights here; a computation that reads them
    # would send the whole state to the worker and back.
    weights = state.global_model_weights
    if isinstance(weights, Mapping) and 'model' in weights:
      weights = weights['model']  # Beside what `processes.composition` adds.
  else:
    weights = process.get_model_weights(state)
  # TFF may hand structures back in other containers than they came in.
  if isinstance(weights, Mapping):
    weights = tff.learning.models.ModelWeights(**weights)
  return tff.learning.models.ModelWeights(
      *([np.asarray(w) for w in tree.flatten(part)] for part in weights)
  )


def initial_weights(
    process: tff.learning.templates.LearningProcess,
) -> list[np.ndarray]:
  """Returns the trainable weights before the first round.

  Args:
    process: A learning process.

  Returns:
    A list of arrays in the model's order.
  """
  runtime.use()
  return model_weights(process, process.initialize()).trainable


def run(
    process: tff.learning.templates.LearningProcess,
    client_data: Any,
    cohorts: Iterable[Iterable[str | int]],
    *,
    seed: int = 0,
    state: Any = None,
    start_round: int = 0,
) -> Iterator[RoundResult]:
  """Trains one round per cohort.

  Rule: for t = start_round + 1, …:
    state, metrics = process.next(state, [client i's data for i in cohort])

  A cohort's data is a function of (seed, round, client). Cohorts given as a
  sequence are prepared one round ahead, while the workers compute; an iterator
  is asked for a cohort only when its round begins.

  Args:
    process: A process of `algorithms.build`, or any learning process whose
      clients hold one sequence of batches.
    client_data: The clients, already batched: a `ClientData`, a dictionary from
      client ids to data sets, or a list of data sets, whose ids are 0, 1, ….
      Its method `dataset_for_client(client_id, seed)` is used if it has one,
      else `create_tf_dataset_for_client(client_id)`, and shuffling and other
      draws of that data set get seeds where they have none.
    cohorts: The client ids of each round, text or whole numbers.
    seed: Seed of shuffling and dropout.
    state: Server state to continue from; by default a new one. What clients
      remember from rounds after it is taken back: from the states of those
      rounds nobody can go on any more.
    start_round: Number of rounds that `state` has seen.

  Yields:
    One `RoundResult` per cohort, also for rounds that diverged.

  Raises:
    ValueError: If a cohort is empty or names a client that does not exist or
      occurs twice, a client's batches do not fit the process, or the clients do
      not fit `num_clients` or `per_client`.
    failures.ClientWorkError: If clients' work failed; names round and client.
    runtime.WorkerDied: If a worker ended during a round; names the round.
    client_state.ClientStateError: If clients' memory cannot be read or written.
  """
  runtime.use()
  if state is None:
    state = process.initialize()
  else:
    client_state.take_back(state)
  clients = _Clients(process, user_clients.UserClients(client_data, seed), seed)
  if isinstance(process, composition.Process):
    process.check_clients(state, clients.client_ids)
  with _ahead(clients.prepare, cohorts, start_round + 1) as prepared:
    for round_num, cohort in prepared:
      try:
        output = process.next(state, cohort.inputs)
      except runtime.WorkerDied as e:
        raise runtime.WorkerDied(f'round {round_num}: {e}') from e
      except RuntimeError as e:
        state_dir = client_state.directory(state)
        clear = state_dir and client_state.translate(e, state_dir)
        if clear:
          raise clear from e
        raise failures.translate(
            e, round_num, cohort.names, cohort.inputs, process, state
        ) from e
      state = output.state
      weights = model_weights(process, state).trainable
      metrics = collections.OrderedDict(
          output.metrics
          if isinstance(output.metrics, Mapping)
          else {'process': output.metrics}
      )
      metrics['diverged'] = _diverged(
          weights, metrics, len(cohort.names)
      )
      clients.warn_of_nothing(round_num, metrics)
      yield RoundResult(round_num, weights, metrics, state)


class _Prepared(NamedTuple):
  """A cohort's names, and what `process.next` takes from each of them."""

  names: list[str]
  inputs: list[Any]


class _Clients:
  """Prepares what `process.next` takes from the clients of a round."""

  def __init__(self, process, clients, seed):
    self.client_ids = clients.client_ids
    self._clients = clients
    self._seed = seed
    self._empty = set()
    self._warned = False
    clients_type = process.next.type_signature.parameter[1].member
    self._with_context = isinstance(clients_type, tff.StructType)
    examples_type = (
        clients_type['examples'] if self._with_context else clients_type
    )
    self._expected = examples_type.element
    self._fitting_spec = None

  def prepare(self, round_num, cohort):
    """Returns the inputs of one round, or raises what is wrong with it."""
    if isinstance(cohort, (str, bytes)) or not isinstance(cohort, Iterable):
      raise ValueError(
          f'round {round_num}: the cohort is {cohort!r:.60}; expected a list of'
          f' client ids for each round, such as [[{cohort!r:.60}]] for one'
          ' round'
      )
    cohort = [client_input_lib.client_name(c) for c in cohort]
    if not cohort:
      raise ValueError(f'round {round_num}: the cohort is empty')
    unknown = [c for c in cohort if c not in self._clients]
    if unknown:
      raise ValueError(
          f'round {round_num}: unknown client {unknown[0]!r}; the data has'
          f' {len(self.client_ids)} clients, the first is'
          f' {self.client_ids[0]!r}'
      )
    if len(set(cohort)) < len(cohort):
      twice = collections.Counter(cohort).most_common(1)[0][0]
      raise ValueError(
          f'round {round_num}: client {twice!r} is in the cohort twice'
      )
    datasets = [self._clients.dataset(c, round_num) for c in cohort]
    self._warn_of_empty(round_num, cohort, datasets)
    return _Prepared(
        cohort,
        [self._input(round_num, c, d) for c, d in zip(cohort, datasets)],
    )

  def _input(self, round_num, client_id, dataset):
    self._check(client_id, dataset.element_spec)
    if not self._with_context:
      return dataset
    return client_input_lib.client_input(
        client_id,
        dataset,
        sampling.derive_seed(self._seed, 'dropout', round_num, client_id),
    )

  def _warn_of_empty(self, round_num, cohort, datasets):
    """Says once of each client that it has no batch."""
    empty = [c for c, d in zip(cohort, datasets) if int(d.cardinality()) == 0]
    new = [repr(c) for c in empty if c not in self._empty]
    self._empty.update(empty)
    if new:
      more = f' and {len(new) - 3} more' if new[3:] else ''
      warnings.warn(
          f'round {round_num}: no batch of client {", ".join(new[:3])}{more},'
          ' which counts for nothing; does it have fewer examples than one'
          ' batch (drop_remainder=True)?'
      )

  def warn_of_nothing(self, round_num, metrics):
    """Says once that a round changed nothing, having no data."""
    client_work = metrics.get('client_work')
    if not isinstance(client_work, Mapping) or self._warned:
      return
    if not client_work.get('local_steps', 1):
      self._warned = True
      warnings.warn(
          f'round {round_num}: no client of the cohort had a batch; the model'
          ' stays as it is, and there is no loss'
      )

  def _check(self, client_id, spec):
    if spec == self._fitting_spec:
      return
    found = tff.types.tensorflow_to_type(spec)
    if not self._expected.is_assignable_from(found):
      raise ValueError(
          f'the batches of client {client_id!r} do not fit the process:'
          f' expected {self._expected.compact_representation()}, found'
          f' {found.compact_representation()}'
      )
    self._fitting_spec = spec


@contextlib.contextmanager
def _ahead(prepare, cohorts, first_round):
  """Gives (round, prepared cohort) pairs, a sequence's one round ahead."""
  numbered = enumerate(cohorts, first_round)
  if not isinstance(cohorts, Sequence):
    yield ((r, prepare(r, cohort)) for r, cohort in numbered)
    return
  pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix='cohort')

  def prefetched():
    waiting = None
    for r, cohort in numbered:
      coming = r, pool.submit(prepare, r, cohort)
      if waiting:
        yield waiting[0], waiting[1].result()
      waiting = coming
    if waiting:
      yield waiting[0], waiting[1].result()

  try:
    yield prefetched()
  finally:
    pool.shutdown(wait=False, cancel_futures=True)


def _diverged(weights, metrics, cohort_size) -> bool:
  """Whether a round's outcome cannot be trained further in any useful way."""
  if not all(np.isfinite(w).all() for w in weights):
    return True
  client_work = metrics.get('client_work')
  if not isinstance(client_work, Mapping):
    return False
  if not client_work.get('local_steps', 1):
    return False  # No client had an example: there is no loss.
  loss = float(client_work.get('train', {}).get('loss', 0.0))
  excluded = int(client_work.get('non_finite_clients', 0))
  if excluded:
    # Their updates were left out; without a loss nobody's was not.
    return excluded >= cohort_size or math.isnan(loss)
  return not math.isfinite(loss)
