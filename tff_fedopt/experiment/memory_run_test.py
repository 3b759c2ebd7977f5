"""Runs whose clients remember: resuming to the bit, garbage, damage, sweeps."""

import functools
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tff_fedopt import algorithms
from tff_fedopt.experiment import checkpoint
from tff_fedopt.experiment import program
from tff_fedopt.experiment import rounds
from tff_fedopt.experiment import runner
from tff_fedopt.experiment import sampling
from tff_fedopt.experiment import spec as spec_lib
from tff_fedopt.experiment import sweep
from tff_fedopt.processes import client_state
from tff_fedopt.testing import toy

_OPTIONS = runner.RunOptions(checkpoint_every=2, tensorboard=False, test=False)


class PowerCut(Exception):
  """Ends a run without leaving it time to save anything."""


@pytest.fixture(autouse=True)
def _toy_task(monkeypatch):
  toy.install(monkeypatch.setattr)


@pytest.fixture(scope='module', name='programs')
def _programs():
  """Shared by all tests: one process is traced for all runs."""
  return program.Programs()


def _spec(relaxation=0.1):
  return spec_lib.RunSpec(
      'toy',
      'scaffold',
      {'relaxation': relaxation, 'track_consistency': True},
  )


@pytest.fixture(name='run')
def _run(programs):
  return functools.partial(
      runner.run_experiment, _spec(), options=_OPTIONS, programs=programs
  )


@pytest.fixture(scope='module', name='reference')
def _reference(tmp_path_factory, programs):
  """The directory of an uninterrupted run."""
  with pytest.MonkeyPatch.context() as patch:
    toy.install(patch.setattr)
    directory = tmp_path_factory.mktemp('runs') / 'reference'
    runner.run_experiment(
        _spec(), directory, options=_OPTIONS, programs=programs
    )
  return directory


def _at_validation(monkeypatch, round_num, error):
  """Fails while round `round_num` is evaluated."""
  original, calls = toy.Task.validation, []

  def validation(task):
    calls.append(1)
    if len(calls) == round_num:
      raise error
    return original(task)

  monkeypatch.setattr(toy.Task, 'validation', validation)


def _interrupt(monkeypatch, run, directory, round_num, error=KeyboardInterrupt):
  """Begins a run that fails while round `round_num` is evaluated."""
  _at_validation(monkeypatch, round_num, error)
  with pytest.raises(error):
    run(directory)


def _versions(directory):
  """(client, round) of every file that clients wrote."""
  names = (p.name for p in (directory / 'client_state').glob('*/*.index'))
  return sorted((n.split('.')[0], int(n.split('.')[2])) for n in names)


def _assert_same_run(directory, reference):
  metrics = (directory / 'metrics.csv').read_bytes()
  assert metrics == (reference / 'metrics.csv').read_bytes()
  assert _versions(directory) == _versions(reference)
  ours, theirs = (
      checkpoint._read(d / 'checkpoints' / 'round_00000006.ckpt')[1]
      for d in (directory, reference)
  )
  for name in theirs:
    if name != 'client_work/state_dir':
      np.testing.assert_array_equal(ours[name], theirs[name], name)


def test_duals_add_up_however_likely_clients_are(
    tmp_path, programs, monkeypatch
):
  """FedVRA's λ = Σ ω_i λ_i after unequal sampling; c0 comes most often."""
  seen = []
  batches = toy.Clients.dataset_for_client

  def recorded(clients, client_id, seed):
    seen.append(client_id)
    return batches(clients, client_id, seed)

  monkeypatch.setattr(toy.Clients, 'dataset_for_client', recorded)
  spec = spec_lib.RunSpec(
      'toy',
      'fedvra',
      {'gamma': 0.5, 'dual_step': 0.7},
      participation='{"c0": 9, "c2": 3}',
      cohorts='bernoulli',
  )
  runner.run_experiment(spec, tmp_path, options=_OPTIONS, programs=programs)
  likely = [1, 3 / 5, 1 / 5, 1 / 5]  # In the order c0, c2, c1, c3.
  expected = sampling.Cohorts(
      ['c0', 'c1', 'c2', 'c3'],
      2,
      spec.seed,
      1,
      6,
      'bernoulli',
      np.array(likely)[[0, 2, 1, 3]],
  )
  # The first one is looked at for its type, too.
  assert seen[-sum(map(len, expected)):] == sum(expected, [])
  assert 0 < seen.count('c3') < 6
  _, state = checkpoint._read(tmp_path / 'checkpoints' / 'round_00000006.ckpt')
  duals = {}
  for path in sorted(tmp_path.glob('client_state/*/*.index')):
    reader = tf.train.load_checkpoint(str(path).removesuffix('.index'))
    duals[path.name.split('.')[0]] = reader.get_tensor('dual/0')
  assert len(duals) == len(set(seen))
  np.testing.assert_allclose(
      state['aggregator/mean/0'], sum(duals.values()) / 4, atol=1e-6
  )
  assert np.abs(state['aggregator/mean/0']).max() > 1e-3


def test_newest_versions_stay(reference):
  """Of every client that took part one version, of the others nothing."""
  versions = _versions(reference)
  clients = [client for client, _ in versions]
  assert len(set(clients)) == len(clients) <= 4
  # Two clients took part in the last round, which is number 5 from 0.
  assert [t for _, t in versions].count(5) == 2
  assert 'finalizer/consistency' in (reference / 'metrics.csv').read_text()


