# Products of jagged batches, left transposed times right: gradients of one matrix and one bias per sequence.
from harness import *
from src_gr_jagged_reduce import _jagged_jagged_bmm_reduce_sum


def draw(d, tiny):
    if tiny:
        return dict(B=3, L=70, M=72, N=64)
    return dict(B=d.between(16, 256), L=d.between(128, 2048), M=d.pick([128, 256, 512]), N=d.pick([64, 128, 512]))


def make(B, L, M, N):
    d = Draw(B, L, "lengths")
    lengths = [d.between(max(1, L // 4), L) for _ in range(B)]
    starts = [sum(lengths[:i]) for i in range(B + 1)]
    offsets = torch.tensor(starts, dtype=torch.int64, device=DEVICE)
    a, b = randn(starts[B], M, dtype=BF16), randn(starts[B], N, dtype=BF16)
    out, sums = empty(B, M, N, dtype=BF16), empty(B, N, dtype=BF16)

    def launch(c):
        grid = (B, triton.cdiv(M, c["BLOCK_M"]), triton.cdiv(N, c["BLOCK_N"]))
        _jagged_jagged_bmm_reduce_sum[grid](
            seq_offsets=offsets, JaggedA=a, JaggedB=b, Out=out, ReduceOut=sums, M=M, N=N, AUTOTUNE_MAX_SEQ_LEN=L,
            stride_ak=a.stride(0), stride_bk=b.stride(0), stride_ob=out.stride(0), stride_om=out.stride(1),
            stride_on=out.stride(2), stride_orb=sums.stride(0), stride_orn=sums.stride(1), REDUCE_JAGGEDB=True,
            ALLOW_TF32=False, **c)

    def expected():
        some = [slice(starts[i], starts[i + 1]) for i in (0, B - 1)]
        return [a[s].float().T @ b[s].float() for s in some] + [b[s].float().sum(0) for s in some]

    configs = [config(w, s, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k) for m, n, k, w, s in [
        (64, 64, 32, 4, 3), (128, 64, 64, 4, 3), (128, 128, 64, 8, 3), (64, 128, 32, 4, 2)]]
    return Case(configs, launch, lambda: [out[i] for i in (0, B - 1)] + [sums[i] for i in (0, B - 1)], expected)


main("gr_jagged_reduce", draw, make, 0.02)
