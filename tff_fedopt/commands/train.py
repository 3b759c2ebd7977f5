"""Trains one run: `python -m tff_fedopt.train --task=… --algorithm=… …`.

Exit code: 0 done, 1 the run diverged or failed, 2 wrong usage or missing data,
130 or 143 interrupted (Ctrl-C, SIGTERM); --resume then goes on.
"""

from collections.abc import Sequence
import dataclasses
import json
import os
import signal
import sys
import typing
from typing import Any

from absl import flags

import tasks
from tff_fedopt import algorithms
from tff_fedopt.commands import command_line
from tff_fedopt.experiment import spec as spec_lib

_RUN = 'the run'
_HOW = 'how it runs (no influence on the numbers)'
_HYPERPARAMETERS = 'hyperparameters'


def _hyperparameter_fields() -> dict[str, dict[str, dataclasses.Field]]:
  """Returns name -> algorithm -> field, over all algorithms."""
  fields = {}
  for algorithm in algorithms.names():
    for field in dataclasses.fields(algorithms.hyperparameters(algorithm)):
      fields.setdefault(field.name, {})[algorithm] = field
  return fields


def _define_flags(values: flags.FlagValues) -> None:
  """Defines every flag, in sections."""
  options = {f.name: f.default for f in dataclasses.fields(spec_lib.RunOptions)}

  def define(section, kind, name, default, text, **more):
    make = {
        bool: flags.DEFINE_boolean,
        float: flags.DEFINE_float,
        int: flags.DEFINE_integer,
        list: flags.DEFINE_multi_string,
        str: flags.DEFINE_string,
    }[kind]
    make(name, default, text, flag_values=values, module_name=section, **more)

  def count(section, name, default, text, least=1):
    define(section, int, name, default, text, lower_bound=least)

  define(_RUN, str, 'task', None, 'one of ' + ', '.join(tasks.names()))
  names = ', '.join(algorithms.names())
  define(_RUN, str, 'algorithm', 'fedavg', f'one of {names}')
  for name, meaning in (
      ('rounds', 'rounds (default: as published for the task)'),
      ('cohort_size', 'clients per round (default: as published)'),
      ('batch_size', 'examples per local step (default: as published)'),
      ('local_epochs', "passes over a client's data (default: as published)"),
      ('validation_examples', 'evaluate on so many examples only'),
  ):
    count(_RUN, name, None, meaning)
  cohorts = 'fixed: always cohort_size clients; bernoulli: so many on average'
  define(_RUN, str, 'cohorts', 'fixed', cohorts)
  likely = (
      "how likely a client is to take part: equal, examples (by a client's"
      ' number of them), or JSON weights such as {"client id": 2.5}'
  )
  define(_RUN, str, 'participation', 'equal', likely)
  count(_RUN, 'evaluate_every', 1, 'rounds between evaluations')
  count(_RUN, 'seed', 0, 'seed of everything random', least=0)
  profiles = 'quick (reduced model, embedded data), small or paper (data files)'
  define(_RUN, str, 'profile', 'quick', profiles)
  define(_RUN, str, 'data_dir', None, 'folder with the data files')
  define(_RUN, list, 'task_option', [], "a task's option, NAME=VALUE")

  directory = 'directory (default: runs/TASK-ALGORITHM-FINGERPRINT)'
  define(_HOW, str, 'run_dir', None, directory)
  define(_HOW, bool, 'resume', False, 'continue an interrupted run')
  retries = 'how often to go on after a worker process died'
  count(_HOW, 'retries', 0, retries, least=0)
  for name, meaning in (
      ('checkpoint_every', 'rounds between checkpoints'),
      ('keep_checkpoints', 'checkpoints that are kept'),
  ):
    count(_HOW, name, options[name], meaning)
  for name, meaning in (
      ('test', 'evaluate the last round on the test data'),
      ('tensorboard', 'write TensorBoard events'),
      ('progress', 'show a progress bar on a terminal'),
  ):
    define(_HOW, bool, name, options[name], meaning)
  clients = 'clients that compute at the same time (default: one per core)'
  count(_HOW, 'max_concurrent_clients', None, clients)

  for name, fields in _hyperparameter_fields().items():
    if name == 'state_dir':
      continue  # Clients' memory is part of the run directory.
    define(_HYPERPARAMETERS, _kind(fields), name, None, _meaning(fields))


def _kind(fields) -> type:
  kind = next(iter(fields.values())).type
  alternatives = [t for t in typing.get_args(kind) if t is not type(None)]
  return alternatives[0] if alternatives else kind


def _meaning(fields) -> str:
  """Meaning, defaults and users of a hyperparameter."""
  by_default = {}
  for algorithm, field in fields.items():
    by_default.setdefault(field.default, []).append(algorithm)
  defaults = '; '.join(
      f'{default}' if len(by_default) == 1 else f'{default} in {", ".join(who)}'
      for default, who in by_default.items()
      if default is not None
  )
  by_text = {}
  for algorithm, field in fields.items():
    by_text.setdefault(field.metadata['help'], []).append(algorithm)
  text = '; '.join(
      meaning if len(by_text) == 1 else f'{meaning} in {", ".join(who)}'
      for meaning, who in by_text.items()
  )
  if defaults:
    text += f' (default: {defaults})'
  if len(fields) < len(algorithms.names()):
    text += f'; {", ".join(fields)} only'
  return text


