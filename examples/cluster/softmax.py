"""What the scripts of this folder measure: a softmax over rows, one program per row."""
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + i, powers / tl.sum(powers, axis=0), mask=i < columns)


rows, columns = 4096, 1000
x = torch.randn(rows, columns)
out = torch.empty_like(x)
