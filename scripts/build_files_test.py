"""The BUILD files: complete, current and without cycles."""

import pathlib

import build_files


def _write(root, **files):
  for name, text in files.items():
    path = root / (name.replace('__in__', '/') + '.py')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
  return root


def test_build_files_are_current():
  outdated = [str(p.relative_to(build_files.ROOT)) for p in build_files.stale()]
  assert not outdated, 'run: .venv/bin/python scripts/build_files.py'


def test_every_test_file_has_a_test_target():
  for top in (*build_files.PACKAGES, 'examples', 'scripts'):
    for path in (build_files.ROOT / top).rglob('*_test.py'):
      target = f'py_test(\n    name = "{path.stem}",\n'
      assert target in (path.parent / 'BUILD').read_text(), path


def test_programs_import_what_lies_beside_them(tmp_path):
  root = _write(
      tmp_path,
      scripts__in__a='',
      scripts__in__b='import a',
      tasks__in__a='',
      tasks__in__b='import a',
      tasks__in____init__='',
  )
  texts = build_files.wanted(root)
  assert 'deps = [":a"]' in texts[root / 'scripts' / 'BUILD']
  assert 'deps = [":a"]' not in texts[root / 'tasks' / 'BUILD']


def test_no_target_depends_on_itself():
  needed = {first: d for first, (_, d) in build_files.targets().items()}
  for path in needed:
    assert path not in build_files._closure(path, needed), path


def test_files_that_need_each_other_are_one_target(tmp_path):
  root = _write(
      tmp_path,
      tasks__in__a='from tasks import b',
      tasks__in__b='def f():\n  from tasks import a\n  from tasks import c',
      tasks__in__c='',
      tasks__in__d='import tasks.b',
  )
  text = build_files.wanted(root)[root / 'tasks' / 'BUILD']
  assert text.split('\n\n', 2)[2] == '''\
py_library(
    name = "a",
    srcs = [
        "a.py",
        "b.py",
    ],
    deps = [":c"],
)

py_library(
    name = "c",
    srcs = ["c.py"],
)

py_library(
    name = "d",
    srcs = ["d.py"],
    deps = [":a"],
)
'''


def test_a_module_depends_on_what_it_imports_and_on_its_package(tmp_path):
  root = _write(
      tmp_path,
      tasks__in____init__='',
      tasks__in__a='import numpy',
      tasks__in__b='def f():\n  from tasks import a',
      tasks__in__b_test='import tasks.b',
  )
  assert (
      build_files.wanted(root)[root / 'tasks' / 'BUILD'].split('\n\n', 2)[2]
      == '''\
py_library(
    name = "tasks",
    srcs = ["__init__.py"],
)

py_library(
    name = "a",
    srcs = ["a.py"],
    deps = [":tasks"],
)

py_library(
    name = "b",
    srcs = ["b.py"],
    deps = [
        ":a",
        ":tasks",
    ],
)

py_test(
    name = "b_test",
    srcs = ["b_test.py"],
    deps = [
        ":b",
        ":tasks",
    ],
)
'''
  )


def test_a_package_that_imports_its_module_makes_no_cycle(tmp_path):
  root = _write(
      tmp_path,
      tasks__in____init__='from tasks import a',
      tasks__in__a='from tasks import b',
      tasks__in__b='',
  )
  folder = root / 'tasks'
  needed = build_files.dependencies(root)
  assert needed[folder / '__init__.py'] == {folder / 'a.py'}
  assert needed[folder / 'a.py'] == {folder / 'b.py'}
  assert needed[folder / 'b.py'] == set()


def test_a_new_file_makes_its_build_file_outdated(tmp_path):
  root = _write(tmp_path, tasks__in__a='')
  for path, text in build_files.wanted(root).items():
    path.write_text(text)
  assert not build_files.stale(root)
  _write(root, tasks__in__b_test='')
  assert build_files.stale(root) == [pathlib.Path(root, 'tasks', 'BUILD')]
