"""The tables and figures of FedInit (relaxed initialisation)."""

import functools

from tff_fedopt.papers import scales
from tff_fedopt.papers.fedinit import cells
from tff_fedopt.papers.fedinit import settings
from tff_fedopt.papers.fedinit import theory
from tff_fedopt.tables import spec

_CITATION = 'FedInit (arXiv:2604.12768)'
_THREE_SEEDS = {**settings.SEEDS, 'quick': (0, 1, 2)}


def _estimates(quick):
  # A run takes a minute in quick (two on CIFAR-100), a quarter of an hour in
  # small. Tables 4, 6, 7 and 8 share runs.
  return {'quick': quick, 'small': 'hours', 'paper': 'months'}


_FORM_NOTE = (
    "form=code: as in FL-Simulator, the authors' code: the relaxation's offset"
    ' is left out of the average, Δ is over the cohort, decay is added to the'
    ' clipped gradient, each client takes part with the same probability.'
    ' --form=paper follows the algorithm box, with cohorts of a fixed size.'
)
_NOISE_NOTE = (
    f'Noise of clients and of classes, standard deviation {settings.NOISE:g}'
    ' each: the paper has both but gives no strengths, its code has neither.'
)
_SMOOTH_NOTE = (
    'Reduction: mean of the latest evaluations, then the maximum over the last'
    ' rounds; the published filter is unknown.'
)
_SHORT_NOTE = (
    'quick and small: fewer clients, half of whom take part in a round, and'
    ' fewer local steps, whatever the column says of clients; see --settings.'
)
_NOTES = (_FORM_NOTE, _NOISE_NOTE, _SMOOTH_NOTE, _SHORT_NOTE)

_table = functools.partial(
    spec.TableSpec,
    paper='fedinit',
    form='code',
    reduction=settings.SMOOTHED,
    kind='table',
    row_header='Method',
    column_header='Clients and labels',
    seeds=settings.SEEDS,
    sources=settings.OF_TABLES,
    notes=_NOTES,
)
_theory = functools.partial(
    _table,
    kind='measured',
    forms=('code',),
    row_header='Quantity',
    column_header='Setting',
    reduction=scales.in_every_profile(None),
    seeds=scales.in_every_profile((0,)),
)

