# Triton's tutorial 06, forward, float16, descriptors from the host.
from harness import *
from src_attention import _attn_fwd
from triton.tools.tensor_descriptor import TensorDescriptor


def draw(d, tiny):
    if tiny:
        return dict(Z=1, H=2, N=256, D=64, CAUSAL=1)
    return dict(Z=d.between(1, 5), H=d.pick([8, 16, 32]), N=d.between(512, 4096, 128), D=d.pick([64, 128]),
                CAUSAL=d.pick([0, 1]))


def make(Z, H, N, D, CAUSAL):
    q, k, v = [randn(Z, H, N, D) for _ in range(3)]
    o, m, rows, scale = torch.empty_like(q), torch.empty((Z, H, N), dtype=torch.float32, device=DEVICE), Z * H * N, 0.125

    def described(t, block):
        return TensorDescriptor(t, shape=[rows, D], strides=[D, 1], block_shape=[block, D])

    def launch(c):
        bm, bn = c["BLOCK_M"], c["BLOCK_N"]
        _attn_fwd[(triton.cdiv(N, bm), Z * H, 1)](
            scale, m, Z, H, described(q, bm), described(k, bn), described(v, bn), described(o, bm), N, HEAD_DIM=D,
            FP8_OUTPUT=False, STAGE=3 if CAUSAL else 1, warp_specialize=False, IS_HOPPER=True, **c)

    def expected():
        s = q[Z - 1, H - 1].float() @ k[Z - 1, H - 1].float().T * scale
        if CAUSAL:
            s = s.masked_fill(torch.triu(torch.ones((N, N), dtype=torch.bool, device=DEVICE), 1), float("-inf"))
        return [torch.softmax(s, dim=-1) @ v[Z - 1, H - 1].float()]

    blocks = [(128, 64, 3, 4), (64, 64, 3, 4), (128, 32, 4, 4)] if D == 64 else [
        (128, 128, 3, 8), (128, 64, 3, 4), (64, 64, 3, 4)]
    return Case([config(w, s, BLOCK_M=m_, BLOCK_N=n) for m_, n, s, w in blocks], launch, lambda: [o[Z - 1, H - 1]],
                expected)


main("attention", draw, make, 0.01)
