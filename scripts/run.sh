#!/usr/bin/env bash
# Runs a Python module in the project's environment, made first where missing.
#
#   bash scripts/run.sh MODULE [ARGUMENT …]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/scripts/setup.sh"
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}
# TensorFlow 2.14 starts with three errors about CUDA that mean nothing here; at
# level 2 they would open every run.
export TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-3}
exec "$root/.venv/bin/python" -m "$@"
