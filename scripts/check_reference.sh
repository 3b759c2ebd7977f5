#!/usr/bin/env bash
# Re-runs stored quick numbers and prints those outside their tolerance, one a
# line; exit 1 if there is any. Without --full: the rows that each table names
# for this check.
#
#   bash scripts/check_reference.sh [TABLE …] [--full]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bash scripts/run.sh tff_fedopt tables --check --out_dir="$out" "$@"
