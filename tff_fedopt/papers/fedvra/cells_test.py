"""What FedVRA's table of uneven sampling plans."""

import numpy as np
import pytest

import tasks
from tff_fedopt import papers
from tff_fedopt.experiment import participation
from tff_fedopt.tables import plan as plan_lib


def _runs(profile):
  planned = plan_lib.plan(
      papers.get('vra_sampling'),
      plan_lib.Options(profile=profile, rows=['Accuracy']),
  )
  return {(c.cell.row, c.cell.column): c.runs[0] for c in planned}


@pytest.mark.parametrize('profile', ['quick', 'small', 'paper'])
def test_sampling_is_all_that_rows_differ_in(profile):
  runs = _runs(profile)
  columns = {column for _, column in runs}
  for column in columns:
    even, uneven = (
        runs[row, column].settings() for row in ('equal', 'unequal')
    )
    differ = {k for k in even if even[k] != uneven.get(k)}
    own = {'per_client'} if column.endswith('d = 1/p') else set()
    assert differ == {'participation'} | own
  weights = runs['unequal', 'FedAvg'].participation.weights
  assert len(weights) == runs['unequal', 'FedAvg'].task_options['clients']
  assert max(weights.values()) / min(weights.values()) == pytest.approx(10)


@pytest.mark.parametrize('profile', ['quick', 'small', 'paper'])
def test_steps_are_one_over_the_probability(profile):
  runs = _runs(profile)
  run = runs['unequal', 'FedVRA, d = 1/p']
  weights = run.participation.weights
  chances = participation.probabilities(
      np.array(list(weights.values())), run.cohort_size
  )
  steps = run.hyperparameters.per_client.values['aggregation_step']
  assert list(steps) == list(weights)
  np.testing.assert_allclose(1 / chances, list(steps.values()), rtol=1e-3)
  # Where all are equal that is N/m.
  even = runs['equal', 'FedVRA, d = 1/p']
  common = even.hyperparameters.aggregation_step
  assert common.number == len(weights) / run.cohort_size


def test_listed_clients_are_the_tasks():
  run = _runs('quick')['unequal', 'FedAvg']
  task = tasks.load(run.task, profile='quick', **run.task_options)
  assert set(run.participation.weights) == set(task.train.client_ids)
