#!/usr/bin/env bash
# Makes the locks again: requirements.txt from requirements.in and overrides.txt,
# requirements-gpu.txt from these and requirements-gpu.in, requirements-lint.txt
# from requirements-lint.in.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# No release after this day: newer ones of the unpinned packages need NumPy 2.
readonly CUTOFF=2024-10-15T00:00:00Z
readonly UV_VERSION=0.9.0
readonly SUPPORTED="python_full_version >= '3.10' and \
python_full_version < '3.12' and implementation_name == 'cpython' and \
sys_platform == 'linux' and platform_machine == 'x86_64'"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

uv=$(command -v uv) || {
  python3 -m venv "$work/uv"
  "$work/uv/bin/python" -m pip install --quiet "uv==$UV_VERSION"
  uv=$work/uv/bin/uv
}

# uv takes the environments to lock for only from a pyproject.toml.
printf '[tool.uv]\nenvironments = ["%s"]\n' "$SUPPORTED" > "$work/pyproject.toml"
cp requirements*.in overrides.txt "$work/"

# lock INPUT OUTPUT HEADLINE [OPTION …]: makes one lock.
#
# The platform is checked once by setup.sh, so that only markers which tell the
# two Python versions apart are kept.
lock() {
  local input=$1 output=$2 headline=$3
  shift 3
  (cd "$work" && "$uv" pip compile --quiet "$input" \
    --universal --python-version 3.10 --generate-hashes --no-header \
    --no-emit-index-url --no-emit-find-links --output-file "$output.raw" "$@")
  {
    echo "# $headline"
    echo '# Made by scripts/lock.sh; install with --no-deps --require-hashes.'
    sed -E \
      -e "s/ and (implementation_name|platform_python_implementation) == '[Cc][Pp]ython'//" \
      -e "s/ and platform_machine == 'x86_64' and sys_platform == 'linux'//" \
      -e "s/ ; python_full_version < '3\.12' \\\\$/ \\\\/" \
      "$work/$output.raw"
  } > "$output.tmp"
  mv "$output.tmp" "$output"
}

lock requirements.in requirements.txt \
  'Complete lock for CPython 3.10 and 3.11 on Linux x86-64.' \
  --override overrides.txt --exclude-newer "$CUTOFF"
cp requirements.txt "$work/"
lock requirements-gpu.in requirements-gpu.txt \
  'Complete lock with CUDA 11.8, for the same Pythons.' \
  --override overrides.txt --exclude-newer "$CUTOFF" \
  --constraints requirements.txt
lock requirements-lint.in requirements-lint.txt \
  'Complete lock of the linters, for the same Pythons.'
