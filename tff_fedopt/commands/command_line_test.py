"""What all commands share: flags, errors, help, how they end."""

import os
import signal

import pytest

from tff_fedopt import __main__ as entry
from tff_fedopt.commands import command_line
from tff_fedopt.commands import download

_seen = {}


def _define(values):
  section = command_line.Section(values, 'a section')
  section.whole('num_clients', 3, 'clients', least=2)
  section.number('learning_rate', None, 'a rate')
  section.switch('resume', False, 'go on')
  section.choice('form', None, ('code', 'paper'), 'the form')
  section.texts('part', 'parts')
  section.items('seeds', 'seeds', int, 'whole numbers')


def _keep(values, arguments):
  _seen.clear()
  _seen.update(values.flag_values_dict(), arguments=arguments)
  return 0


def _command(run=_keep, **more):
  return command_line.Command(
      name='made_up',
      summary='Summary.',
      examples=('--resume',),
      define=_define,
      run=run,
      **more,
  )


def _run(*argv, **more):
  return command_line.run(_command(**more), argv)


def test_flags_files_and_arguments_arrive(tmp_path):
  inner = tmp_path / 'inner'
  inner.write_text('--learning_rate=0.5\n--seeds=1, 2\n')
  path = tmp_path / 'flags'
  path.write_text(f'# Comment\n--flagfile={inner}\n--num_clients=7\n--resume\n')
  code = _run(
      'first', f'--flagfile={path}', '--num_clients=8', '--part=a', 'second',
      '--part', 'b', '--noresume', '--form=paper', arguments='[ARGUMENT …]',
  )
  assert code == 0
  assert _seen == dict(
      num_clients=8,
      learning_rate=0.5,
      resume=False,
      form='paper',
      part=['a', 'b'],
      seeds=[1, 2],
      flagfile=None,
      **{'import': []},
      arguments=['first', 'second'],
  )


