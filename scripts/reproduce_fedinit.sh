#!/usr/bin/env bash
# Makes the tables of "Rethinking the Personalized Relaxed Initialization (FedInit)"; options as in reproduce.sh.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/reproduce.sh" --paper=FedInit "$@"
