"""The tables and figures of Local Adaptivity (LA)."""

import functools

from tff_fedopt.papers import scales
from tff_fedopt.papers.local_adaptivity import settings
from tff_fedopt.papers.local_adaptivity import toy
from tff_fedopt.tables import spec

_CITATION = (
    'Wang et al., Local Adaptivity in Federated Learning: Convergence and'
    ' Consistency, arXiv:2106.02305'
)

_RATE_NOTE = (
    'The published rates, ε, accumulators, cohorts and (but for CIFAR-100)'
    ' rounds are unknown: lengths and cohorts are those of Adaptive Federated'
    ' Optimization, rates are ours, τ and ε 10^-3, client accumulators start'
    ' at 0.1 (AdaGrad), 0 (Adam), 1 (Yogi).'
)
_FORM_NOTE = (
    'form=code: N_i by the recursion of the published code, without η_l;'
    ' servers and clients with bias correction in Adam and Yogi. --form=paper:'
    ' N_i exactly, no bias correction, β₂ of the server 0.99.'
)
_NOTES = (_RATE_NOTE, _FORM_NOTE)


def _method_table(rows, columns):
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
_TABLE1 = {
    'FedAvg': settings.FEDAVG,
    'client-only AdaGrad': settings.CLIENT_ONLY,
    _SERVER_ONLY: settings.SERVER_ONLY,
    _RESTART: settings.BOTH,
}
_TABLE2 = {
    _SERVER_ONLY: settings.SERVER_ONLY,
    _RESTART: settings.BOTH,
    'both AdaGrad, local correction': settings.BOTH_LOCAL,
    'both AdaGrad, global correction': settings.BOTH_GLOBAL,
}
_CIFAR100 = {
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


def _bytes(name):
  return spec.Quantity(
      name,
      'x',
      column='bytes_total',
      reduction='last:1',
      higher_is_better=False,
      relation='ratio',
      decimals=2,
      tolerance=1e-6,
  )


def _table3(profile, form):
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


def _curves(profile, form):
  task = 'SO NWP'
  cells = []
  for epochs in (1, 5):
    changes = {'local_epochs': epochs}
    if epochs == 5 and profile == 'quick':
      changes['rounds'] = 15
    cells += [
        spec.Cell(
            f'{task}, local epochs: {epochs}',
            column,
            settings.candidates(profile, form, task, method, **changes),
        )
        for column, method in _TABLE1.items()
    ]
  target = 0.1 if profile == 'small' else 0.2
  speedup = spec.Quantity(
      f'speed-up to {100 * target:g}% validation accuracy',
      'x',
      reduction=f'rounds_to:{target:g}',
      relation='speedup',
  )
  cells.append(
      spec.Cell(
          task,
          f'both AdaGrad over {_SERVER_ONLY}',
          settings.candidates(
              profile, form, task, settings.BOTH, local_epochs=1
          ),
          panel='Speed-up',
          quantity=speedup,
          baseline=settings.candidates(
              profile, form, task, settings.SERVER_ONLY, local_epochs=1
          ),
      )
  )
  return cells


def _lr_grid(profile, form):
  # The published figure is on SO NWP, where 56 runs take hours.
  task, metric, least = {
      'quick': ('SO TP', 'recall@5', 50),
      'small': ('SO TP', 'recall@5', 30),
      'paper': ('SO NWP', 'accuracy', 20),
  }[profile]
  changes = {'rounds': 10, 'evaluate_every': 5} if profile == 'quick' else {}
  clients, servers = settings.GRIDS[task]
  cells = []
  counts = []
  quantity = spec.Quantity(
      f'pairs with test {metric} >= {least}%',
      'count',
      at_least=least,
      decimals=0,
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
            source='grid',
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


def _sync(profile, form):
  task = 'Shakespeare NCP'
  candidates = functools.partial(settings.candidates, profile, form, task)
  synchronised = candidates(settings.SYNCHRONISED)
  restarted = candidates(settings.BOTH)
  column = 'client states synchronised'
  return [
      spec.Cell(task, _RESTART, restarted),
      spec.Cell(task, column, synchronised),
      spec.Cell(
          'communication',
          column,
          synchronised[:1],
          quantity=_bytes('communication over restart'),
          baseline=restarted[:1],
      ),
  ]


_table = functools.partial(
    spec.TableSpec,
    paper='LA',
    kind='table',
    form='code',
    row_header='Task',
    column_header='Method',
    reduction=scales.LAST,
    seeds=scales.ONE_SEED,
    notes=_NOTES,
)

TABLES = (
    _table(
        id='la_toy',
        title='Quadratic clients: distance to the optimum by round',
        citation=f'{_CITATION}, Figure 1 (our own problem: its is unknown)',
        shows=(
            'restarted AdaGrad is fast at first, but ends beside the optimum,'
            ' however small its rate; a correction removes that bias'
        ),
        kind='measured',
        row_header='Quantity',
        build=toy.cells,
        estimates=scales.in_every_profile('1 min'),
        notes=(
            '2 clients, H = diag(10, 0.1) and diag(4, 0.4), minimisers (1, 1)'
            ' and (−1, −1), start (3, 3), 10 local steps, gradients without'
            ' noise; server rate 1, with local correction 0.2; AdaGrad with'
            ' accumulator 0 and ε = 10^-6. ∞: not reached.',
        ),
        check_rows=('To distance 1',),
        figures={'surface': toy.surface},
    ),
    _table(
        id='la_table1',
        title='AdaGrad at the server, at the clients, at both',
        citation=f'{_CITATION}, Table 1',
        shows='client AdaGrad helps, but not on every task without correction',
        build=_method_table(settings.LANGUAGE, _TABLE1),
        estimates={'quick': '8 min', 'small': 'days', 'paper': 'months'},
    ),
    _table(
        id='la_table2',
        title='Client AdaGrad with correction of its bias',
        citation=f'{_CITATION}, Table 2',
        shows='with correction, client AdaGrad beats server-only AdaGrad',
        build=_method_table(settings.LANGUAGE, _TABLE2),
        estimates={'quick': '8 min', 'small': 'hours', 'paper': 'months'},
    ),
    _table(
        id='la_table3',
        title='Server Adam with adaptive clients on SO NWP',
        citation=f'{_CITATION}, Table 3',
        shows='correction works for AdaGrad, Adam and Yogi at the clients',
        build=_table3,
        estimates={'quick': '8 min', 'small': 'days', 'paper': 'months'},
        notes=(*_NOTES, spec.TUNE_NOTE),
    ),
    _table(
        id='la_curves',
        title='Training curves with 1 and 5 local epochs',
        citation=f'{_CITATION}, Figure 2',
        shows='client AdaGrad is faster, and more so with more local epochs',
        kind='curves',
        build=_curves,
        estimates={'quick': '8 min', 'small': 'days', 'paper': 'months'},
    ),
    _table(
        id='la_lr_grid',
        title='28 pairs of rates, server-only and both AdaGrad',
        citation=f'{_CITATION}, Figure 3',
        shows='more pairs of rates work with client AdaGrad',
        kind='heatmap',
        row_header='log10 server rate',
        column_header='log10 client rate',
        build=_lr_grid,
        estimates={'quick': '8 min', 'small': 'days', 'paper': 'months'},
    ),
    _table(
        id='la_sync',
        title='Client AdaGrad restarted or synchronised',
        citation=f'{_CITATION}, text of the experiments',
        shows='synchronising client states costs more and does not help',
        build=_sync,
        estimates={'quick': '2 min', 'small': 'hours', 'paper': 'weeks'},
    ),
    _table(
        id='la_cifar100',
        title='Client AdaGrad on CIFAR-100, with and without correction',
        citation=f'{_CITATION}, text of the experiments',
        shows='without correction client AdaGrad loses, with it it gains',
        build=_method_table(('CIFAR-100',), _CIFAR100),
        estimates={'quick': '3 min', 'small': 'hours', 'paper': 'weeks'},
    ),
)
