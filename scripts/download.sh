#!/usr/bin/env bash
# Downloads hosted data sets, checked.
#
#   bash scripts/download.sh DATASET … [--data_dir DIR]
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" tff_fedopt download "$@"
