"""Settings of Local Adaptivity's experiments: methods, rates, lengths.

Of the published runs only the names of the optimizers are known, not rates, ε,
accumulators, rounds of the language tasks or cohorts. What is unknown is ours:
lengths and cohorts are those of Adaptive Federated Optimization (AFO), whose
tasks these are, and rates are tuned on the grids below. Rates are base-10
logarithms.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any, NamedTuple

import tasks
from tasks import source
from tff_fedopt.papers.afo import quick
from tff_fedopt.papers.afo import settings as afo_settings
from tff_fedopt.tables import spec

_half_decades = afo_settings.half_decades

_PAPER = source.published('Local Adaptivity, Section 3')
_UNKNOWN = source.guessed(
    'the appendix, which has the published values, could not be found'
)
_OF_AFO = source.guessed(
    'that of Adaptive Federated Optimization, whose task it is: the published'
    ' one is unknown'
)
_SETUP = source.published(
    'Local Adaptivity, experiments: 8000 rounds, else the setup of Adaptive'
    ' Federated Optimization'
)
OF_TABLES = {
    'seeds': _UNKNOWN,
    'reduction': source.guessed('which rounds are averaged is unknown'),
    'split': source.guessed(
        'the paper shows test numbers; of which examples is unknown'
    ),
}

# Label in the paper's tables -> label in AFO's.
TASKS = {
    'SO NWP': 'SO NWP',
    'Shakespeare NCP': 'Shakespeare',
    'SO TP': 'SO LR',
    'CIFAR-100': 'CIFAR-100',
}
LANGUAGE = ('SO NWP', 'Shakespeare NCP', 'SO TP')


class Method(NamedTuple):
  """Which optimizer at the server and at the clients, and how they go on."""

  server: str
  client: str
  correction: str = 'none'
  client_state: str = 'restart'


FEDAVG = Method('SGD', 'SGD')
CLIENT_ONLY = Method('SGD', 'AdaGrad')
SERVER_ONLY = Method('AdaGrad', 'SGD')
BOTH = Method('AdaGrad', 'AdaGrad')
SYNCHRONISED = Method('AdaGrad', 'AdaGrad', client_state='sync')

# Task -> the optimizer of AFO's best server there, which Table 2 has. By AFO's
# list these have the best training metric: FedAdam and FedYogi on SO NWP,
# FedAdagrad with FedYogi and FedAvgM on Shakespeare, FedAdagrad on SO TP.
BEST_SERVERS = {
    'SO NWP': 'Adam', 'Shakespeare NCP': 'AdaGrad', 'SO TP': 'AdaGrad'
}

# Optimizer -> algorithm with it at the server, and AFO's name for that.
_SERVERS = {
    'SGD': ('fedavg', 'FedAvg'),
    'AdaGrad': ('fedadagrad', 'FedAdagrad'),
    'Adam': ('fedadam', 'FedAdam'),
    'Yogi': ('fedyogi', 'FedYogi'),
}
# Where the accumulator of a client optimizer begins: the defaults that the
# published code leaves in place.
_ACCUMULATORS = {'AdaGrad': 0.1, 'Adam': 0.0, 'Yogi': 1.0}
_EPSILON = 1e-3
_TAU = -3.0


# What is searched in `paper`, where clients are adaptive: client rates, server
# rates. Every pair that another profile uses is inside.
_SEARCHED = {
    'SO NWP': (_half_decades(-2, 1), _half_decades(-2.5, 1)),
    'Shakespeare NCP': (_half_decades(-2, 1), _half_decades(-2, 0)),
    'SO TP': (_half_decades(-1, 2.5), _half_decades(-1.5, 1)),
    'CIFAR-100': (_half_decades(-3, 0), _half_decades(-2, 0)),
}
# The 28 pairs of the figure, in which are the tuned rates of both its methods.
PAIRS = {
    'SO NWP': (_half_decades(-2, 1), (-2.5, -2, -1.5, -1)),
    'SO TP': (_half_decades(-0.5, 2.5), (-1, 0, 0.5, 1)),
}


def searched(
    task_label: str, method: Method
) -> tuple[Sequence[float], Sequence[float]]:
  """Returns the client and server rates that `paper` searches, as log10.

  Args:
    task_label: A key of `TASKS`.
    method: One with adaptive clients. A server that averages has rate 1: that
      is what client-only methods are.
  """
  clients, servers = _SEARCHED[task_label]
  return clients, (0.0,) if method.server == 'SGD' else servers


def hyperparameters(
    task_label: str,
    method: Method,
    form: str,
    client: float,
    server: float,
    tau: float = _TAU,
) -> dict[str, Any]:
  """Returns a method's hyperparameters, every choice spelled out.

  N_i is exact with `form='paper'`, that of the published recursion with
  `form='code'`.

  Args:
    task_label: A key of `TASKS`; decides how clients are weighted.
    method: The method.
    form: `code` or `paper`.
    client: log10 of the client learning rate.
    server: log10 of the server learning rate.
    tau: log10 of the τ of an adaptive server.

  Returns:
    Name to value.
  """
  values = {
      'form': form,
      'client_learning_rate': 10.0**client,
      'server_learning_rate': 10.0**server,
      'client_weighting': tasks.info(_task(task_label)).weighting,
  }
  if method.server != 'SGD':
    values.update(
        tau=10.0**tau,
        initial_accumulator=0.0 if form == 'code' else 10.0 ** (2 * tau),
    )
  if method.server in ('Adam', 'Yogi'):
    values.update(
        beta1=0.9,
        beta2=0.999 if form == 'code' else 0.99,
        bias_correction=form == 'code',
    )
  if method.client != 'SGD':
    values.update(
        client_optimizer=method.client.lower(),
        client_epsilon=_EPSILON,
        client_initial_accumulator=_ACCUMULATORS[method.client],
        client_state=method.client_state,
        correction=method.correction,
    )
  if method.client in ('Adam', 'Yogi'):
    values.update(
        client_beta1=0.9,
        client_beta2=0.999,
        client_bias_correction=form == 'code',
    )
  return values


def sources(
    task_label: str, form: str, rates: source.Source
) -> dict[str, source.Source]:
  """Returns where hyperparameters and the course of runs come from.

  Args:
    task_label: A key of `TASKS`.
    form: `code` or `paper`.
    rates: Where client and server rates come from.
  """
  course = ('rounds', 'cohort_size', 'batch_size', 'local_epochs')
  return {
      **afo_settings.sources(form, _UNKNOWN),
      **dict.fromkeys(
          ('client_optimizer', 'client_state', 'correction'), _PAPER
      ),
      **dict.fromkeys(('client_learning_rate', 'server_learning_rate'), rates),
      **dict.fromkeys(
          (
              'client_epsilon',
              'client_initial_accumulator',
              'client_beta1',
              'client_beta2',
              'client_bias_correction',
              'initial_accumulator',
              'beta2',
              'bias_correction',
          ),
          _UNKNOWN,
      ),
      **dict.fromkeys(course, _SETUP if task_label == 'CIFAR-100' else _OF_AFO),
      **dict.fromkeys(('validation_examples', 'evaluate_every'), _OF_AFO),
  }


_LOCAL = Method('AdaGrad', 'AdaGrad', 'local')
_GLOBAL = Method('AdaGrad', 'AdaGrad', 'global')
_ADAM_ADAGRAD = Method('Adam', 'AdaGrad')


def _task(task_label):
  return afo_settings.TASKS[TASKS[task_label]]


def _tuned(clients, servers, rounds=20):
  return quick.tuned_on(clients, servers, rounds)


# What was tried; the pair with the best training metric was chosen, which is
# not always inside.
_TP = _tuned((1, 1.5, 2, 2.5), (-1.5, -1, -0.5))
_NWP = _tuned((-0.5, 0, 0.5), (-1, -0.5, 0))
_NWP_ADAM = _tuned((-0.5, 0, 0.5), (-1, -0.5))
_NWP_SMALL = _tuned((-2, -1.5, -1), (-1, -0.5))
_SHAKESPEARE = _tuned((0, 0.5, 1), (-0.5, 0))
_CIFAR = _tuned((-1.5, -1), (-1, -0.5), 60)

# Task -> method with adaptive clients -> log10 of client and server rate, where
# they are from.
_QUICK = {
    'SO TP': {
        CLIENT_ONLY: (0.5, 0, _tuned((0, 0.5, 1, 1.5, 2), (0,))),
        BOTH: (2.5, -1, _TP),
        _LOCAL: (2.5, -1, _TP),
        _GLOBAL: (2.5, -1, _TP),
    },
    'SO NWP': {
        CLIENT_ONLY: (0, 0, _tuned((-1, -0.5, 0, 0.5), (0,))),
        BOTH: (0, -0.5, _NWP),
        _ADAM_ADAGRAD: (0, -0.5, _NWP_ADAM),
        Method('Adam', 'AdaGrad', 'local'): (
            0, 0, _tuned((-0.5, 0, 0.5), (-1, -0.5, 0, 0.5))
        ),
        Method('Adam', 'AdaGrad', 'global'): (0, -0.5, _NWP_ADAM),
        Method('Adam', 'Adam'): (-1, -0.5, _NWP_SMALL),
        Method('Adam', 'Adam', 'local'): (
            -1.5, 1, _tuned((-2, -1.5, -1), (0, 0.5, 1, 2))
        ),
        Method('Adam', 'Adam', 'global'): (-1, -0.5, _NWP_SMALL),
        Method('Adam', 'Yogi'): (0.5, -0.5, _NWP_ADAM),
        Method('Adam', 'Yogi', 'local'): (
            0.5, -0.5, _tuned((-0.5, 0, 0.5), (-0.5, 0))
        ),
        Method('Adam', 'Yogi', 'global'): (0.5, -0.5, _NWP_ADAM),
    },
    'Shakespeare NCP': {
        CLIENT_ONLY: (0.5, 0, _tuned((-1, -0.5, 0, 0.5, 1), (0,))),
        BOTH: (0.5, -0.5, _SHAKESPEARE),
        _LOCAL: (0.5, 0, _SHAKESPEARE),
        _GLOBAL: (0.5, 0, _SHAKESPEARE),
        SYNCHRONISED: (0.5, -0.5, _SHAKESPEARE),
    },
    'CIFAR-100': {
        _ADAM_ADAGRAD: (-1.5, -1, _CIFAR),
        Method('Adam', 'AdaGrad', 'local'): (
            -1.5, 0, _tuned((-1.5, -1), (-1, -0.5, 0), 60)
        ),
    },
}


# With the rates above the whole model diverges; these were tried in quick, too.
_SMALL = {'Shakespeare NCP': (-0.5, -1)}


def _as_afo(profile, task_label, method):
  """AFO's tuned rates for a method that AFO has, too."""
  label, name = TASKS[task_label], _SERVERS[method.server][1]
  tuned = quick.tuned if profile == 'quick' else afo_settings.tuned
  client, server, tau, where = tuned(label, name)
  if profile != 'quick':
    where = source.guessed(
        'tuned by the authors of Adaptive Federated Optimization: those of this'
        ' paper are unknown'
    )
  return client, server, _TAU if tau is None else tau, where


