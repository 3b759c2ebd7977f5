#!/usr/bin/env bash
# Makes tables of the papers, from a bare checkout: environment, data, runs,
# tables, plots. Without a TABLE: the default set of the profile.
#
#   bash scripts/reproduce.sh [TABLE …] [--profile quick|small|paper]
#       [--data_dir DIR] [--resume] [--jobs N] [--list] [--help]
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" tff_fedopt tables "$@"
