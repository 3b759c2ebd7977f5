"""A changed default, constant, rule or layer marks stored rows stale by name.

Source text is changed in a copy of the tree, where another process plans a
table of all algorithms and tasks and compares its stamps with those of before.
"""

import ast
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import tasks
from tasks import code_hash
from tff_fedopt import algorithms

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_HPARAMS = 'tff_fedopt/algorithms/hparams.py'
# Where a client keeps its memory is no setting.
_NO_SETTINGS = {'state_dir'}

_PLAN = """
import json, sys
from tff_fedopt import algorithms
from tff_fedopt.experiment import identity
from tff_fedopt.tables import plan, spec, stamp
import tasks

identity.MOST_NAMED = 1000

def cell(task, algorithm, optimizer=None):
  given = {'client_optimizer': optimizer} if optimizer else {}
  setting = spec.Setting(task, algorithm, given, 'guessed: here', 4, 2)
  return spec.Cell(f'{task} {algorithm} {optimizer}', 'c', [setting])

cells = [cell('emnist_character', name) for name in algorithms.names()]
cells += [cell('emnist_character', 'fedavg', o) for o in ('momentum', 'adam')]
cells += [cell(task, 'fedavg') for task in tasks.names()]
stamps = {}
for c in cells:
  [setting] = c.candidates
  try:
    run = plan.run_spec(setting, plan.Options(), 0)
  except ValueError:
    continue  # The changed default does not go with the algorithm.
  planned = plan.PlannedCell(c, (plan.Candidate(setting, (run,)),))
  stamps[c.key] = stamp.of(planned, 'last:1')
if len(sys.argv) == 1:
  print(json.dumps(stamp.to_json(stamps), default=dict))
else:
  stored = stamp.from_json(json.load(open(sys.argv[1])))
  lines = set()
  for key, now in stamps.items():
    lines.update(stamp.setting_differences(stored[key], now))
    lines.update(f'code of {name} has changed' for name in
                 stamp.changed_code(stored[key], now))
  print(json.dumps(sorted(lines)))
"""


def _read(file):
  return (_ROOT / file).read_text(encoding='utf-8')


def _patched(text, changes):
  """The text with nodes replaced by what `changes` says of their source."""
  lines = text.splitlines(keepends=True)
  starts = [0]
  for line in lines:
    starts.append(starts[-1] + len(line.encode()))
  raw = text.encode()
  at = lambda line, column: starts[line - 1] + column
  for node, new in sorted(
      changes, key=lambda c: -at(c[0].lineno, c[0].col_offset)
  ):
    begin = at(node.lineno, node.col_offset)
    end = at(node.end_lineno, node.end_col_offset)
    raw = raw[:begin] + new(raw[begin:end].decode()).encode() + raw[end:]
  return raw.decode()


def _other(value):
  """Source of another value than that of the source."""
  return f'(lambda v: not v if isinstance(v, bool) else v + 1)({value})'


def _defaults():
  """Name of each hyperparameter to the nodes of its defaults, by kind."""
  found = {'value': {}, 'none': {}, 'choice': {}, 'state': {}, 'form': {}}
  for node in ast.walk(ast.parse(_read(_HPARAMS))):
    is_field = (
        isinstance(node, ast.AnnAssign)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, 'id', '') == 'field'
    )
    if is_field:
      default = node.value.args[0]
      kind = 'value'
      if isinstance(default, ast.Constant):
        kind = {str: 'choice', type(None): 'none'}.get(
            type(default.value), 'value'
        )
      if node.target.id == 'client_state':
        kind = 'state'
      found[kind].setdefault(node.target.id, []).append(default)
    elif isinstance(node, ast.FunctionDef) and node.name == 'form_defaults':
      for call in ast.walk(node):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
          found['form'].setdefault(keyword.arg, []).append(keyword.value)
  # None stands for the default of the form there.
  found['none'] = {
      name: nodes
      for name, nodes in found['none'].items()
      if name not in found['form']
  }
  return found


_PARSED = {
    'client_learning_rate_schedule': (
        "schedules.Schedule('exponential', 0.5, 3.0)"
    ),
    'local_steps': "local_steps_lib.LocalSteps('fixed', 2, 2)",
    'per_client': "per_client_lib.PerClient.parse('{\"gamma\": {\"x\": 0.2}}')",
    'dual_step': "step_rule.StepRule('constant', 0.5)",
    'aggregation_step': "step_rule.StepRule('1/sum')",
}
_CHOICES = dict(
    form='code',
    client_weighting='uniform',
    client_optimizer='momentum',
    correction='local',
    client_state='sync',  # Does not go with a correction.
)


def _hparams(kind):
  """The file with all defaults of a kind changed at once."""

  def new(name):
    if name in _PARSED:
      return lambda source: _PARSED[name]
    if kind in ('choice', 'state'):
      return lambda source: repr(_CHOICES[name])
    if kind == 'none':
      return lambda source: '7'
    return _other

  changes = [
      (node, new(name))
      for name, nodes in _defaults()[kind].items()
      for node in nodes
      if name not in _NO_SETTINGS
  ]
  return {_HPARAMS: _patched(_read(_HPARAMS), changes)}


