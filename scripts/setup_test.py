"""setup.sh with a stand-in Python: fast, offline, and stopped at every turn.

The stand-in answers what setup.sh asks of a Python: whether its version is
supported, its name, `-m venv`, and (as .venv/bin/python) `-m pip install`,
which writes to a log, announces itself and waits while a file `hold` exists.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parent

_PYTHON = r'''#!/bin/bash
case "$*" in
  *'-m venv '*)
    mkdir -p "${@: -1}/bin"
    cp "$0" "${@: -1}/bin/python" ;;
  *'-m pip '*)
    echo "$*" >> "$TEST_ROOT/pip.log"
    touch "$(dirname "$0")/../half" "$TEST_ROOT/started"
    while [ -e "$TEST_ROOT/hold" ]; do sleep 0.05; done
    [ ! -e "$TEST_ROOT/fail" ] ;;
  --version) echo Python 3.11.99 ;;
esac
'''


class Checkout:
  """A directory with setup.sh, a lock and a stand-in Python."""

  def __init__(self, root, processes):
    self.root = root
    self._processes = processes
    (root / 'scripts').mkdir()
    shutil.copy(SCRIPTS / 'setup.sh', root / 'scripts')
    self.lock('1.0')
    self.python = root / 'fake_python'
    self.python.write_text(_PYTHON)
    self.python.chmod(0o755)

  def lock(self, version):
    (self.root / 'requirements.txt').write_text(
        f'setuptools=={version} \\\n    --hash=sha256:00\n'
        'six==1.0 \\\n    --hash=sha256:11\n'
    )

  def start(self, *arguments, **env):
    return self._processes.start(
        ['bash', 'scripts/setup.sh', *arguments],
        seconds=120,
        cwd=self.root,
        env={
            **os.environ,
            'PYTHON': str(self.python),
            'TEST_ROOT': str(self.root),
            **env,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

  def run(self, *arguments, **env):
    """Runs to the end; returns the exit status and the lines of stderr."""
    process = self.start(*arguments, **env)
    out, err = process.communicate(timeout=30)
    assert not out
    return process.returncode, err.splitlines()

  def installs(self):
    """Number of complete lock installations that were begun."""
    log = self.root / 'pip.log'
    if not log.exists():
      return 0
    return log.read_text().count('/requirements.txt\n')

  def wait_for(self, name):
    deadline = time.monotonic() + 20
    while not (self.root / name).exists():
      assert time.monotonic() < deadline, name
      time.sleep(0.02)


@pytest.fixture(name='checkout')
def _checkout(tmp_path, processes):
  return Checkout(tmp_path, processes)


def test_installs_the_lock_once_and_then_returns_at_once(checkout):
  assert checkout.run()[0] == 0
  assert checkout.installs() == 1
  pip = (checkout.root / 'pip.log').read_text()
  assert pip.count('--no-deps --require-hashes') == 2

  assert checkout.run() == (0, [])
  assert checkout.installs() == 1


def test_a_named_environment_is_made_from_its_own_lock(checkout):
  (checkout.root / 'requirements-lint.txt').write_text(
      'six==1.0 \\\n    --hash=sha256:11\n'
  )
  assert checkout.run('lint')[0] == 0
  assert (checkout.root / '.venv-lint' / '.complete').exists()
  assert not (checkout.root / '.venv' / '.complete').exists()
  pip = (checkout.root / 'pip.log').read_text().splitlines()
  # Without a build tool in the lock there is nothing to install before it.
  assert [line.split('/')[-1] for line in pip] == ['requirements-lint.txt']
  assert checkout.run('lint') == (0, [])
  assert checkout.run()[0] == 0
  assert checkout.installs() == 1


def test_with_gpu_the_environment_is_made_from_that_lock_and_kept(checkout):
  (checkout.root / 'requirements-gpu.txt').write_text(
      'six==1.0 \\\n    --hash=sha256:11\n'
      'nvidia-nccl-cu11==2.16.5 \\\n    --hash=sha256:22\n'
  )
  assert checkout.run()[0] == 0
  # What is there has no CUDA.
  assert checkout.run('--with', 'gpu')[0] == 0
  pip = (checkout.root / 'pip.log').read_text().splitlines()
  assert pip[-1].split('/')[-1] == 'requirements-gpu.txt'
  assert checkout.run('--with', 'gpu') == (0, [])
  assert checkout.run() == (0, [])
  assert checkout.installs() == 1
  # A lock that changes is installed anew, and is still the one with CUDA.
  with (checkout.root / 'requirements-gpu.txt').open('a') as lock:
    lock.write('triton==2.0 \\\n    --hash=sha256:33\n')
  assert checkout.run()[0] == 0
  pip = (checkout.root / 'pip.log').read_text().splitlines()
  assert pip[-1].split('/')[-1] == 'requirements-gpu.txt'
  assert checkout.installs() == 1


@pytest.mark.parametrize('arguments', [('--with', 'tpu'), ('--with',), ('x',)])
def test_an_unknown_extra_is_refused(checkout, arguments):
  status, (line,) = checkout.run(*arguments)
  assert status == 2
  assert line.endswith('; expected: setup.sh, or setup.sh --with gpu')
  assert not (checkout.root / '.venv').exists()


def test_a_changed_lock_is_installed_anew(checkout):
  checkout.run()
  leftover = checkout.root / '.venv' / 'of_the_old_lock'
  leftover.touch()
  checkout.lock('2.0')
  assert checkout.run()[0] == 0
  assert checkout.installs() == 2
  assert not leftover.exists()


def test_a_lock_that_changes_during_the_installation_is_noticed(checkout):
  (checkout.root / 'hold').touch()
  process = checkout.start()
  checkout.wait_for('started')
  checkout.lock('2.0')
  (checkout.root / 'hold').unlink()
  process.communicate(timeout=20)
  assert process.returncode == 0
  # What is installed is the lock of the start, so it is not trusted now.
  assert checkout.run()[0] == 0
  assert checkout.installs() == 2
  assert checkout.run() == (0, [])


def test_an_environment_whose_python_is_gone_is_made_anew(checkout):
  checkout.run()
  (checkout.root / '.venv' / 'bin' / 'python').unlink()
  assert checkout.run()[0] == 0
  assert checkout.installs() == 2


@pytest.mark.parametrize(
    'sent, status', [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_an_interruption_ends_pip_and_leaves_nothing(checkout, sent, status):
  (checkout.root / 'hold').touch()
  process = checkout.start()
  checkout.wait_for('started')
  process.send_signal(sent)
  _, err = process.communicate(timeout=20)
  assert process.returncode == status
  assert not (checkout.root / '.venv').exists()
  assert err.splitlines()[-1].endswith('the incomplete .venv was removed')

  (checkout.root / 'hold').unlink()
  assert checkout.run()[0] == 0


def test_what_kill_9_leaves_is_not_trusted(checkout):
  (checkout.root / 'hold').touch()
  process = checkout.start()
  checkout.wait_for('started')
  process.kill()
  process.wait()
  assert (checkout.root / '.venv' / 'half').exists()

  # pip lives on and holds the lock, so the next call waits for its end.
  second = checkout.start()
  time.sleep(0.5)
  begun = checkout.installs()
  (checkout.root / 'hold').unlink()
  second.communicate(timeout=20)
  process.communicate()
  assert second.returncode == 0
  assert checkout.installs() == begun + 1


def test_a_failed_installation_leaves_nothing_and_says_so(checkout):
  (checkout.root / 'fail').touch()
  status, err = checkout.run()
  assert status == 1
  assert 'setup: pip failed; its message is above' in err
  assert not (checkout.root / '.venv').exists()


def test_of_two_at_once_one_installs_and_both_succeed(checkout):
  (checkout.root / 'hold').touch()
  first = checkout.start()
  checkout.wait_for('started')
  second = checkout.start()
  with pytest.raises(subprocess.TimeoutExpired):
    second.wait(timeout=0.5)
  (checkout.root / 'hold').unlink()
  _, err = second.communicate(timeout=20)
  first.communicate(timeout=20)
  assert (first.returncode, second.returncode) == (0, 0)
  assert err.splitlines() == [
      'setup: another setup is running here; waiting for it'
  ]
  assert checkout.installs() == 1


def test_a_waiting_setup_can_be_interrupted(checkout):
  (checkout.root / 'hold').touch()
  first = checkout.start()
  checkout.wait_for('started')
  second = checkout.start()
  assert 'waiting' in second.stderr.readline()
  second.terminate()
  assert second.wait(timeout=20) == 143
  assert (checkout.root / '.venv' / 'half').exists()
  (checkout.root / 'hold').unlink()
  first.communicate(timeout=20)
  second.communicate()
  assert first.returncode == 0


def test_an_unsuitable_python_is_refused_in_one_line(checkout):
  status, err = checkout.run(PYTHON='/bin/false')
  assert status == 2
  assert err == [
      'setup: PYTHON=/bin/false is not a working CPython 3.10 or 3.11 with venv'
      ' and ensurepip; name one, or unset PYTHON'
  ]
  assert not (checkout.root / '.venv').exists()


def _only_tools(folder, *names):
  """Makes a PATH folder with the named system commands and nothing else."""
  folder.mkdir()
  for name in names:
    (folder / name).symlink_to(shutil.which(name))
  return folder


_TOOLS = (
    'bash cat cp cut dirname flock grep awk mkdir mktemp mv rm setsid sha256sum'
    ' sleep touch uname'
).split()


def test_a_broken_python_in_path_is_passed_over(checkout):
  path = _only_tools(checkout.root / 'bin', *_TOOLS)
  (path / 'python3.11').symlink_to('/bin/false')
  shutil.copy(checkout.python, path / 'python3.10')
  assert checkout.run(PYTHON='', PATH=str(path))[0] == 0


def test_no_python_and_no_uv_is_one_line_to_act_on(checkout):
  path = _only_tools(checkout.root / 'bin', *_TOOLS)
  status, err = checkout.run(PYTHON='', PATH=str(path))
  assert status == 2
  assert len(err) == 1
  assert err[0].startswith('setup: no working Python 3.10 or 3.11 here and uv')
  assert not (checkout.root / '.venv').exists()


def test_uv_brings_a_python_where_there_is_none(checkout):
  path = _only_tools(checkout.root / 'bin', *_TOOLS)
  uv = path / 'uv'
  uv.write_text(
      '#!/bin/bash\n[ "$1 $2" != "python find" ] || '
      f'echo {checkout.python}\n'
  )
  uv.chmod(0o755)
  assert checkout.run(PYTHON='', PATH=str(path))[0] == 0
  assert checkout.installs() == 1


def test_another_platform_is_refused_in_one_line(checkout):
  path = _only_tools(checkout.root / 'bin', *_TOOLS)
  (path / 'uname').unlink()
  (path / 'uname').write_text('#!/bin/bash\necho Darwin arm64\n')
  (path / 'uname').chmod(0o755)
  assert checkout.run(PATH=str(path)) == (
      2,
      [
          'setup: TensorFlow Federated runs on Linux x86-64 only; this is '
          'Darwin arm64'
      ],
  )