@pytest.mark.parametrize(
    'error', [PowerCut, KeyboardInterrupt], ids=lambda e: e.__name__
)
def test_interrupted_moved_and_resumed(
    tmp_path, reference, run, monkeypatch, error
):
  """After a power cut in round 6, rounds 5 and 6 are done again."""
  _interrupt(monkeypatch, run, tmp_path / 'here', 6, error)
  there = tmp_path / 'there'
  shutil.move(tmp_path / 'here', there)
  run(there, resume=True)
  assert not (tmp_path / 'here').exists()
  _assert_same_run(there, reference)


def test_before_the_first_checkpoint_nothing_is_kept(
    tmp_path, reference, run, monkeypatch
):
  _interrupt(monkeypatch, run, tmp_path, 2, PowerCut)
  stray = tmp_path / 'client_state' / '0001'
  stray.mkdir()
  (stray / 'YQ.1.0000000000.index').write_bytes(b'of an older attempt')
  run(tmp_path, resume=True)
  _assert_same_run(tmp_path, reference)


def test_a_lost_file_is_no_first_visit(
    tmp_path, reference, run, monkeypatch
):
  _interrupt(monkeypatch, run, tmp_path, 6)
  folder = tmp_path / 'client_state'
  # Written in the last round before the checkpoint, that of number 4 from 0: an
  # older version would be found in its place.
  (stock,) = folder.glob('stock.*.5')
  index = next(folder.glob('*/*.0000000004.index'))
  data = next(index.parent.glob(f'{index.stem}.data-*'))
  for path in (index, data, stock):
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(client_state.ClientStateError) as raised:
      run(tmp_path, resume=True)
    assert f'{path} is missing' in str(raised.value)
    assert 'put it back' in str(raised.value)
    path.write_bytes(content)
  run(tmp_path, resume=True)
  _assert_same_run(tmp_path, reference)


def test_damage_is_one_line_and_nothing_is_lost(
    tmp_path, reference, run, monkeypatch
):
  _interrupt(monkeypatch, run, tmp_path, 4)
  folder = tmp_path / 'client_state'
  whole = {p: p.read_bytes() for p in folder.glob('*/*.data*')}
  for path in whole:
    path.write_bytes(b'')
  with pytest.raises(client_state.ClientStateError) as raised:
    run(tmp_path, resume=True)
  assert 'is damaged or from another program' in str(raised.value)
  assert str(folder) in str(raised.value) and '\n' not in str(raised.value)
  for path, content in whole.items():
    path.write_bytes(content)
  run(tmp_path, resume=True)
  _assert_same_run(tmp_path, reference)


def test_memory_that_is_gone(tmp_path, run, monkeypatch):
  _interrupt(monkeypatch, run, tmp_path, 4)
  shutil.rmtree(tmp_path / 'client_state')
  with pytest.raises(client_state.ClientStateError, match='put it back'):
    run(tmp_path, resume=True)


def test_cells_of_a_sweep_share_a_traced_process(
    tmp_path, reference, programs, monkeypatch
):
  traces = programs.traces
  monkeypatch.setattr(program, 'Programs', lambda: programs)
  one, other, again = sweep.run_all(
      [_spec(0.2), _spec(-0.1), _spec(0.1)],
      tmp_path,
      options=_OPTIONS,
  )
  assert programs.traces == traces
  assert [r.status for r in (one, other, again)] == ['done'] * 3, again.error
  assert not one.frame.equals(other.frame)
  _assert_same_run(again.run_dir, reference)


def test_going_on_from_an_earlier_state(tmp_path):
  """What other clients wrote meanwhile is not there any more."""
  process = algorithms.build(
      'fedinit', toy.LinearModel, relaxation=0.3, state_dir=tmp_path / 'state'
  )
  state_dir = tmp_path / 'copy'

  def ends(state, *cohorts):
    results = rounds.run(
        process, toy.Clients(), cohorts, state=state, start_round=1
    )
    return [r.weights[0] for r in results]

  first = next(iter(rounds.run(process, toy.Clients(), [['c0', 'c1']])))
  shutil.copytree(tmp_path / 'state', state_dir)
  alone = process.with_state_dir(first.state, state_dir)
  expected = ends(alone, ['c2'], ['c0', 'c3'], ['c1', 'c2'])
  ends(first.state, ['c1', 'c3'], ['c0', 'c3'], ['c2', 'c3'])
  again = ends(first.state, ['c2'], ['c0', 'c3'], ['c1', 'c2'])
  np.testing.assert_array_equal(again, expected)


class _NoisyModel(toy.LinearModel):
  """Every training pass uses up randomness, as dropout does."""

  def forward_pass(self, batch_input, training=True):
    output = super().forward_pass(batch_input, training)
    if training:
      self._noise_seed.assign_add([0, 1])
    return output


def test_fedsam_meets_the_same_randomness_twice():
  """So that ρ = 0 is FedAvg also with dropout."""
  ends = []
  for name, hp in (('fedavg', {}), ('fedsam', dict(rho=0.0))):
    process = algorithms.build(
        name, _NoisyModel, client_weighting='uniform', **hp
    )
    cohorts = [['c0', 'c1'], ['c1', 'c2']]
    ends += [r.weights[0] for r in rounds.run(process, toy.Clients(), cohorts)]
  np.testing.assert_array_equal(ends[:2], ends[2:])
