# Drafted tokens accepted until one is rejected, a request in each program.
from harness import *
from src_vllm_rejection import rejection_random_sample_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=7, DRAFTS=3, V=500)
    return dict(B=d.between(16, 256), DRAFTS=d.pick([1, 3, 5, 8]), V=d.pick([32000, 50257, 128256]))


def make(B, DRAFTS, V):
    n = B * DRAFTS
    ids, other = ints(0, V, (B, DRAFTS)), ints(0, V, (B, DRAFTS))
    bonus = ints(0, V, (B, 1))
    draft, target = [torch.rand((n, V), device=DEVICE) + 0.01 for _ in range(2)]
    uniform = torch.rand((n,), device=DEVICE)
    ends = (torch.arange(B, device=DEVICE, dtype=torch.int32) + 1) * DRAFTS
    greedy = torch.zeros((B,), dtype=torch.bool, device=DEVICE)
    out = torch.empty((B, DRAFTS + 1), dtype=torch.int32, device=DEVICE)

    def launch(c):
        rejection_random_sample_kernel[(B,)](out, ends, ids, draft, target, bonus, other, uniform, greedy, DRAFTS, V,
                                             NO_DRAFT_PROBS=False, **c)

    def expected():
        at = ids.reshape(n, 1).to(torch.int64)
        accepts = (torch.gather(target, 1, at) / torch.gather(draft, 1, at))[:, 0] >= uniform
        before = torch.cumsum((accepts == False).to(torch.int32).reshape(B, DRAFTS), dim=-1)
        tokens = torch.where(before == 0, ids, torch.where((before == 1) & (accepts.reshape(B, DRAFTS) == False), other, -1))
        return [torch.cat([tokens, torch.where(before[:, DRAFTS - 1:] == 0, bonus, -1)], dim=-1)]

    return Case([config()], launch, lambda: [out], expected, lambda: out.fill_(-1))


main("vllm_rejection", draw, make, 1e-6)
