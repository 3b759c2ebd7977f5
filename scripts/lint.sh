#!/usr/bin/env bash
# Looks at the sources without running them: ruff, then mypy, both set up in
# pyproject.toml, in an environment of their own.
#
#   bash scripts/lint.sh [FILE …]    # ruff for these files only, mypy for all
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh lint
.venv-lint/bin/ruff check --quiet "${@:-.}"
.venv-lint/bin/mypy
