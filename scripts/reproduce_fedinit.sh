#!/usr/bin/env bash
# The tables of FedInit; options as in reproduce.sh.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/reproduce.sh" --paper=fedinit "$@"
