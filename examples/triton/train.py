"""A training script for PyTorch and Triton that knows nothing of Kiln (docs/pytorch.md):

    python train.py                  # Triton compiles its kernels
    KILN_TRITON=1 python train.py    # Kiln does

Without a GPU, TRITON_INTERPRET=1 runs the kernels in Triton's interpreter, and neither compiles anything.
"""
import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_forward(gate, up, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + i, mask=i < n)
    tl.store(out + i, g * tl.sigmoid(g) * tl.load(up + i, mask=i < n), mask=i < n)


@triton.jit
def swiglu_backward(gate, up, d_out, d_gate, d_up, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + i, mask=i < n)
    u = tl.load(up + i, mask=i < n)
    d = tl.load(d_out + i, mask=i < n)
    s = tl.sigmoid(g)
    tl.store(d_up + i, d * g * s, mask=i < n)
    tl.store(d_gate + i, d * u * s * (1 + g * (1 - s)), mask=i < n)


class SwiGlu(torch.autograd.Function):

    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        out = torch.empty_like(gate)
        swiglu_forward[(triton.cdiv(gate.numel(), 1024), )](gate, up, out, gate.numel(), BLOCK=1024)
        return out

    @staticmethod
    def backward(ctx, d_out):
        gate, up = ctx.saved_tensors
        d_gate, d_up = torch.empty_like(gate), torch.empty_like(up)
        grid = (triton.cdiv(gate.numel(), 1024), )
        swiglu_backward[grid](gate, up, d_out.contiguous(), d_gate, d_up, gate.numel(), BLOCK=1024)
        return d_gate, d_up


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, target = torch.randn(256, 64, device=device), torch.randn(256, 64, device=device)
    weights = [torch.nn.Parameter(torch.randn(a, b, device=device) * a**-0.5) for a, b in ((64, 128), (64, 128), (128, 64))]
    optimizer = torch.optim.AdamW(weights, lr=1e-2)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = (SwiGlu.apply(x @ weights[0], x @ weights[1]) @ weights[2] - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, {'falls' if losses[-1] < 0.7 * losses[0] else 'stays'}")


if __name__ == "__main__":
    main()
