"""out = gelu(x * 2 + y) * sigmoid(y) - x, six elementwise operations in one kernel; GELU is the exact (erf) one."""
import triton
import triton.language as tl


@triton.jit
def gelu(x):
    half = 0.5 * x
    return half * tl.erf(x * 0.7071067811865476) + half


@triton.jit
def chain_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside).to(tl.float32)
    y = tl.load(y_ptr + i, mask=inside).to(tl.float32)
    out = gelu(x * 2.0 + y) * tl.sigmoid(y) - x
    tl.store(out_ptr + i, out, mask=inside)