def candidates(
    profile: str, form: str, task_label: str, method: Method, **changes
) -> list[spec.Setting]:
  """Returns the candidate settings of a method on a task.

  AFO's tuned rates of the profile where clients run SGD. Else `quick` has the
  rates tuned by us, `small` the same, since a grid of the full models would
  take days, and `paper` all pairs of `searched`.

  Args:
    profile: `quick`, `small` or `paper`.
    form: `code` or `paper`.
    task_label: A key of `TASKS`.
    method: The method.
    **changes: Fields of `spec.Setting` to change.

  Returns:
    One or several settings.
  """
  if method.client == 'SGD':
    *pair, where = _as_afo(profile, task_label, method)
    rates = [pair]
  elif profile == 'paper':
    clients, servers = searched(task_label, method)
    rates = [(c, s, _TAU) for s in servers for c in clients]
    where = source.tuned(
        f'client {quick.listed(clients)} × server {quick.listed(servers)},'
        ' log10'
    )
  else:
    client, server, where = _QUICK[task_label][method]
    if profile == 'small':
      client, other = _SMALL.get(task_label, (client, server))
      # A server that averages stays what it is.
      server = server if method.server == 'SGD' else other
      where = source.guessed(
          'rates of the quick profile, not tuned at this size'
      )
    rates = [(client, server, _TAU)]
  return [
      setting(
          profile, form, task_label, method, *triple, rates=where, **changes
      )
      for triple in rates
  ]


