"""Trains one run.

Exit code: 0 done, 1 the run diverged or failed, 2 wrong usage or missing data,
130 or 143 interrupted (Ctrl-C, SIGTERM); --resume then goes on.
"""

from collections.abc import Sequence
import dataclasses
import os
import sys

from absl import flags

from tff_fedopt.commands import command_line
from tff_fedopt.commands import engine_flags
from tff_fedopt.commands import run_flags
from tff_fedopt.experiment import data_check
from tff_fedopt.experiment import run_dir as run_dir_lib
from tff_fedopt.experiment import spec as spec_lib

_HOW = 'how it runs (no influence on the numbers)'


def _define(values: flags.FlagValues) -> None:
  run_flags.define(values)
  options = {f.name: f.default for f in dataclasses.fields(spec_lib.RunOptions)}
  how = command_line.Section(values, _HOW)
  how.text(
      'run_dir', None, 'directory (default: runs/TASK-ALGORITHM-FINGERPRINT)'
  )
  how.switch('resume', False, 'continue an interrupted run')
  how.switch('overwrite', False, 'delete the run that is in the directory')
  how.whole(
      'retries', 0, 'how often to go on after a worker process died', least=0
  )
  for name, meaning in (
      ('checkpoint_every', 'rounds between checkpoints'),
      ('keep_checkpoints', 'checkpoints that are kept'),
  ):
    how.whole(name, options[name], meaning, least=1)
  for name, meaning in (
      ('test', 'evaluate the last round on the test data'),
      ('tensorboard', 'write TensorBoard events'),
      ('any_engine', 'go on with a run of another engine or device'),
      ('progress', 'show a progress bar on a terminal'),
  ):
    how.switch(name, options[name], meaning)
  how.whole(
      'max_concurrent_clients',
      None,
      'clients that compute at the same time (default: one per core)',
      least=1,
  )
  engine_flags.define(values)
  run_flags.define_hyperparameters(values)


def _run_dir(values, spec):
  return values.run_dir or os.path.join(
      'runs', f'{spec.task}-{spec.algorithm}-{spec.fingerprint()[:16]}'
  )


def _run(values: flags.FlagValues, arguments: list[str]) -> int:
  """Runs and prints how it ended."""
  del arguments
  spec = run_flags.spec(values)
  if values.resume and values.overwrite:
    raise ValueError('--resume and --overwrite; expected one of them')
  command_line.check_data_dir(spec.data_dir)
  data_check.require([spec])
  run_dir = _run_dir(values, spec)
  command_line.check_folder('--run_dir', run_dir)
  engine_flags.choose(values, values.max_concurrent_clients)
  names = {f.name for f in dataclasses.fields(spec_lib.RunOptions)}
  options = spec_lib.RunOptions(**{
      flag.name: flag.value
      for flag in values.get_flags_for_module(_HOW)
      if flag.name in names
  })
  from tff_fedopt import runtime
  from tff_fedopt.experiment import checkpoint
  from tff_fedopt.experiment import failures
  from tff_fedopt.experiment import runner
  from tff_fedopt.processes import client_state

  try:
    if values.overwrite:
      run_dir_lib.RunDir(run_dir).clear()
    result = runner.run_experiment(
        spec,
        run_dir,
        resume=values.resume,
        retries=values.retries,
        options=options,
    )
  except (
      runtime.WorkerDied,
      checkpoint.CheckpointError,
      client_state.ClientStateError,
      failures.ClientWorkError,
  ) as e:
    raise command_line.Failed(e) from e
  print(_summary(result))
  return 0 if result.status == 'done' else 1


def _summary(result) -> str:
  again = ' (finished before; not run again)' if result.reused else ''
  rounds = f'{len(result.frame)} of {result.spec.rounds} rounds'
  headline = result.headline.removeprefix(f'{result.status}: ')
  return f'{result.status}{again}: {rounds}, {headline}, {result.run_dir}'


_COMMAND = command_line.Command(
    name='train',
    summary=__doc__ or '',
    examples=(
        '--task=emnist_character --algorithm=fedadam --rounds=20'
        ' --client_learning_rate=0.03 --server_learning_rate=0.003',
        '--flagfile=RUN.flags --seed=1 --run_dir=runs/second',
        '--flagfile=RUN.flags --resume',
    ),
    define=_define,
    run=_run,
    go_on='--resume goes on',
)


def main(argv: Sequence[str]) -> int:
  """Runs the command.

  Args:
    argv: The arguments, without the program's name.

  Returns:
    The exit code.
  """
  return command_line.run(_COMMAND, argv)


if __name__ == '__main__':
  command_line.end_with(main, sys.argv[1:])