def _task_files():
  return [
      path.relative_to(_ROOT).as_posix()
      for path in sorted((_ROOT / 'tasks').rglob('*.py'))
      if not path.stem.endswith('_test')
  ]


def _options():
  """The files with the default of every task option changed."""
  files = {}
  for file in _task_files():
    text, changes = _read(file), []
    for node in ast.walk(ast.parse(text)):
      is_option = isinstance(node, ast.Call) and (
          getattr(node.func, 'attr', getattr(node.func, 'id', '')) == 'Option'
      )
      if is_option:
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        default = given.get('quick', node.args[0])
        if 'choices' in given:
          # The one that is not the default.
          others = [
              ast.get_source_segment(text, c)
              for c in given['choices'].elts
              if ast.dump(c) != ast.dump(default)
          ]
          changes.append((default, lambda s, other=others[0]: other))
        else:
          changes.append((default, lambda s: f'({s}) + 1'))
    if changes:
      files[file] = _patched(text, changes)
  return files


def _code():
  """Task files, each with a constant more."""
  return {
      file: _read(file) + '\n_ANOTHER_CONSTANT = 1\n'
      for file in _task_files()
      if file not in _NOT_OF_A_TASK
  }


# What gives keys and names, downloads, or is in no task's way.
_NOT_OF_A_TASK = {
    'tasks/__init__.py',
    'tasks/code_hash.py',
    'tasks/data/__init__.py',
    'tasks/data/content.py',
    'tasks/data/download.py',
    'tasks/models/__init__.py',
    'tasks/preprocessing/__init__.py',
    'tasks/source.py',
}


@pytest.fixture(name='changed', scope='module')
def _changed(tmp_path_factory):
  """Returns what is said of the rows when files have other texts."""
  top = tmp_path_factory.mktemp('tree')
  for package in ('tff_fedopt', 'tasks'):
    shutil.copytree(
        _ROOT / package,
        top / package,
        ignore=shutil.ignore_patterns('*_test.py', '__pycache__', 'testdata'),
    )

  def run(*arguments):
    done = subprocess.run(
        [sys.executable, '-c', _PLAN, *arguments],
        cwd=top,
        env={
            **os.environ,
            'PYTHONPATH': str(top),
            'PYTHONDONTWRITEBYTECODE': '1',
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

  (top / 'stored.json').write_text(run())
  known = {}

  def changed(kind, files):
    if kind not in known:
      before = {name: (top / name).read_text('utf-8') for name in files}
      for name, text in files.items():
        (top / name).write_text(text, 'utf-8')
      known[kind] = json.loads(run('stored.json'))
      for name, text in before.items():
        (top / name).write_text(text, 'utf-8')
    return known[kind]

  assert changed('nothing', {}) == []
  return changed


@pytest.mark.parametrize(
    'kind,name',
    [
        (kind, name)
        for kind, nodes in _defaults().items()
        for name in sorted(nodes)
        if name not in _NO_SETTINGS
    ],
)
def test_a_changed_default_is_named(changed, kind, name):
  lines = changed(kind, _hparams(kind))
  assert [l for l in lines if l.startswith(f'stored with {name} ')]


def test_every_default_is_changed_here():
  fields = {
      field.name
      for algorithm in algorithms.names()
      for field in dataclasses.fields(algorithms.hyperparameters(algorithm))
  }
  assert fields == {name for nodes in _defaults().values() for name in nodes}


@pytest.mark.parametrize(
    'name', sorted({o for t in tasks.names() for o in tasks.info(t).options})
)
def test_a_changed_task_option_is_named(changed, name):
  lines = changed('options', _options())
  assert [l for l in lines if l.startswith(f'stored with task option {name} ')]


@pytest.mark.parametrize('file', sorted(_code()))
def test_changed_code_of_a_task_is_named(changed, file):
  assert f'code of {file} has changed' in changed('code', _code())


def _numbers(node):
  return [
      n
      for n in ast.walk(node)
      if isinstance(n, ast.Constant) and isinstance(n.value, (int, float))
  ]


def _mutants(text):
  """(what, node, its new source) of every constant, rule, layer, generator."""
  for node in ast.parse(text).body:
    if isinstance(node, ast.Assign) and _numbers(node.value):
      yield (
          ast.unparse(node.targets[0]),
          _numbers(node.value)[0],
          lambda s: f'(1 + ({s}))',
      )
    for inner in [node, *getattr(node, 'body', [])]:
      if isinstance(inner, ast.FunctionDef):
        returned = [
            n.value
            for n in ast.walk(inner)
            if isinstance(n, ast.Return) and n.value
        ]
        if returned:
          yield inner.name, returned[0], lambda s: f'(({s}) or None)'
        elif not isinstance(inner.body[-1], ast.Raise):
          yield inner.name, inner.body[-1], lambda s: 'del self'


@pytest.mark.parametrize('file', sorted(_code()))
def test_every_constant_and_function_counts(file):
  text = _read(file)
  before = code_hash.of_text(text)
  for what, node, new in _mutants(text):
    after = code_hash.of_text(_patched(text, [(node, new)]))
    assert after != before, what
