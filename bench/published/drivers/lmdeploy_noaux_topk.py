# Experts chosen as DeepSeek-V3 does: the best groups by their two largest scores, then the best experts within these.
from harness import *
from src_lmdeploy_noaux_topk import _fused_noaux_tc_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=13, E=64, GROUPS=8, BEST=4, TOP=8)
    experts = d.pick([128, 256])
    return dict(B=d.between(1, 16384), E=experts, GROUPS=d.pick([1, 8]), BEST=4, TOP=d.pick([6, 8]))


def make(B, E, GROUPS, BEST, TOP):
    logits, bias = torch.randn((B, E), device=DEVICE), torch.rand((E,), device=DEVICE)
    weights, ids = torch.empty((B, TOP), device=DEVICE), torch.empty((B, TOP), dtype=torch.int64, device=DEVICE)
    size = E // GROUPS

    def launch(c):
        _fused_noaux_tc_kernel[(B,)](
            logits, bias, weights, ids, B, num_experts=E, n_group=GROUPS, group_size=size, topk_group=BEST, top_k=TOP,
            renormalize=True, routed_scaling_factor=2.5, logits_stride_0=logits.stride(0), logits_stride_1=logits.stride(1),
            bias_stride_0=bias.stride(0), BLOCK_SIZE=E, TOPK_BLOCK_SIZE=triton.next_power_of_2(TOP), **c)

    def expected():
        scores = torch.sigmoid(logits)
        choice = scores + bias
        if GROUPS > 1:
            of_groups = torch.topk(choice.reshape(B, GROUPS, size), 2, dim=-1)[0].sum(-1)
            least = torch.topk(of_groups, BEST, dim=-1)[0][:, BEST - 1:]
            kept = (of_groups >= least)[:, :, None] & torch.full((1, 1, size), True, device=DEVICE)
            choice = torch.where(kept.reshape(B, E), choice, torch.zeros_like(choice))
        top, places = torch.topk(choice, TOP, dim=-1)
        picked = torch.gather(scores, 1, places)
        return [picked / picked.sum(-1, keepdim=True) * 2.5, top]

    def result():
        return [weights, torch.gather(torch.sigmoid(logits) + bias, 1, ids)]

    return Case([config(w, 1) for w in (1, 2, 4, 8)], launch, result, expected)


main("lmdeploy_noaux_topk", draw, make, 1e-4)