@pytest.mark.parametrize(
    'argv, said',
    [
        (
            ['--num_clients=abc'],
            "--num_clients: 'abc'; expected a whole number",
        ),
        (['--num_clients', '1'], "'1'; expected a whole number, 2 or more"),
        (['--num_clients'], '--num_clients: no value given; expected a whole'),
        (['--learning_rate=x'], "--learning_rate: 'x'; expected a number"),
        (['--resume=si'], "--resume: 'si'; expected true or false"),
        (['--form=box'], "--form: 'box'; expected one of code, paper"),
        (['--seeds=1,b'], "--seeds: '1,b'; expected whole numbers"),
        (['--resum'], 'unknown flag --resum; did you mean --resume'),
        (['--noresum'], 'did you mean --noresume'),
        (['--lr=1'], 'unknown flag --lr; did you mean --learning_rate?'),
        (['--xyzzy'], 'unknown flag --xyzzy; --help lists them'),
        (['one'], "unexpected argument 'one'; expected flags"),
        (['--flagfile=/no/where'], "'/no/where'; expected a file with one"),
        (['--flagfile=/'], "'/'; expected a file with one --flag=value a line"),
        (['--flagfile'], '--flagfile: no value given; expected a'),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(argv, said, capsys):
  assert _run(*argv) == 2
  out, err = capsys.readouterr()
  assert err.startswith('made_up: ') and said in err
  assert err.count('\n') == 1 and not out


def test_a_wrong_flag_in_a_file_and_a_file_that_is_no_text(tmp_path, capsys):
  path = tmp_path / 'flags'
  path.write_text('--num_clients=abc\n')
  assert _run(f'--flagfile={path}') == 2
  assert "--num_clients: 'abc'; expected" in capsys.readouterr().err
  path.write_bytes(b'\xff\xfe\x00')
  assert _run(f'--flagfile={path}') == 2
  assert '--flagfile: not a text; expected' in capsys.readouterr().err


def test_help_shows_every_flag_and_the_examples(capsys):
  assert _run('--help', '--num_clients=abc', arguments='[ARGUMENT …]') == 0
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == 'Summary.'
  usage = 'usage: python -m tff_fedopt made_up [ARGUMENT …] [--flag=value …]'
  assert usage in lines
  assert '  python -m tff_fedopt made_up --resume' in lines
  assert '  --num_clients: clients [3]' in lines
  assert '  --[no]resume: go on' in lines
  assert '  --form: one of code, paper: the form' in lines
  assert any(line.startswith('  --flagfile: ') for line in lines)


@pytest.mark.parametrize(
    'error, code, said',
    [
        (ValueError('wrong\nvalue'), 2, 'wrong value'),
        (command_line.Failed('it failed'), 1, 'it failed'),
        (OSError('disk full'), 1, 'disk full'),
        (KeyboardInterrupt(), 130, 'interrupted; go on so'),
    ],
)
def test_how_a_command_ends(error, code, said, capsys):
  def fail(*_):
    raise error

  assert _run(run=fail, go_on='go on so') == code
  assert capsys.readouterr().err == f'made_up: {said}\n'


def test_sigterm_is_an_interruption_and_the_handler_is_put_back(capsys):
  handler = signal.getsignal(signal.SIGTERM)

  def end(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()

  assert _run(run=end, go_on='go on so') == 143
  assert capsys.readouterr().err == 'made_up: interrupted; go on so\n'
  assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize(
    'argv, said',
    [
        (
            [],
            'no command; one of bench, claims, doctor, download, gpu_check,'
            ' tables, train',
        ),
        (['tabels'], "unknown command 'tabels'; did you mean tables?"),
        (
            ['xyz'],
            "unknown command 'xyz'; one of bench, claims, doctor, download,"
            ' gpu_check, tables, train',
        ),
    ],
)
def test_an_unknown_command_is_one_line(argv, said, capsys):
  assert entry.main(argv) == 2
  assert capsys.readouterr().err == f'tff_fedopt: {said}\n'


@pytest.mark.parametrize('command', entry.COMMANDS)
def test_the_one_entry_reaches_every_command(command, capsys):
  assert entry.main([command, '--help']) == 0
  assert f'usage: python -m tff_fedopt {command} ' in capsys.readouterr().out
  assert entry.main([command, '--flagfile=/no/where']) == 2
  error = capsys.readouterr().err
  assert error.startswith(f'{command}: --flagfile: ') and error.count('\n') == 1


@pytest.mark.parametrize(
    'argv, said',
    [
        ([], 'no data set named; one of cifar100, emnist'),
        (['shakespare'], "'shakespare'; did you mean shakespeare?"),
        (['xyz'], "unknown data set 'xyz'; one of cifar100"),
    ],
)
def test_download_names_what_there_is(argv, said, capsys):
  assert download.main(argv) == 2
  error = capsys.readouterr().err
  assert said in error and error.count('\n') == 1


def test_download_says_what_came(tmp_path, monkeypatch, capsys):
  def fetch(dataset, data_dir):
    assert (dataset, data_dir) == ('shakespeare', str(tmp_path))
    return str(tmp_path / 'shakespeare.sqlite')

  found = download.sources.Found(
      'shakespeare', '', 'subset', {}, {'train': 1}, {}
  )
  monkeypatch.setattr(download.download, 'download', fetch)
  monkeypatch.setattr(download.sources, 'find', lambda *_: found)
  assert download.main(['shakespeare', f'--data_dir={tmp_path}']) == 0
  path = tmp_path / 'shakespeare.sqlite'
  assert capsys.readouterr().out == f"{path}: subset, {{'train': 1}}\n"


def test_a_folder_that_cannot_be_written_is_wrong_usage(monkeypatch, capsys):
  def fetch(*_):
    raise PermissionError(13, 'Permission denied', '/data')

  monkeypatch.setattr(download.download, 'download', fetch)
  assert download.main(['shakespeare']) == 2
  assert 'name a folder that can be written' in capsys.readouterr().err
