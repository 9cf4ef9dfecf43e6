#!/bin/sh
# Runs the attention kernel under Kiln and, where Python has it, under Triton, with PyTorch's own attention beside it.
# Usage: bench/same_source/attention.sh KILN
set -eu
here=$(cd "$(dirname "$0")" && pwd)
script=$(mktemp -d)/attention.py
kernel="$here/../../kernels/attention/kernel.py"
cat "$kernel" "$here/attention_tail.py" > "$script.kiln.py"
echo "== kiln"
"$1" run "$script.kiln.py"
{
  cat "$kernel"
  echo 'import torch'
  echo 'triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))'
  cat "$here/attention_tail.py"
} > "$script.triton.py"
echo "== triton"
python3 "$script.triton.py"
echo "== PyTorch"
python3 "$here/attention_torch.py"
