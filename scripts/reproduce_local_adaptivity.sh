#!/usr/bin/env bash
# The tables of "Local Adaptivity in Federated Learning"; options as in
# reproduce.sh.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/reproduce.sh" --paper=local_adaptivity "$@"
