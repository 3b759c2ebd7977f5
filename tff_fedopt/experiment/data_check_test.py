"""Missing data are named, all at once and before TensorFlow loads."""

import subprocess
import sys

import pytest

from tff_fedopt.experiment import data_check
from tff_fedopt.experiment import spec as spec_lib


def _run(task, **more):
  return spec_lib.RunSpec(task=task, algorithm='fedavg', **more)


def test_all_that_is_missing_is_one_line_each_once(tmp_path):
  runs = [
      _run(task, data_dir=str(tmp_path), seed=seed)
      for task in ('shakespeare', 'emnist_character', 'stackoverflow_tag')
      for seed in (0, 1)
  ]
  with pytest.raises(ValueError) as error:
    data_check.require(runs)
  message = str(error.value)
  assert '\n' not in message
  for name, size in (
      ('shakespeare.sqlite', '10 MB'),
      ('emnist_all.sqlite', '5 GB'),
      ('stackoverflow.sqlite', '100 GB'),
  ):
    assert message.count(str(tmp_path / name)) == 1
    assert f'(about {size})' in message
  for name in ('shakespeare', 'emnist', 'stackoverflow'):
    command = f'bash scripts/download.sh {name} --data_dir {tmp_path}'
    assert message.count(command) == 1


def test_embedded_data_need_nothing():
  data_check.require([_run('shakespeare'), _run('cifar10')])


@pytest.mark.parametrize(
    'arguments',
    [
        ['train', '--task=shakespeare'],
        ['tables', 'afo_main', '--rows=Shakespeare'],
    ],
)
def test_commands_say_it_before_tensorflow_loads(arguments, tmp_path):
  program = (
      'import sys\n'
      'from tff_fedopt import __main__\n'
      'code = __main__.main(sys.argv[1:])\n'
      'assert "tensorflow" not in sys.modules\n'
      'sys.exit(code)\n'
  )
  result = subprocess.run(
      [sys.executable, '-c', program, *arguments, '--profile=small']
      + [f'--data_dir={tmp_path}'],
      capture_output=True,
      text=True,
      check=False,
      timeout=120,
  )
  assert result.returncode == 2, result.stderr
  assert 'bash scripts/download.sh shakespeare' in result.stderr
  assert result.stderr.count('\n') == 1
