"""The cells of Local Adaptivity's tables; those of the toy are in `toy`."""

import functools

from tasks import source
from tff_fedopt.experiment import reductions
from tff_fedopt.papers.local_adaptivity import settings
from tff_fedopt.tables import spec


def method_table(rows, columns):
  """A build function: methods by column label, on some tasks."""

  def build(profile, form):
    return [
        spec.Cell(
            row, column, settings.candidates(profile, form, row, method)
        )
        for row in rows
        for column, method in columns.items()
    ]

  return build


_SERVER_ONLY = 'server-only AdaGrad'
_RESTART = 'both AdaGrad, restart'
TABLE1 = {
    'FedAvg': settings.FEDAVG,
    'client-only AdaGrad': settings.CLIENT_ONLY,
    _SERVER_ONLY: settings.SERVER_ONLY,
    _RESTART: settings.BOTH,
}
CIFAR100 = {
    'server-only Adam': settings.Method('Adam', 'SGD'),
    'server Adam + client AdaGrad': settings.Method('Adam', 'AdaGrad'),
    'server Adam + client AdaGrad, local correction': settings.Method(
        'Adam', 'AdaGrad', 'local'
    ),
}
_CORRECTIONS = {
    'no correction': 'none',
    'local correction': 'local',
    'global correction': 'global',
}


# Label of a column -> client optimizer and correction beside the best server.
_TABLE2 = {
    'server only': ('SGD', 'none'),
    'client AdaGrad, restart': ('AdaGrad', 'none'),
    'client AdaGrad, local correction': ('AdaGrad', 'local'),
    'client AdaGrad, global correction': ('AdaGrad', 'global'),
}


def table2(profile, form):
  """Table 2: corrections beside the best server of each task."""
  return [
      spec.Cell(
          row,
          column,
          settings.candidates(
              profile,
              form,
              row,
              settings.Method(server, client, correction),
          ),
      )
      for row, server in settings.BEST_SERVERS.items()
      for column, (client, correction) in _TABLE2.items()
  ]


def _bytes(name):
  return spec.Quantity(
      name,
      'x',
      column='bytes_total',
      reduction=reductions.Last(1),
      higher_is_better=False,
      relation='ratio',
      decimals=2,
      tolerance=1e-6,
      source=source.published('Local Adaptivity, text: bytes of a round'),
  )


def table3(profile, form):
  """Table 3: server Adam with adaptive clients."""
  task = 'SO NWP'
  candidates = functools.partial(settings.candidates, profile, form, task)
  server_adam = settings.Method('Adam', 'SGD')
  methods = {
      (client, correction): settings.Method('Adam', client, correction)
      for client in ('AdaGrad', 'Adam', 'Yogi')
      for correction in _CORRECTIONS.values()
  }
  best = [
      setting
      for (_, correction), method in methods.items()
      if correction != 'none'
      for setting in candidates(method)
  ]
  gain = spec.Quantity('relative gain', '%', relation='gain')
  cells = [
      spec.Cell(task, 'FedAvg', candidates(settings.FEDAVG)),
      spec.Cell(task, 'server-only Adam', candidates(server_adam)),
      spec.Cell(task, 'best proposed', best),
  ]
  cells += [
      spec.Cell(
          task,
          f'best proposed over {name}',
          best,
          panel='Gain',
          quantity=gain,
          baseline=candidates(baseline),
      )
      for name, baseline in (
          ('server Adam', server_adam),
          ('FedAvg', settings.FEDAVG),
      )
  ]
  cells += [
      spec.Cell(
          f'client {client}',
          column,
          candidates(methods[client, correction]),
          panel='Server Adam',
      )
      for client in ('AdaGrad', 'Adam', 'Yogi')
      for column, correction in _CORRECTIONS.items()
  ]
  quantity = _bytes('communication over no correction')
  cells += [
      spec.Cell(
          'communication',
          column,
          candidates(methods['Adam', correction])[:1],
          panel='Communication',
          quantity=quantity,
          baseline=candidates(methods['Adam', 'none'])[:1],
      )
      for column, correction in _CORRECTIONS.items()
      if correction != 'none'
  ]
  return cells


_FIGURE2 = source.published('Local Adaptivity, Figure 2')
_FIGURE3 = source.published('Local Adaptivity, Figure 3')


