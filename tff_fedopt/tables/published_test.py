"""The published numbers: all there, and the right ones."""

import collections

import pytest

import tasks
from tff_fedopt.tables import published


def _value(table, row, column, metric=None):
  [number] = [
      n
      for n in published.load()
      if (n.table, n.row, n.column) == (table, row, column)
      and metric in (None, n.metric)
  ]
  return number


def test_all_numbers_are_there():
  counts = collections.Counter(n.table for n in published.load())
  assert sum(counts.values()) == 337
  assert counts == {
      'afo_main': 35,
      'afo_lr_decay': 16,
      'la_table1': 6,
      'la_table2': 2,
      'la_table3': 6,
      'la_lr_grid': 2,
      'la_curves': 1,
      'la_sync': 4,
      'la_cifar100': 3,
      'init_table4': 59,
      'init_table5': 57,
      'init_table6': 48,
      'init_table7': 28,
      'init_table8': 56,
      'init_table9': 14,
  }


@pytest.mark.parametrize(
    'table,row,column,metric,value,std,unit',
    [
        ('afo_main', 'SO LR', 'FedAdagrad', None, 67.1, None, 'x100'),
        ('afo_main', 'EMNIST AE', 'FedYogi', None, 0.98, None, 'x1000'),
        ('afo_main', 'CIFAR-100', 'FedAvg', None, 44.7, None, '%'),
        ('afo_lr_decay', 'Centralized', 'FedAdam', None, 87.9, None, '%'),
        ('afo_lr_decay', 'ExpDecay', 'FedAvgM', None, 85.8, None, '%'),
        (
            'init_table5',
            'ResNet-18-GN FedInit',
            '5%-200 Dir-0.1',
            None,
            43.77,
            0.36,
            '%',
        ),
        ('init_table6', 'FedDyn+RI', '10%-100 Dir-0.6', None, 81.91, None, '%'),
        (
            'init_table8',
            'block 1',
            'FedInit',
            'rounds to target',
            172,
            None,
            'rounds',
        ),
        ('la_table3', 'SO NWP', 'FedAvg', None, 14.19, None, '%'),
        (
            'la_sync',
            'Shakespeare NCP',
            'both AdaGrad, restart',
            None,
            57.85,
            None,
            '%',
        ),
        (
            'init_table4',
            'ResNet-18-GN FedInit over FedAvg',
            '10%-100 Dir-0.1',
            None,
            3.42,
            None,
            '%',
        ),
    ],
)
def test_spot_values(table, row, column, metric, value, std, unit):
  number = _value(table, row, column, metric)
  assert (number.value, number.std, number.unit) == (value, std, unit)


def test_every_number_has_a_source():
  assert all('arXiv:' in n.source for n in published.load())


def test_wrong_columns_are_refused(tmp_path):
  path = tmp_path / 'paper.csv'
  path.write_text('table,row\nafo_main,CIFAR-10\n')
  with pytest.raises(ValueError, match='columns must be'):
    published.load(path)


def test_double_rows_are_refused(tmp_path):
  path = tmp_path / 'paper.csv'
  row = 'afo_main,CIFAR-10,FedAvg,accuracy,%,72.8,,source,\n'
  path.write_text(','.join(published.FIELDS) + '\n' + row + row)
  with pytest.raises(ValueError, match='two rows have the same'):
    published.load(path)


def _file(tmp_path, unit, value='0.721', std=''):
  path = tmp_path / 'paper.csv'
  row = f'afo_main,CIFAR-10,FedAvg,accuracy,{unit},{value},{std},source,\n'
  path.write_text(','.join(published.FIELDS) + '\n' + row)
  return path


@pytest.mark.parametrize(
    'unit,value,std,message',
    [
        ('', '72.1', '', 'line 2: no unit; expected one'),
        ('%', '', '', "line 2: value '', std ''; expected numbers"),
        ('%', '72.1', 'none', "line 2: value '72.1', std 'none'; expected"),
    ],
)
def test_rows_without_unit_or_number_are_refused(
    tmp_path, unit, value, std, message
):
  with pytest.raises(ValueError, match=message):
    published.load(_file(tmp_path, unit, value, std))


def test_another_unit_is_refused(tmp_path):
  cell = ('afo_main', 'CIFAR-10', 'FedAvg', None)
  units = published.units(tasks.info('cifar10').metric)
  path = _file(tmp_path, 'fraction')
  with pytest.raises(ValueError, match="is in 'fraction'; expected % or x100"):
    published.find(*cell, units, path)
  assert published.find(*cell, units).unit == '%'
