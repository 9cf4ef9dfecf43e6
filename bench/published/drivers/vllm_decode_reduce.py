# What splits of the keys left of each head's attention, merged.
from harness import *
from src_vllm_decode_reduce import _fwd_kernel_stage2


def draw(d, tiny):
    if tiny:
        return dict(B=3, H=4, SPLITS=4, D=80)
    return dict(B=d.between(1, 256), H=d.pick([16, 32, 64, 128]), SPLITS=d.pick([4, 8, 16]), D=d.pick([64, 128, 512]))


def make(B, H, SPLITS, D):
    parts, lengths = torch.randn((B, H, SPLITS, D + 1), device=DEVICE), ints(SPLITS * 2, 4000, (B,))
    y = empty(B, H, D, dtype=BF16)

    def launch(c):
        _fwd_kernel_stage2[(B, H)](parts, y, lengths, parts.stride(0), parts.stride(1), parts.stride(2), y.stride(0),
                                   y.stride(1), NUM_KV_SPLITS=SPLITS, BLOCK_DV=triton.next_power_of_2(D), Lv=D, **c)

    def expected():
        each = (lengths + SPLITS - 1) // SPLITS
        used = torch.arange(SPLITS, device=DEVICE)[None, :] * each[:, None] < lengths[:, None]
        logic = torch.where(used[:, None, :], parts[:, :, :, D], -1e30)
        return [(torch.softmax(logic, dim=-1)[:, :, :, None] * parts[:, :, :, :D]).sum(2)]

    return Case([config(4, 2)], launch, lambda: [y], expected)


main("vllm_decode_reduce", draw, make, 0.01)
