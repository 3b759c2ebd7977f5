#!/usr/bin/env bash
# Runs all tests; arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Test processes by the cores; tests, not files, go to the one that is free.
exec bash scripts/run.sh pytest -n auto --dist worksteal "$@"
