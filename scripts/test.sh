#!/usr/bin/env bash
# Runs all tests; arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec bash scripts/run.sh pytest -n 2 --dist loadfile "$@"
