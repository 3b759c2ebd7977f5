#!/usr/bin/env bash
# Makes the tables of "Adaptive Federated Optimization"; options as in reproduce.sh.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/reproduce.sh" --paper=AFO "$@"
