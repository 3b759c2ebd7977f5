"""The lock: what it names is installed, and all of it can be imported."""

import collections
import importlib.metadata
import importlib.util
import pathlib
import re
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
# TensorFlow loads it, and it refuses to be loaded twice.
LOADED_BY_ANOTHER = {'tensorflow_io_gcs_filesystem'}


def locked(name='requirements.txt'):
  """Package to its release, markers dropped."""
  text = (ROOT / name).read_text(encoding='utf-8')
  return dict(re.findall(r'^([a-z0-9-]+)==(\S+)', text, re.M))


def _modules():
  """Package to its importable top modules."""
  found = collections.defaultdict(list)
  for module, packages in importlib.metadata.packages_distributions().items():
    # Some packages leave folders behind that are no modules.
    spec = module.isidentifier() and importlib.util.find_spec(module)
    if spec and spec.origin:
      for package in set(packages):
        found[re.sub('[-_.]+', '-', package).lower()].append(module)
  return found


def test_the_lock_with_cuda_adds_what_tensorflow_was_built_with():
  added = locked('requirements-gpu.txt').items() - locked().items()
  wanted = dict(
      re.findall(
          r'^Requires-Dist: (\S+) \(?==([^)\s]+)\)? ; extra == .and-cuda',
          importlib.metadata.distribution('tensorflow').read_text('METADATA'),
          re.M,
      )
  )
  del wanted['tensorrt']  # It has no wheel for Python 3.11.
  assert len(wanted) == 10
  assert dict(added) == wanted


def test_every_locked_package_can_be_imported(processes):
  modules = _modules()
  here = [p for p in locked() if p in modules]
  assert len(here) > 100
  found = {m for package in here for m in modules[package]}
  names = sorted(found - LOADED_BY_ANOTHER)
  code = (
      'import importlib, sys\n'
      'for name in sys.argv[1:]:\n'
      '  try:\n'
      '    importlib.import_module(name)\n'
      '  except Exception as e:\n'
      '    print(f"{name}: {e!r}")\n'
  )
  # One process: packages that do not go together are found, too.
  result = processes.run(['-c', code, *names], seconds=280, warm=True)
  assert result.returncode == 0, result.stderr[-2000:]
  assert result.stdout.splitlines() == []


def test_what_is_installed_is_what_is_locked():
  # Not all that sys.path leads to: setuptools, once imported, adds releases
  # that it brings along for itself.
  folder = sysconfig.get_path('purelib')
  installed = {
      re.sub('[-_.]+', '-', found.name).lower(): found.version
      for found in importlib.metadata.distributions(path=[folder])
  }
  text = (ROOT / 'requirements.txt').read_text(encoding='utf-8')
  everywhere = set(re.findall(r'^([a-z0-9-]+)==\S+ \\$', text, re.M))
  assert len(everywhere) > 100 and everywhere <= installed.keys()
  here = locked().keys() & installed.keys()
  assert {p: installed[p] for p in here} == {p: locked()[p] for p in here}
