#!/usr/bin/env bash
# Tells whether this machine is ready; ends with READY or the one thing to do.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" \
  tff_fedopt doctor "$@"
