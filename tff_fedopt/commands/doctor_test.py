"""What the doctor finds, and the one thing it says to do."""

import itertools
import os
import sqlite3
import zipfile

import pytest

import tasks
from tasks.data import sources
from tff_fedopt.commands import doctor
from tff_fedopt.testing import pids

_PASSES = doctor.Finding('hello', 'passes')


def _write_shakespeare(folder):
  path = folder / 'shakespeare.sqlite'
  with sqlite3.connect(path) as db:
    db.execute(
        'CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT'
        ' NULL, serialized_example_proto BLOB NOT NULL)'
    )
    db.execute(
        'CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name TEXT'
        ' NOT NULL, num_examples INTEGER NOT NULL)'
    )
    for split in ('train', 'test'):
      for client, size in (('A', 2), ('B', 3)):
        db.executemany(
            'INSERT INTO examples VALUES (?, ?, ?)',
            [(split, client, b'x' * 3000)] * size,
        )
        db.execute(
            'INSERT INTO client_metadata VALUES (?, ?, ?)',
            (client, split, size),
        )
  db.close()
  return path


def _run(monkeypatch, capsys, *arguments, hello=_PASSES):
  """Runs the command without the federated part; status, lines printed."""
  monkeypatch.setattr(doctor, 'check_hello', lambda timeout: hello)
  status = doctor.main(list(arguments))
  return status, capsys.readouterr().out.splitlines()


def test_every_task_is_looked_at_and_missing_data_is_no_obstacle(
    monkeypatch, capsys, tmp_path
):
  monkeypatch.setenv('HOME', str(tmp_path))
  status, lines = _run(monkeypatch, capsys)
  assert (status, lines[-1]) == (0, 'READY')
  found = dict(line.split(maxsplit=1) for line in lines[:-1])
  assert found['data_dir'] == str(tmp_path / '.tff')
  for task in tasks.PUBLISHED:
    assert found[task].startswith('no ')


def test_data_that_are_there_are_described(monkeypatch, capsys, tmp_path):
  _write_shakespeare(tmp_path)
  with zipfile.ZipFile(tmp_path / 'cifar10.npz', 'w') as f:
    f.writestr('x_train.npy', b'')
  prepared = tmp_path / 'cifar100' / '3.0.2' / 'dataset_info.json'
  prepared.parent.mkdir(parents=True)
  prepared.touch()
  status, lines = _run(monkeypatch, capsys, f'--data_dir={tmp_path}')
  assert (status, lines[-1]) == (0, 'READY')
  found = dict(line.split(maxsplit=1) for line in lines[:-1])
  assert found['shakespeare'] == (
      'shakespeare.sqlite, subset: 2 clients, 5 examples'
  )
  assert found['cifar10'] == 'cifar10.npz'
  assert found['cifar100'] == f'TensorFlow Datasets in {prepared.parent}'


@pytest.mark.parametrize('name', ['shakespeare.sqlite', 'cifar10.npz'])
def test_a_file_cut_short_is_the_one_thing_to_repair(
    monkeypatch, capsys, tmp_path, name
):
  path = _write_shakespeare(tmp_path)
  if name == 'cifar10.npz':
    path.unlink()
    path = tmp_path / name
    with zipfile.ZipFile(path, 'w') as f:
      f.writestr('x_train.npy', b'0' * 10_000)
  os.truncate(path, path.stat().st_size // 2)
  status, lines = _run(monkeypatch, capsys, f'--data_dir={tmp_path}')
  assert status == 2
  assert lines[-1].startswith(f'NOT READY: {path}: ')
  assert 'delete' in lines[-1]


def test_stackoverflow_without_its_counts_is_unusable(monkeypatch, tmp_path):
  (tmp_path / 'stackoverflow.sqlite').touch()
  found = sources.Found(
      'stackoverflow', '', 'subset', {}, {'train': (1, 2)}, {}
  )
  monkeypatch.setattr(sources, 'find', lambda dataset, data_dir: found)
  finding = doctor.check_data('stackoverflow_tag', str(tmp_path))
  assert not finding.is_data
  assert 'stackoverflow.word_count' in finding.remedy


@pytest.mark.parametrize(
    'folder, words', [('nowhere', 'is no folder'), ('', 'has no data of any')]
)
def test_a_named_folder_without_data_is_refused(
    monkeypatch, capsys, tmp_path, folder, words
):
  status, lines = _run(
      monkeypatch, capsys, '--data_dir', str(tmp_path / folder)
  )
  assert status == 2
  assert words in lines[-1]


def test_a_full_disk_is_the_thing_to_do(tmp_path):
  missing = str(tmp_path / 'not' / 'yet')
  assert doctor.check_disk(missing, min_free_gib=0).remedy is None
  finding = doctor.check_disk(missing, min_free_gib=1e9)
  assert finding.remedy.startswith(f'make room on the disk of {tmp_path}: ')


def test_a_cache_that_is_a_file_is_the_thing_to_do(tmp_path, monkeypatch):
  (tmp_path / 'afile').write_text('')
  monkeypatch.setenv('TFF_FEDOPT_CACHE', str(tmp_path / 'afile'))
  findings = doctor.diagnose(str(tmp_path), 1)
  (found,) = [f for f in itertools.islice(findings, 4) if f.remedy]
  assert found.subject == 'cache' and 'set TFF_FEDOPT_CACHE' in found.remedy


def test_embedded_data_are_counted(tmp_path):
  assert 'when first used' in doctor.check_embedded(str(tmp_path / 'x')).text
  (tmp_path / 'a').write_text('1')
  assert doctor.check_embedded(str(tmp_path)).text.startswith(
      '1 files, 0.0 GiB'
  )


def test_a_failed_hello_is_the_thing_to_do(monkeypatch, capsys):
  failed = doctor.Finding('hello', 'failed', 'mend it')
  status, lines = _run(monkeypatch, capsys, hello=failed)
  assert (status, lines[-1]) == (2, 'NOT READY: mend it')


def test_hello_that_hangs_is_ended_in_time_with_its_children(
    tmp_path, processes, monkeypatch
):
  processes.mark(monkeypatch)
  alive = tmp_path / 'pid'
  code = (
      'import subprocess, time\n'
      'child = subprocess.Popen(["sleep", "600"])\n'
      f'open({str(alive)!r}, "w").write(str(child.pid))\n'
      'time.sleep(600)'
  )
  finding = doctor.check_hello(timeout=2, code=code)
  assert finding.text == 'no answer within 2 s'
  assert '--timeout=2' in finding.remedy
  # By itself it would run longer than a test may.
  pids.wait_until_gone([int(alive.read_text())], 10)


def test_hello_that_fails_is_quoted():
  finding = doctor.check_hello(60, code='raise RuntimeError("no worker")')
  assert finding.remedy.endswith('does not run: RuntimeError: no worker')


def test_hello_passes_here():
  finding = doctor.check_hello(timeout=280)
  assert finding.remedy is None
  assert finding.text.startswith('two clients summed in ')
  assert ': local on cpu (' in finding.text
  assert '; worker on cpu (' in finding.text


def test_a_gpu_that_is_asked_for_is_missed(capsys):
  assert doctor.main(['--devices=gpu']) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert 'TensorFlow found no GPU' in line and '--with gpu' in line


@pytest.mark.parametrize(
    'argument', ['--timeout=0', '--timeout=nan', '--timeout=inf', '--data']
)
def test_wrong_usage_ends_with_2(capsys, argument):
  assert doctor.main([argument]) == 2
  assert len(capsys.readouterr().err.splitlines()) == 1
