"""The tables and figures of Local Adaptivity."""

import functools

from tff_fedopt.papers import scales
from tff_fedopt.papers.afo import settings as afo_settings
from tff_fedopt.papers.local_adaptivity import cells
from tff_fedopt.papers.local_adaptivity import settings
from tff_fedopt.papers.local_adaptivity import theory
from tff_fedopt.papers.local_adaptivity import toy
from tff_fedopt.tables import spec

_CITATION = (
    'Wang et al., Local Adaptivity in Federated Learning: Convergence and'
    ' Consistency, arXiv:2106.02305'
)

_RATE_NOTE = (
    'The published rates, ε, accumulators, cohorts and (but for CIFAR-100)'
    ' rounds are unknown: lengths and cohorts are those of Adaptive Federated'
    ' Optimization, and so are rates and τ where clients run SGD; else they are'
    ' ours.'
)
_FORM_NOTE = (
    'form=code: N_i by the recursion of the published code, without η_l;'
    ' servers and clients with bias correction in Adam and Yogi. --form=paper:'
    ' N_i exactly, no bias correction.'
)
_SERVER_NOTE = (
    "Server: the best of Adaptive Federated Optimization's on each task: "
    + ', '.join(f'{s} on {t}' for t, s in settings.BEST_SERVERS.items())
    + '.'
)
_NOTES = (_RATE_NOTE, _FORM_NOTE)

_table = functools.partial(
    spec.TableSpec,
    paper='local_adaptivity',
    kind='table',
    form='code',
    row_header='Task',
    column_header='Method',
    reduction=afo_settings.LAST,
    seeds=afo_settings.SEEDS,
    sources=settings.OF_TABLES,
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
        build=cells.method_table(settings.LANGUAGE, cells.TABLE1),
        estimates={'quick': '8 min', 'small': 'days', 'paper': 'months'},
    ),
    _table(
        id='la_table2',
        title='Client AdaGrad with correction of its bias',
        citation=f'{_CITATION}, Table 2',
        shows='with correction, client AdaGrad beats the best server alone',
        build=cells.table2,
        estimates={'quick': '8 min', 'small': 'hours', 'paper': 'months'},
        notes=(_SERVER_NOTE, *_NOTES),
    ),
    _table(
        id='la_table3',
        title='Server Adam with adaptive clients on SO NWP',
        citation=f'{_CITATION}, Table 3',
        shows='correction works for AdaGrad, Adam and Yogi at the clients',
        build=cells.table3,
        estimates={'quick': '8 min', 'small': 'days', 'paper': 'months'},
        notes=(*_NOTES, spec.TUNE_NOTE),
    ),
    _table(
        id='la_curves',
        title='Training curves with 1 and 5 local epochs',
        citation=f'{_CITATION}, Figure 2',
        shows='client AdaGrad is faster, and more so with more local epochs',
        kind='curves',
        build=cells.curves,
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
        build=cells.lr_grid,
        estimates={'quick': '8 min', 'small': 'days', 'paper': 'months'},
    ),
    _table(
        id='la_sync',
        title='Client AdaGrad restarted or synchronised',
        citation=f'{_CITATION}, text of the experiments',
        shows='synchronising client states costs more and does not help',
        build=cells.sync,
        estimates={'quick': '2 min', 'small': 'hours', 'paper': 'weeks'},
    ),
    _table(
        id='la_cifar100',
        title='Client AdaGrad on CIFAR-100, with and without correction',
        citation=f'{_CITATION}, text of the experiments',
        shows='without correction client AdaGrad loses, with it it gains',
        build=cells.method_table(('CIFAR-100',), cells.CIFAR100),
        estimates={'quick': '3 min', 'small': 'hours', 'paper': 'weeks'},
    ),
    _table(
        id='la_theory',
        title='Fixed points and contraction on quadratic clients',
        citation=f'{_CITATION}, Sections 4 and 5, Appendices B.4 and F',
        shows=(
            'unequal steps or preconditioners leave a bias that no rate'
            ' removes; a correction leaves one in proportion to the rate'
        ),
        kind='measured',
        forms=('code',),
        row_header='Quantity',
        column_header='Setting',
        build=theory.cells,
        reduction=scales.in_every_profile(None),
        seeds=scales.in_every_profile((0,)),
        estimates=scales.in_every_profile('2 min'),
        notes=theory.NOTES,
        check_rows=('Claims',),
    ),
)