def _help(values: flags.FlagValues) -> str:
  """Returns the usage text; also names what each algorithm takes."""
  lines = [__doc__.strip(), '', 'Flags, also from files (--flagfile=FILE):']
  for section in (_RUN, _HOW, _HYPERPARAMETERS):
    lines += ['', f'{section}:']
    for flag in values.get_flags_for_module(section):
      name = f'[no]{flag.name}' if flag.boolean else flag.name
      default = '' if flag.default in (None, []) else f' [{flag.default}]'
      lines.append(f'  --{name}: {flag.help}{default}')
  return '\n'.join(lines)


def _task_options(given: Sequence[str]) -> dict[str, Any]:
  options = {}
  for text in given:
    name, equals, value = text.partition('=')
    if not equals:
      raise ValueError(f'--task_option={text}; expected NAME=VALUE')
    try:
      options[name] = json.loads(value)
    except ValueError:
      options[name] = value
  return options


def _spec(values: flags.FlagValues) -> spec_lib.RunSpec:
  if values.task is None:
    raise ValueError(f'--task is missing; one of {", ".join(tasks.names())}')
  names = {f.name for f in dataclasses.fields(spec_lib.RunSpec)}
  return spec_lib.RunSpec(
      hyperparameters={
          flag.name: flag.value
          for flag in values.get_flags_for_module(_HYPERPARAMETERS)
          if flag.value is not None
      },
      task_options=_task_options(values.task_option),
      **{
          flag.name: flag.value
          for flag in values.get_flags_for_module(_RUN)
          if flag.name in names
      },
  )


def _run_dir(values, spec):
  return values.run_dir or os.path.join(
      'runs', f'{spec.task}-{spec.algorithm}-{spec.fingerprint()[:16]}'
  )


def _run(values: flags.FlagValues, spec: spec_lib.RunSpec) -> int:
  """Runs and prints how it ended."""
  names = {f.name for f in dataclasses.fields(spec_lib.RunOptions)}
  options = spec_lib.RunOptions(**{
      flag.name: flag.value
      for flag in values.get_flags_for_module(_HOW)
      if flag.name in names
  })
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  from tff_fedopt import runtime
  from tff_fedopt.experiment import checkpoint
  from tff_fedopt.experiment import runner
  from tff_fedopt.processes import client_state

  try:
    if values.max_concurrent_clients:
      runtime.use(values.max_concurrent_clients)
    result = runner.run_experiment(
        spec,
        _run_dir(values, spec),
        resume=values.resume,
        retries=values.retries,
        options=options,
    )
  except (
      runtime.WorkerDied,
      checkpoint.CheckpointError,
      client_state.ClientStateError,
  ) as e:
    return _fail(e, 1)
  print(_summary(result))
  return 0 if result.status == 'done' else 1


def _summary(result) -> str:
  metric = tasks.info(result.spec.task).metric
  measured = result.frame[f'validation/{metric.name}'].dropna()
  value = (
      f'{metric.label} {metric.scale * measured.iloc[-1]:.4g} {metric.unit}'
      if len(measured)
      else f'{metric.label} was never evaluated'
  )
  again = ' (finished before; not run again)' if result.reused else ''
  rounds = f'{len(result.frame)} of {result.spec.rounds} rounds'
  return f'{result.status}{again}: {rounds}, {value}, {result.run_dir}'


def _fail(error, code: int) -> int:
  print(f'train: {" ".join(str(error).split())}', file=sys.stderr)
  return code


def main(argv: Sequence[str]) -> int:
  """Runs the command.

  Args:
    argv: The arguments, without the program's name.

  Returns:
    The exit code.
  """
  values = flags.FlagValues()
  _define_flags(values)
  if {'--help', '-h', '-help'} & set(argv):
    print(_help(values))
    return 0
  try:
    unexpected = values(['train', *argv])[1:]
    if unexpected:
      raise ValueError(f'unexpected argument {unexpected[0]!r}')
    spec = _spec(values)
    command_line.check_data_dir(spec.data_dir)
    command_line.check_folder('--run_dir', _run_dir(values, spec))
  except (flags.Error, ValueError) as e:
    return _fail(e, 2)
  # As Ctrl-C: the last completed round is saved first.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
  try:
    return _run(values, spec)
  except KeyboardInterrupt:
    return _fail('interrupted; --resume goes on', 128 + signal.SIGINT)
  except SystemExit as e:
    return _fail('interrupted; --resume goes on', e.code)
  except ValueError as e:
    # What only the data can tell: a missing file, too few clients.
    return _fail(e, 2)
  except OSError as e:
    return _fail(e, 1)  # A full disk, for one.


if __name__ == '__main__':
  command_line.end_with(main, sys.argv[1:])
