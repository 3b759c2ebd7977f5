"""Modules from outside: found, imported once, blamed for their own errors."""

import sys

import pytest

from tff_fedopt import plugins
from tff_fedopt.commands import command_line


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch):
  modules, paths = set(sys.modules), list(sys.path)
  monkeypatch.setattr(plugins, '_loaded', {})
  yield
  sys.path[:] = paths
  for name in set(sys.modules) - modules:
    del sys.modules[name]


def _write(path, text):
  path.write_text(text)
  return str(path)


def test_a_file_and_a_module_are_imported_once(tmp_path, monkeypatch):
  text = 'import builtins\nbuiltins.times = getattr(builtins, "times", 0) + 1\n'
  monkeypatch.setattr('builtins.times', 0, raising=False)
  _write(tmp_path / 'made_up_module.py', text)
  path = _write(tmp_path / 'made_up_file.py', text)
  monkeypatch.chdir(tmp_path)
  for _ in range(2):
    plugins.load('made_up_file.py')
    plugins.load(path)
    plugins.load('made_up_module')
  import builtins

  assert builtins.times == 2
  assert plugins.loaded() == [path, 'made_up_module']


@pytest.mark.parametrize(
    'name, said',
    [
        ('no_such_module', "there is no module 'no_such_module' to import"),
        ('json.no_such', "there is no module 'json.no_such' to import"),
        ('no_such.py', 'there is no file'),
    ],
)
def test_what_is_not_there_is_one_line(name, said):
  with pytest.raises(ValueError) as error:
    plugins.load(name)
  assert said in str(error.value) and '\n' not in str(error.value)
  assert not plugins.loaded()


def test_the_name_of_another_module_is_refused(tmp_path):
  path = _write(tmp_path / 'json.py', '')
  with pytest.raises(ValueError, match="there is another module 'json'"):
    plugins.load(path)


def test_what_a_plugin_lacks_is_its_own_error(tmp_path):
  path = _write(tmp_path / 'made_up.py', 'import no_such_module')
  with pytest.raises(ModuleNotFoundError):
    plugins.load(path)
  assert 'made_up' not in sys.modules and not plugins.loaded()


def _command(run):
  return command_line.Command(
      name='made_up', summary='', examples=(), define=lambda _: None, run=run
  )


def test_an_error_of_a_plugin_keeps_its_traceback_ours_is_one_line(
    tmp_path, capsys
):
  path = _write(
      tmp_path / 'made_up.py',
      'def fail():\n  raise ValueError("theirs")\n'
      'def call(function):\n  function()\n',
  )

  def theirs(*_):
    sys.modules['made_up'].fail()

  with pytest.raises(ValueError, match='theirs'):
    command_line.run(_command(theirs), [f'--import={path}'])

  def ours(*_):
    sys.modules['made_up'].call(lambda: plugins.load('no_such_module'))

  assert command_line.run(_command(ours), [f'--import={path}']) == 2
  assert capsys.readouterr().err.startswith('made_up: there is no module')


@pytest.mark.parametrize(
    'arguments',
    [
        ['--import=made_up.py'],
        ['--import', 'made_up'],
        ['--algorithm=made_up:name'],
        ['--task', 'made_up.py:name'],
        ['--rows=1', '--import=made_up', '--unknown'],
        ['--flagfile=flags'],
    ],
)
def test_plugins_are_imported_before_flags_are_defined(
    tmp_path, monkeypatch, arguments
):
  _write(tmp_path / 'made_up.py', '')
  _write(tmp_path / 'flags', '--import=made_up\n')
  monkeypatch.chdir(tmp_path)
  seen = []
  command = command_line.Command(
      name='made_up',
      summary='',
      examples=(),
      define=lambda _: seen.append('made_up' in sys.modules),
      run=lambda *_: 0,
  )
  command_line.run(command, arguments)
  assert seen == [True]


def test_a_plugin_that_is_not_there_is_wrong_usage(capsys):
  assert command_line.run(_command(None), ['--import=no_such_module']) == 2
  error = capsys.readouterr().err
  assert "no module 'no_such_module'" in error and error.count('\n') == 1
