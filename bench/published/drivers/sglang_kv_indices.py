# The places of every request's keys, one request behind the other.
from harness import *
from src_sglang_kv_indices import create_flashinfer_kv_indices_triton

ROOM = 8192


def draw(d, tiny):
    if tiny:
        return dict(B=5, L=700)
    return dict(B=d.between(4, 512), L=d.between(128, 8192))


def make(B, L):
    table = ints(0, 1000000, (B + 3, ROOM))
    requests = torch.randperm(B + 3, device=DEVICE)[:B].to(torch.int32)
    lengths = ints(L // 2, L, (B,))
    ends = torch.cumsum(lengths, dim=0)
    starts = torch.cat([torch.zeros((1,), dtype=torch.int32, device=DEVICE), ends.to(torch.int32)], dim=0)
    count = ends[B - 1].item()
    y = torch.empty((count,), dtype=torch.int32, device=DEVICE)

    def launch(c):
        create_flashinfer_kv_indices_triton[(B,)](table, requests, lengths, starts, None, y, ROOM, **c)

    def expected():
        rows = torch.index_select(table, 0, requests.to(torch.int64))
        inside = torch.arange(ROOM, device=DEVICE)[None, :] < lengths[:, None]
        return [torch.masked_select(rows, inside)]

    return Case([config()], launch, lambda: [y], expected)


main("sglang_kv_indices", draw, make, 1e-7)
