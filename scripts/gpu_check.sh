#!/usr/bin/env bash
# Every algorithm on the GPUs against the CPU; writes runs/gpu_check.json.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" \
  tff_fedopt gpu_check "$@"
