"""Clients with memory against other people's weights, NumPy, and identities."""

import pytest

from tff_fedopt.algorithms import problems_for_tests as problems

FLSIM = problems.golden('flsimulator')
BEFORE = ('FedAvg', 'FedAdam', 'FedProx')  # Without memory: in fedopt_test.


def simulators_hyperparameters(case):
  """A case's settings in this package's names."""
  theirs = case['hyperparameters']
  method = case['method']
  hp = dict(
      form='code',
      client_learning_rate=theirs['local_learning_rate'],
      server_learning_rate=theirs['global_learning_rate'],
      client_weighting='uniform',
      max_gradient_norm=10.0,
  )
  assert theirs['lr_decay'] == 1 and theirs['weight_decay'] == 0
  if method == 'FedAdam':
    hp.update(
        tau=theirs['epsilon'],
        beta1=theirs['beta1'],
        beta2=theirs['beta2'],
        initial_accumulator=0.0,
        bias_correction=False,
    )
  if theirs['use_RI']:
    hp['relaxation'] = theirs['beta']
  hp.update({
      'FedProx': dict(mu=theirs['lamb']),
      'FedDyn': dict(alpha=theirs['lamb']),
      'FedCM': dict(alpha=theirs['alpha']),
      'FedSAM': dict(rho=theirs['rho']),
  }.get(method, {}))
  return hp


@pytest.mark.parametrize(
    'case',
    [
        c
        for c in FLSIM['cases']
        if c['hyperparameters']['use_RI'] or c['method'] not in BEFORE
    ],
    ids=lambda c: c['id'],
)
def test_matches_fl_simulator(case, tmp_path):
  problem = problems.Problem(FLSIM['problems'][case['problem']], case['dtype'])
  ours = problems.rounds(
      problem,
      [r['cohort'] for r in case['rounds']],
      case['method'].lower(),
      num_clients=len(problem.names),
      state_dir=str(tmp_path),
      **simulators_hyperparameters(case),
  )
  tolerance = 1e-9 if case['dtype'] == 'float64' else 5e-6
  assert problems.distance(ours, [r['weights'] for r in case['rounds']]) < tolerance
