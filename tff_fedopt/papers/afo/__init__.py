"""The tables and figures of Adaptive Federated Optimization (AFO)."""

import functools

from tff_fedopt.papers import scales
from tff_fedopt.papers.afo import cells
from tff_fedopt.papers.afo import settings
from tff_fedopt.papers.afo import theory
from tff_fedopt.tables import spec

_CITATION = (
    'Reddi et al., Adaptive Federated Optimization, ICLR 2021,'
    ' arXiv:2003.00295'
)

_FORM_NOTE = (
    "form=code: the published rates were tuned with the authors' code, so the"
    ' adaptive servers follow it in second-moment decay, in where accumulators'
    ' start, and in the bias correction of Adam and Yogi. --form=paper follows'
    ' Algorithm 2.'
)
_SCAFFOLD_NOTE = (
    'SCAFFOLD: option II, clients weighted equally, with the rates of FedAvg;'
    ' its own rates and its numbers are not published.'
)
_WEIGHT_NOTE = (
    'Clients are weighted by their examples; on Shakespeare and SO NWP by'
    ' their tokens that are not padding.'
)

_table = functools.partial(
    spec.TableSpec,
    paper='afo',
    form='code',
    reduction=settings.LAST,
    seeds=settings.SEEDS,
    sources=settings.OF_TABLES,
)

TABLES = (
    _table(
        id='afo_main',
        title='Seven tasks, five server optimizers and SCAFFOLD',
        citation=f'{_CITATION}, main results table',
        shows=(
            'adaptive servers match or beat FedAvg and FedAvgM, by far on'
            ' Stack Overflow'
        ),
        kind='table',
        row_header='Task',
        column_header='Method',
        build=cells.main,
        bold_within=0.005,
        estimates={
            'quick': '10 min',
            'small': 'hours',
            'paper': 'weeks',
        },
        notes=(_FORM_NOTE, _WEIGHT_NOTE, _SCAFFOLD_NOTE),
        check_rows=('SO LR',),
    ),
    _table(
        id='afo_lr_grid',
        title=(
            'Validation metric over client and server rates,'
            f' τ = 10^{cells.MAP_TAU}'
        ),
        citation=f'{_CITATION}, heat maps of the main text and the appendix',
        shows=(
            'which pairs of rates work: a triangle for FedAvg and FedAvgM, a'
            ' rectangle for the adaptive servers'
        ),
        kind='heatmap',
        row_header='log10 server rate',
        column_header='log10 client rate',
        build=cells.lr_grid,
        estimates={'quick': '5 min', 'small': 'days', 'paper': 'months'},
        notes=(_FORM_NOTE, _WEIGHT_NOTE),
    ),
    _table(
        id='afo_tau',
        title='Best validation metric for each τ, rates tuned anew',
        citation=f'{_CITATION}, robustness to τ',
        shows='the adaptive servers hardly depend on τ; 10^-3 is a good choice',
        kind='sensitivity',
        row_header='Method',
        column_header='log10 τ',
        build=cells.tau,
        estimates={'quick': '5 min', 'small': 'days', 'paper': 'months'},
        notes=(_FORM_NOTE, _WEIGHT_NOTE, spec.TUNE_NOTE),
    ),
    _table(
        id='afo_lr_decay',
        title='Client rate decay on EMNIST CR, and centralized training',
        citation=f'{_CITATION}, learning-rate decay table',
        shows='a decaying client rate narrows the gap to centralized training',
        kind='table',
        row_header='Setting',
        column_header='Method',
        build=cells.lr_decay,
        bold_within=0.005,
        estimates={'quick': '5 min', 'small': 'hours', 'paper': 'days'},
        notes=(
            _FORM_NOTE,
            spec.TUNE_NOTE,
            (
                'Centralized: one client holds the pooled data and runs the'
                ' same local loop with the optimizer of the column, whose'
                ' state starts anew each round; a round goes through 10 000'
                ' examples, drawn from all clients.'
            ),
        ),
    ),
    _table(
        id='afo_theory',
        title='Theorems and their corollaries on quadratic clients',
        citation=f'{_CITATION}, Theorems 1 and 2, corollaries, discussion',
        shows=(
            'local steps leave a bias that a falling client rate removes, and'
            ' the error falls with rounds, clients and local steps as bounded'
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
    ),
)