TABLES = (
    _table(
        id='init_table4',
        estimates=_estimates('14 min'),
        title='Seven methods on CIFAR-10, ResNet-18-GN and VGG-11',
        citation=f'{_CITATION}, Table 4',
        shows='FedInit, FedAvg but for the start, beats methods that cost more',
        build=functools.partial(cells.accuracies, 'cifar10'),
    ),
    _table(
        id='init_table5',
        estimates=_estimates('8 min'),
        title='Seven methods on CIFAR-100, ResNet-18-GN and VGG-11',
        citation=f'{_CITATION}, Table 5',
        shows='the same on 100 classes',
        build=functools.partial(cells.accuracies, 'cifar100'),
    ),
    _table(
        id='init_table6',
        estimates=_estimates('8 min'),
        title='Relaxed initialisation (RI) added to six methods',
        citation=f'{_CITATION}, Table 6',
        shows='relaxed initialisation helps FedAvg, FedAdam, FedSAM, SCAFFOLD',
        build=cells.table6,
        check_rows=('FedAvg', 'FedAvg+RI'),
    ),
    _table(
        id='init_table7',
        estimates=_estimates('8 min'),
        title='Seconds a round, and relative to FedAvg',
        citation=f'{_CITATION}, Table 7',
        shows='FedInit costs little more than FedAvg',
        row_header='Clients',
        column_header='Method',
        build=cells.table7,
        notes=(
            'Wall clock: whole rounds with the evaluation of the round, as the'
            ' authors\' code measures them, mean over the rounds that are'
            ' evaluated (in paper all). Training: without it, median over all'
            ' rounds. Client state in files is part of both. Ratios are those'
            ' of these runs on this machine; use --jobs=1 on one that does'
            ' nothing else.',
            f'Labels: {cells.LABELS_OF_TIMES} for both shares, of which the'
            ' paper says nothing.',
            *_NOTES,
        ),
    ),
    _table(
        id='init_table8',
        estimates=_estimates('8 min'),
        title='Rounds and time to a target accuracy',
        citation=f'{_CITATION}, Table 8',
        shows='FedInit is early at a target, above all in time',
        row_header='Target',
        column_header='Method',
        build=cells.table8,
        notes=(
            'Targets of block 1 and 2: '
            + '; '.join(
                f'{profile} {100 * one:g} and {100 * two:g} %'
                for profile, (one, two) in cells.TARGETS.items()
            )
            + '. The published ones are unknown. Speed ratios are FedAvg over'
            ' the method. Accuracy is smoothed before the target is looked for,'
            ' as in Table 4; time is of whole rounds, as in Table 7.',
            *_NOTES,
        ),
    ),
    _table(
        id='init_table9',
        title='Communication and storage, in models',
        citation=f'{_CITATION}, Table 9',
        shows='what each method sends in a round and keeps at clients',
        kind='measured',
        column_header='Cost',
        build=cells.table9,
        seeds=scales.seeds(0),
        reduction=scales.in_every_profile(None),
        estimates=scales.in_every_profile('2 min'),
        notes=(
            'communication: the larger direction, which is how the paper counts'
            ' FedCM (it sends two models down and one up).',
            'storage: what stays in a client\'s files between rounds. The paper'
            ' counts the model in training and its buffers as well, so that'
            ' FedAvg has 1 there and 0 here.',
        ),
    ),
    _table(
        id='init_fig1',
        estimates=_estimates('6 min'),
        title='FedInit against local epochs K and relaxation β',
        citation=f'{_CITATION}, Figure 1',
        shows='accuracy is stable for small positive β and falls beyond',
        kind='sensitivity',
        row_header='Labels',
        column_header='Value',
        build=cells.fig1,
        notes=(
            'The published values of K are unknown. small: panel (a) goes'
            ' through whole local epochs, panel (b) through 5 local steps.',
            *_NOTES,
        ),
    ),
    _table(
        id='init_fig2',
        estimates=_estimates('12 min'),
        title='Accuracy and consistency Δ for several β',
        citation=f'{_CITATION}, Figure 2',
        shows='a positive β lowers Δ and raises accuracy, a negative one not',
        kind='curves',
        row_header='Quantity',
        column_header='Relaxation',
        build=cells.fig2,
        seeds=_THREE_SEEDS,
        notes=(
            'β=0 is the method without relaxation. Δ is averaged over the last'
            ' rounds. Gains over β=0 are of runs with the same seed.',
            f'quick has client rate {settings.SLOW:g}, and form=paper beside'
            ' form=code: where the offset stays in the average, few rounds'
            ' suffice to see what it does.',
            *_NOTES,
        ),
        check_rows=('accuracy', 'consistency Δ'),
    ),
    _theory(
        id='init_toy',
        title='Δ and the distance to the optimum over β, without noise',
        citation=f'{_CITATION}, Sections 3.2, 5.3 and 5.4, on a toy problem',
        shows='Δ falls with β up to a bound beyond which training diverges',
        build=theory.toy,
        estimates=scales.in_every_profile('10 s'),
        notes=theory.TOY_NOTES,
        check_rows=('Claims',),
    ),
    _theory(
        id='init_theory',
        title='What the theorems say of Δ, gradients and stability',
        citation=f'{_CITATION}, Theorems 1 to 19, equation (10), Remarks',
        shows=(
            'Δ falls with the client rate and rises with K; where clients share'
            ' a minimiser it vanishes'
        ),
        build=theory.cells,
        estimates=scales.in_every_profile('2 min'),
        notes=theory.NOTES,
        check_rows=('Claims',),
    ),
)
