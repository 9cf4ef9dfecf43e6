#!/bin/sh
# Runs the matmul kernels under Kiln and, where Python has it, under Triton; one line per kernel and shape of each.
# Usage: bench/same_source/run.sh KILN
set -eu
here=$(cd "$(dirname "$0")" && pwd)
script=$(mktemp -d)/matmul.py
cat "$here/../../kernels/matmul/kernel.py" "$here/../../kernels/matmul_persistent/kernel.py" > "$script"
for round in 1 2; do
  { cat "$script"; cat "$here/matmul_tail.py"; } > "$script.kiln.py"
  echo "== kiln $round"
  "$1" run "$script.kiln.py"
  {
    cat "$script"
    echo 'import torch'
    echo 'triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))'
    cat "$here/matmul_tail.py"
  } > "$script.triton.py"
  echo "== triton $round"
  python3 "$script.triton.py"
done
