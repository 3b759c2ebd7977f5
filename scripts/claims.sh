#!/usr/bin/env bash
# Prints each claim of the papers with what the published and our numbers say.
#
#   bash scripts/claims.sh [PAPER|TABLE|ID …] [--profile quick|small|paper]
#       [--out_dir DIR] [--help]
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" tff_fedopt claims "$@"
