"""The check that owners of GPUs run, here on the CPU alone."""

import json

import pytest

from tff_fedopt import runtime
from tff_fedopt.commands import gpu_check
from tff_fedopt.testing import toy


@pytest.fixture(autouse=True)
def _toy_task(monkeypatch):
  toy.install(monkeypatch.setattr)
  load = toy.Task

  def made(name, **given):
    del name, given
    return load(toy.Clients(), 2)

  monkeypatch.setattr('tasks.load', made)


def test_the_cpu_is_like_the_cpu(tmp_path, capsys):
  out = tmp_path / 'check.json'
  arguments = ['--devices=cpu', '--algorithms=fedadam', f'--out={out}']
  assert gpu_check.main(arguments) == 0
  assert capsys.readouterr().out.startswith('fedadam     alike    0.0e+00')
  result = json.loads(out.read_text())
  (row,) = result['rows']
  assert row['difference'] == 0 and row['seconds'] > 0
  assert result['devices'] == runtime.in_use()['devices']


def test_a_difference_is_the_exit_code(tmp_path, capsys, monkeypatch):
  train = gpu_check._train
  calls = []

  def shifted(*arguments):
    weights, seconds = train(*arguments)
    calls.append(1)
    return [w * (1 + 0.1 * len(calls)) for w in weights], seconds

  monkeypatch.setattr(gpu_check, '_train', shifted)
  out = tmp_path / 'check.json'
  arguments = ['--devices=cpu', '--algorithms=fedavg', f'--out={out}']
  assert gpu_check.main(arguments) == 1
  assert 'DIFFERS' in capsys.readouterr().out


def test_without_a_gpu(tmp_path, capsys):
  out = tmp_path / 'check.json'
  assert gpu_check.main([f'--out={out}']) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert 'TensorFlow found no GPU' in line
  assert not out.exists()
