#!/usr/bin/env bash
# Ratios of round and step times, measured side by side in one run.
set -euo pipefail
exec bash "$(dirname "$0")/run.sh" tff_fedopt bench "$@"