def curves(profile, form):
  """Figure 2: curves with 1 and 5 local epochs."""
  task = 'SO NWP'
  cells = []
  for epochs in (1, 5):
    changes = {'local_epochs': epochs, 'sources': {'local_epochs': _FIGURE2}}
    if epochs == 5 and profile == 'quick':
      changes['rounds'] = 15
      changes['sources']['rounds'] = source.REDUCED
    cells += [
        spec.Cell(
            f'{task}, local epochs: {epochs}',
            column,
            settings.candidates(profile, form, task, method, **changes),
        )
        for column, method in TABLE1.items()
    ]
  one_epoch = functools.partial(
      settings.candidates,
      profile,
      form,
      task,
      local_epochs=1,
      sources={'local_epochs': _FIGURE2},
  )
  target = 0.1 if profile == 'small' else 0.2
  speedup = spec.Quantity(
      f'speed-up to {100 * target:g}% validation accuracy',
      'x',
      reduction=reductions.RoundsTo(target),
      relation='speedup',
      source=source.REDUCED if profile == 'small' else _FIGURE2,
  )
  cells.append(
      spec.Cell(
          task,
          f'both AdaGrad over {_SERVER_ONLY}',
          one_epoch(settings.BOTH),
          panel='Speed-up',
          quantity=speedup,
          baseline=one_epoch(settings.SERVER_ONLY),
      )
  )
  return cells


def lr_grid(profile, form):
  """Figure 3: 28 pairs of rates, and how many of them work."""
  # The published figure is on SO NWP, where 56 runs take hours.
  task, metric, least = {
      'quick': ('SO TP', 'recall@5', 50),
      'small': ('SO TP', 'recall@5', 30),
      'paper': ('SO NWP', 'accuracy', 20),
  }[profile]
  changes = {}
  if profile == 'quick':
    changes = {
        'rounds': 10,
        'evaluate_every': 5,
        'sources': dict.fromkeys(('rounds', 'evaluate_every'), source.REDUCED),
    }
  clients, servers = settings.PAIRS[task]
  cells = []
  counts = []
  quantity = spec.Quantity(
      f'pairs with test {metric} >= {least}%',
      'count',
      at_least=least,
      decimals=0,
      source=_FIGURE3 if profile == 'paper' else source.REDUCED,
  )
  for column, method in (
      (_SERVER_ONLY, settings.SERVER_ONLY),
      ('both AdaGrad', settings.BOTH),
  ):
    grid = {
        (client, server): settings.setting(
            profile,
            form,
            task,
            method,
            client,
            server,
            rates=source.guessed(
                '28 pairs as published, which ones is unknown'
            ),
            **changes,
        )
        for server in reversed(servers)
        for client in clients
    }
    cells += [
        spec.Cell(
            f'{server:g}', f'{client:g}', [setting], panel=f'{task}, {column}'
        )
        for (client, server), setting in grid.items()
    ]
    counts.append(
        spec.Cell(
            task,
            column,
            list(grid.values()),
            panel=quantity.name,
            quantity=quantity,
        )
    )
  return cells + counts


def sync(profile, form):
  """Client states restarted or synchronised."""
  task = 'Shakespeare NCP'
  candidates = functools.partial(settings.candidates, profile, form, task)
  synchronised = candidates(settings.SYNCHRONISED)
  restarted = candidates(settings.BOTH)
  column = 'client states synchronised'
  sent = _bytes('communication over restart')

  def adam(client_state):
    """Two states a client in place of one; a round tells what is sent."""
    method = settings.Method('AdaGrad', 'Adam', client_state=client_state)
    return settings.setting(
        profile,
        form,
        task,
        method,
        0.0,
        0.0,
        rates=source.guessed('what is sent does not depend on them'),
        rounds=1,
        sources={'rounds': source.guessed('one round tells what is sent')},
    )

  return [
      spec.Cell(task, _RESTART, restarted),
      spec.Cell(task, column, synchronised),
      spec.Cell(
          'communication',
          column,
          synchronised[:1],
          quantity=sent,
          baseline=restarted[:1],
      ),
      spec.Cell(
          'communication',
          'client Adam, states synchronised',
          [adam('sync')],
          quantity=sent,
          baseline=[adam('restart')],
      ),
  ]
