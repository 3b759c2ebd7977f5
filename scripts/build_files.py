"""Writes the BUILD file of every package from the imports of its modules.

    python scripts/build_files.py            # writes what has changed
    python scripts/build_files.py --check    # exit 1 if anything would change
"""

import argparse
import ast
import collections
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ('tff_fedopt', 'tasks')
# Those whose files are no package.
FOLDERS = ('.', 'examples', 'scripts')
HEADER = '''\
# Written by scripts/build_files.py from the imports.
load("@rules_python//python:defs.bzl", {rules})

package(default_visibility = ["//visibility:public"])
'''


def _imported_names(path):
  """Yields the dotted names that a file may import, nested imports included."""
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    if isinstance(node, ast.Import):
      yield from (name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom):
      yield from (f'{node.module}.{name.name}' for name in node.names)


def _sources(root):
  """Returns every Python file that gets a target."""
  nested = (path for top in PACKAGES for path in (root / top).rglob('*.py'))
  flat = (path for top in FOLDERS for path in root.joinpath(top).glob('*.py'))
  return sorted([*flat, *nested])


def _label(path, root):
  """Returns the Bazel label of a file, `//folder:name`."""
  folder = '/'.join(path.parent.relative_to(root).parts)
  return f'//{folder}:{_name(path)}'


def _name(path):
  return path.parent.name if path.name == '__init__.py' else path.stem


def _imported_files(path, sources, root):
  """Returns the files of this project that a file imports."""
  found = set()
  folders = [root]
  if path.parent / '__init__.py' not in sources:
    folders.append(path.parent)  # Programs also import what lies beside them.
  for name in _imported_names(path):
    places = [folder.joinpath(*name.split('.')) for folder in folders]
    # The last part of a name may be a module, a package, or what is in one.
    for candidate in [p for place in places for p in (place, place.parent)]:
      files = {candidate.with_suffix('.py'), candidate / '__init__.py'}
      if files & sources:
        found |= files & sources
        break
  return found - {path}


def _closure(path, imports):
  """Returns all that a file needs, directly or through others."""
  found, queue = set(), [path]
  while queue:
    for file in imports[queue.pop()] - found:
      found.add(file)
      queue.append(file)
  return found


def dependencies(root=ROOT):
  """Maps every Python file to the files that its target depends on.

  A module also depends on its package, which Python imports first, unless the
  package itself needs the module: Bazel refuses cycles.
  """
  sources = set(_sources(root))
  imports = {path: _imported_files(path, sources, root) for path in sources}
  needed = dict(imports)
  for path in sources:
    package = path.parent / '__init__.py'
    if path.name == '__init__.py':
      # A package's own lazy imports would close a circle through its modules.
      needed[path] = {
          file for file in imports[path] if path not in _closure(file, imports)
      }
    elif package in sources and path not in _closure(package, imports):
      needed[path] = imports[path] | {package}
  return needed


def _groups(needed):
  """Maps every file to the sorted files of its target.

  Files of a folder that need each other (one of them lazily) are one target.
  """
  closures = {path: _closure(path, needed) for path in needed}
  return {
      path: sorted(
          other
          for other in needed
          if other == path
          or other.parent == path.parent
          and other in closures[path]
          and path in closures[other]
      )
      for path in needed
  }


def targets(root=ROOT):
  """Maps the first file of every target to (files, first files of its deps)."""
  needed = dependencies(root)
  groups = _groups(needed)
  result = {}
  for path in sorted(needed):
    files = groups[path]
    deps = {groups[n][0] for file in files for n in needed[file]} - {files[0]}
    result[files[0]] = files, deps
  return result


def _target(files, deps, root):
  """Returns the rule and the text of one target, named by its first file."""
  own = _label(files[0], root)
  here = own[: own.index(':') + 1]
  labels = sorted(_label(file, root) for file in deps)
  rule = 'py_test' if files[0].stem.endswith('_test') else 'py_library'
  text = [f'{rule}(', f'    name = "{_name(files[0])}",']
  for key, values in (
      ('srcs', [file.name for file in files]),
      ('deps', [re.sub(f'^{re.escape(here)}', ':', d) for d in labels]),
  ):
    if len(values) == 1:
      text.append(f'    {key} = ["{values[0]}"],')
    elif values:
      text += [f'    {key} = [', *(f'        "{v}",' for v in values), '    ],']
  return rule, '\n'.join([*text, ')'])


def wanted(root=ROOT):
  """Maps the BUILD file of every folder with Python files to its text."""
  texts = collections.defaultdict(list)
  for first, (files, deps) in targets(root).items():
    texts[first.parent / 'BUILD'].append(_target(files, deps, root))
  result = {}
  for build, entries in texts.items():
    rules = ', '.join(f'"{rule}"' for rule in sorted({r for r, _ in entries}))
    body = '\n\n'.join(text for _, text in entries)
    result[build] = f'{HEADER.format(rules=rules)}\n{body}\n'
  return result


def stale(root=ROOT):
  """Returns the BUILD files that differ from what the sources ask for."""
  return [
      path
      for path, text in wanted(root).items()
      if not path.is_file() or path.read_text(encoding='utf-8') != text
  ]


def main(argv=None):
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
      '--check', action='store_true', help='change nothing; exit 1 if outdated'
  )
  arguments = parser.parse_args(argv)
  texts, outdated = wanted(), stale()
  for path in outdated:
    print(path.relative_to(ROOT))
    if not arguments.check:
      unfinished = path.with_suffix('.tmp')
      unfinished.write_text(texts[path], encoding='utf-8')
      os.replace(unfinished, path)
  return 1 if arguments.check and outdated else 0


if __name__ == '__main__':
  sys.exit(main())
