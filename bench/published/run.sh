#!/bin/sh
# Published kernels under Kiln and under Triton: SEED, number of draws, and which: kernels by name, or `products`,
# `others`, `all` (products unless named).
# Usage: KILN=path PUBLISHED=folder bench/published/run.sh SEED DRAWS [names]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
seed=$1 draws=$2
shift 2
exec python3 "$here/run.py" --kiln "$KILN" --kernels "$PUBLISHED" --seed "$seed" --draws "$draws" "$@"
