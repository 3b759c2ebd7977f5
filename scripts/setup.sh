#!/usr/bin/env bash
# Creates .venv from requirements.txt, or returns at once where it is complete.
# With a name: .venv-NAME from requirements-NAME.txt. `--with gpu` makes .venv
# from requirements-gpu.txt, which has CUDA in addition; later calls keep it.
#
#   bash scripts/setup.sh [NAME | --with gpu]
#   PYTHON=/path/to/python3.11 bash scripts/setup.sh
#
# The environment is trusted only with a stamp that names the lock it was made
# from. The stamp is written last, so whatever stops an installation (a signal,
# a full disk, a power cut), the next call starts again from nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "setup: $*" >&2; }
refuse() { say "$@"; exit 2; }

if [[ ${1:-} == --with ]]; then
  readonly VENV=.venv
  LOCK=requirements-${2:-}.txt
else
  readonly VENV=.venv${1:+-$1}
  LOCK=requirements${1:+-$1}.txt
fi
# The lock as it was installed, in the form that sha256sum checks.
readonly STAMP=$VENV/.complete
# Without a name, an environment keeps the lock that it was made from, also when
# that lock has changed since.
if [[ $# == 0 && -f $STAMP ]]; then
  read -r _ kept < "$STAMP" || true
  if [[ -f $kept ]]; then LOCK=$kept; fi
fi
readonly LOCK
[[ -f $LOCK ]] ||
  refuse "there is no $LOCK; expected: setup.sh, or setup.sh --with gpu"
readonly UV_VERSION=0.9.0
readonly IS_SUPPORTED='import sys, venv, ensurepip, platform
sys.exit(platform.python_implementation() != "CPython"
         or sys.version_info[:2] not in ((3, 10), (3, 11))
         or sys.maxsize < 2**32)'

is_complete() {
  grep -qsF "  $LOCK" "$STAMP" && sha256sum --check --status "$STAMP" &&
    "$VENV/bin/python" -S -c '' 2> /dev/null
}

supported() { "$1" -c "$IS_SUPPORTED" &> /dev/null; }

finished=
# Runs a command so that a signal to this script ends it, with all its children,
# at once. Bash would otherwise wait for it before it looks at the signal.
run() {
  local status=0
  setsid "$@" &
  wait "$!" || status=$?
  finished=$!
  return "$status"
}

building=
scratch=
clean_up() {
  local status=$?
  trap '' INT TERM HUP
  if [[ ${!:-} != "$finished" ]]; then
    # Its process group exists only after a moment; until then it is alone.
    kill -TERM -- "-$!" 2> /dev/null || kill -TERM "$!" 2> /dev/null || true
    wait "$!" 2> /dev/null || true
  fi
  if [[ -n $scratch ]]; then rm -rf "$scratch"; fi
  if [[ -n $building ]]; then
    rm -rf "$VENV"
    say "not finished; the incomplete $VENV was removed"
  fi
  exit "$status"
}

# Prints a Python 3.10 or 3.11 that runs: names in PATH may be broken shims.
find_python() {
  local name candidate
  for name in python3.11 python3.10 python3 python; do
    while read -r candidate; do
      if supported "$candidate"; then echo "$candidate"; return; fi
    done < <(type -aP "$name")
  done
  return 1
}

# Lets uv bring a Python 3.11; sets $python.
fetch_python() {
  local uv
  if ! uv=$(type -P uv); then
    run python3 -m venv "$scratch/uv" &> /dev/null &&
      run "$scratch/uv/bin/python" -m pip install --quiet "uv==$UV_VERSION" \
        &> /dev/null || return 1
    uv=$scratch/uv/bin/uv
  fi
  run "$uv" --quiet python install 3.11 &> /dev/null || return 1
  python=$("$uv" python find 3.11 2> /dev/null) && supported "$python"
}

if is_complete; then exit 0; fi

[[ $(uname -s) == Linux && $(uname -m) == x86_64 ]] ||
  refuse "TensorFlow Federated runs on Linux x86-64 only; this is $(uname -sm)"
for tool in flock setsid sha256sum; do
  type -P "$tool" > /dev/null ||
    refuse "the command $tool is missing (package util-linux or coreutils)"
done

trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Children inherit the lock: should this script be killed outright, the next
# call still waits until nothing writes into the environment any more.
exec 9> "$VENV.lock"
if ! flock --nonblock 9; then
  say 'another setup is running here; waiting for it'
  run flock 9
fi
if is_complete; then exit 0; fi

scratch=$(mktemp -d)
if [[ -n ${PYTHON:-} ]]; then
  python=$PYTHON
  supported "$python" ||
    refuse "PYTHON=$PYTHON is not a working CPython 3.10 or 3.11 with venv and" \
      "ensurepip; name one, or unset PYTHON"
elif ! python=$(find_python) && ! fetch_python; then
  refuse 'no working Python 3.10 or 3.11 here and uv could not bring one;' \
    'install one with its venv package, or name it: PYTHON=/path/python3.11'
fi

# Whatever happens to the lock from here on, the stamp names what was installed.
cp "$LOCK" "$scratch/"
say "installing $(grep -c '==' "$scratch/$LOCK") packages into $VENV with" \
  "$("$python" --version); this takes some minutes, once"
building=1
rm -rf "$VENV"
run "$python" -m venv "$VENV"
# The few packages without a wheel are built by what the lock names, not by
# whatever is newest today.
awk '/^[a-z]/ { keep = /^(setuptools|wheel)==/ } keep' "$scratch/$LOCK" \
  > "$scratch/build.txt"
pip_install() {
  run "$VENV/bin/python" -m pip install --disable-pip-version-check \
    --no-input -qq --no-deps --require-hashes "$@"
}
{ [[ ! -s $scratch/build.txt ]] || pip_install -r "$scratch/build.txt"; } &&
  pip_install --no-build-isolation -r "$scratch/$LOCK" ||
  { say 'pip failed; its message is above'; exit 1; }
(cd "$scratch" && sha256sum "$LOCK") > "$STAMP.tmp"
mv "$STAMP.tmp" "$STAMP"
building=
say "$VENV is ready"
