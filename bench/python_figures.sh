#!/usr/bin/env bash
# The figures of the Python package and of Kiln under Triton, in one go, on a GPU:
#
#   TRITON=… LIGER=… FLA=… PYTHON=… bench/python_figures.sh BUILD OUT
#
# BUILD is a release build with the targets launch_bench and kiln_python_package. PYTHON (default: python3) has torch,
# triton, and pytest for the checkouts; kiln itself is taken from BUILD. TRITON is a checkout of the version that PYTHON
# has, LIGER one of Liger-Kernel, FLA one of flash-linear-attention; what is not named is left out, and said. Nothing is
# downloaded. SECONDS_EACH (default: 540) bounds each of the test suites. OUT gets a file for each part.
set -uo pipefail
[ $# -eq 2 ] || { sed -n '2,10p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "$1" && pwd); mkdir -p "$2"; out=$(cd "$2" && pwd)
python=${PYTHON:-python3}; limit=${SECONDS_EACH:-540}; failed=0
export PYTHONPATH="$build/python:$root/python${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
export KILN_CACHE_DIR; KILN_CACHE_DIR=$(mktemp -d); trap 'rm -rf "$KILN_CACHE_DIR"' EXIT

part() {  # NAME COMMAND…
  local name=$1; shift
  echo "== $name: $*"
  "$@" > "$out/$name.txt" 2>&1 || { failed=1; echo "   ended with $?"; }
  tail -n 12 "$out/$name.txt"
}
suite() {  # NAME VARIABLE ARGUMENTS…
  local name=$1 checkout=${!2:-}; shift
  if [ -z "$checkout" ]; then echo "== $name: left out, $1 names no checkout"; return; fi
  shift
  part "$name" "$python" "$root/bench/triton_suite/run.py" "$checkout${subfolder:-}" --out "$out/$name.json" \
    --seconds "$limit" "$@"
}

part launch "$build/bin/launch_bench"
part python_launch "$python" "$root/bench/python_launch.py" --budget 5
part python_import "$python" "$root/bench/python_import.py" --budget 60
part inductor "$python" "$root/bench/inductor/compare.py" --jobs 4 --json "$out/inductor.json"
subfolder=/python/test suite triton TRITON
suite liger LIGER --library --jobs 4 --configurations 3 test/transformers
suite fla FLA --library --jobs 4 --configurations 3 tests/ops tests/modules
exit $failed
