#!/usr/bin/env bash
# Runs a Python module in the project's environment, made first where missing.
#
#   bash scripts/run.sh MODULE [ARGUMENT …]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/scripts/setup.sh"
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}
# TensorFlow's start-up notes drown the progress lines; 0 brings them back.
export TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-2}
exec "$root/.venv/bin/python" -m "$@"