def setting(
    profile: str,
    form: str,
    task_label: str,
    method: Method,
    client: float,
    server: float,
    tau: float = _TAU,
    *,
    rates: source.Source,
    **changes,
) -> spec.Setting:
  """Returns one setting of a method; rates, with their source, τ as log10."""
  return _scale(profile, task_label).setting(**{
      'task': _task(task_label),
      'algorithm': _SERVERS[method.server][0],
      'hyperparameters': hyperparameters(
          task_label, method, form, client, server, tau
      ),
      'source': rates,
      'label': f'log10 client rate {client:g}, server rate {server:g}',
      **changes,
      'sources': {
          **sources(task_label, form, rates), **changes.get('sources', {})
      },
  })


_ROUNDS = {
    # Published, unlike those of the language tasks.
    ('paper', 'CIFAR-100'): 8000,
    ('quick', 'CIFAR-100'): 60,
    # More methods than AFO's tables have, in the same time.
    ('small', 'SO NWP'): 12,
    ('small', 'SO TP'): 40,
    ('small', 'Shakespeare NCP'): 12,
}


def _scale(profile, task_label):
  scale = afo_settings.scale(TASKS[task_label], profile)
  rounds = _ROUNDS.get((profile, task_label), scale.rounds)
  where = _SETUP if profile == 'paper' else scale.source
  return dataclasses.replace(scale, rounds=rounds, source=where)
