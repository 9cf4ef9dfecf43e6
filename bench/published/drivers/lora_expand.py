# The second products of adapters, added to queries, keys and values: tokens sorted by adapter, weights through pointers.
from harness import *
from src_lora_expand import _lora_expand_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=70, LORAS=2, RANK=16, NQ=160, NKV=48)
    return dict(M=d.between(1, 4096), LORAS=d.pick([1, 4, 8]), RANK=d.pick([8, 16, 32, 64]), NQ=d.pick([2048, 3584, 4096]),
                NKV=d.pick([512, 1024]))


def make(M, LORAS, RANK, NQ, NKV):
    widths = [NQ, NKV, NKV]
    x = randn(3, M, RANK, dtype=torch.float32)  # what the first product left
    weights = [randn(LORAS, n, RANK, dtype=BF16) for n in widths]
    base = randn(M, sum(widths), dtype=BF16)
    out = base.clone()
    d = Draw(M, LORAS, "adapters")
    members = [[] for _ in range(LORAS + 1)]  # those of the first have no adapter
    for t in range(M):
        members[d.next() % (LORAS + 1)].append(t)
    counts = [len(m) for m in members]
    order, number, start, names = [torch.tensor(t, dtype=torch.int32, device=DEVICE) for t in (
        [t for m in members for t in m], counts, [sum(counts[:i]) for i in range(LORAS + 2)], list(range(-1, LORAS)))]
    pointers, columns, d0, d1, d2, widths_ = [torch.tensor(t, dtype=torch.int64, device=DEVICE) for t in (
        [w.data_ptr() for w in weights], [0, NQ, NQ + NKV], [w.stride(0) for w in weights], [w.stride(1) for w in weights],
        [w.stride(2) for w in weights], widths)]

    def launch(c):
        _lora_expand_kernel[(triton.cdiv(M, 64) * triton.cdiv(max(widths), 128), 3, LORAS + 1)](
            x, pointers, out, M, max(widths), RANK, order, number, start, names, columns, x.stride(0), x.stride(1),
            x.stride(2), d0, d1, d2, out.stride(0), out.stride(1), widths_, 64, 128, 16, RANK % 16 == 0, True, True, 3, False,
            **c)

    def expected():
        right = base.float()
        for i in range(LORAS):
            if counts[i + 1] > 0:
                rows = torch.tensor(members[i + 1], dtype=torch.int64, device=DEVICE)
                right[rows] += torch.cat([x[s, rows] @ weights[s][i].float().T for s in range(3)], dim=1)
        return [right]

    return Case([config(4, 2)], launch, lambda: [out], expected, lambda: out.copy_(base))


main("lora_expand", draw, make, 0.02)
