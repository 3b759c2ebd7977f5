"""The tables and figures of Adaptive Federated Optimization (AFO)."""

import functools

from tasks import source
from tff_fedopt.papers import scales
from tff_fedopt.papers.afo import cells
from tff_fedopt.papers.afo import figures
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
        id='afo_test',
        title='Stack Overflow: the whole test split after the last round',
        citation=f'{_CITATION}, appendix E.2',
        shows=(
            'the order of the methods on validation data is that on test data'
        ),
        kind='table',
        row_header='Task',
        column_header='Method',
        build=cells.test_sets,
        bold_within=0.005,
        estimates={'quick': '3 min', 'small': 'hours', 'paper': 'weeks'},
        notes=(
            _FORM_NOTE,
            _WEIGHT_NOTE,
            (
                'Evaluated once, on every example of the test split; afo_main'
                ' has means of the last rounds on a part of it. The published'
                ' numbers could not be verified and are left out.'
            ),
        ),
        check_rows=('SO LR',),
    ),
    _table(
        id='afo_rate_relation',
        title='The best server rate for each client rate',
        citation=f'{_CITATION}, appendices E.3 and E.4',
        shows=(
            'the larger the client rate, the smaller the best server rate, the'
            ' less so the more adaptive the server'
        ),
        kind='heatmap',
        row_header='log10 server rate, or method',
        column_header='log10 client rate, or measure',
        build=cells.rate_relation,
        estimates={'quick': '5 min', 'small': 'days', 'paper': 'months'},
        notes=(
            _FORM_NOTE,
            _WEIGHT_NOTE,
            (
                'Best: by the validation metric. Slope: decades of'
                ' the best server rate by a decade of the client rate, least'
                ' squares over the client rates; −1 if only the product η η_l'
                ' matters, 0 if only η does. Good pairs: the part of the grid'
                ' with 0.8 of its best or more. Fall: how much of the best'
                ' number is lost at the worst pair of the same η η_l (of the'
                ' same η) as the best pair; 0 is flat, 1 all.'
            ),
        ),
        check_rows=('SO LR, measures',),
        figures={'relation': figures.relation},
    ),
    _table(
        id='afo_curves',
        title='Curves of seven tasks, five server optimizers and SCAFFOLD',
        citation=(
            f'{_CITATION}, training curves of the main text and appendix E'
        ),
        shows='adaptive servers learn faster from the first rounds on',
        kind='curves',
        row_header='Task',
        column_header='Method',
        build=cells.curves,
        seeds={'quick': (0, 1), 'small': (0, 1, 2), 'paper': (1, 2, 3)},
        sources={
            **settings.OF_TABLES,
            'seeds': source.guessed('more than one, for the spread'),
        },
        estimates={'quick': '20 min', 'small': 'days', 'paper': 'months'},
        notes=(
            _FORM_NOTE,
            _WEIGHT_NOTE,
            _SCAFFOLD_NOTE,
            (
                'Bands: one standard deviation over seeds; the published curves'
                ' are of one run. Speed-up: rounds of FedAvg over those of the'
                ' method to about 0.8 of the metric that FedAvg ends with, of'
                ' the published one in paper.'
            ),
        ),
        check_rows=('SO LR',),
    ),
    _table(
        id='afo_schedules',
        title='Schedules of the client rate on EMNIST CR',
        citation=f'{_CITATION}, appendix E.6, and the discussion of Theorem 1',
        shows=(
            'a client rate must fall for the last bit of accuracy, as 1/√t in'
            ' theory, in steps in practice; a server rate need not'
        ),
        kind='curves',
        row_header='Method',
        column_header='Client rate',
        build=cells.schedules,
        estimates={'quick': '6 min', 'small': 'hours', 'paper': 'weeks'},
        notes=(
            _FORM_NOTE,
            spec.TUNE_NOTE,
            (
                'InvSqrt: η_l / √(1 + t), its first rate the best of the tuned'
                ' constant one times 1, √10, 10; ExpDecay: a tenth after each'
                ' third of the rounds. Server rates are constant: the paper'
                ' says that they need not fall.'
            ),
        ),
        check_rows=('FedAvg',),
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
        check_rows=('Claims',),
    ),
)
