# Logits of the tokens that a request has had, made less likely.
from harness import *
from src_lightllm_penalty import _fwd_kernel_apply_penalty


def draw(d, tiny):
    if tiny:
        return dict(B=3, V=900, SEEN=50)
    return dict(B=d.between(1, 256), V=d.pick([32000, 50257, 151936]), SEEN=d.between(64, 8192))


def make(B, V, SEEN):
    logits0 = torch.randn((B, V), device=DEVICE)
    logits = logits0.clone()
    tokens = torch.topk(torch.rand((B, V - 1), device=DEVICE), SEEN, dim=-1)[1]
    counts = ints(1, 9, (B, SEEN))
    requests = torch.arange(B, device=DEVICE, dtype=torch.int32)
    presence, frequency = [torch.rand((B,), device=DEVICE) for _ in range(2)]
    repetition, decay = [torch.rand((B,), device=DEVICE) * 0.1 + 1.0 for _ in range(2)]
    lengths, ends = ints(0, 9, (B,)), torch.arange(B + 1, device=DEVICE, dtype=torch.int32) * SEEN
    eos, masked = torch.tensor([V - 1], dtype=torch.int32, device=DEVICE), torch.zeros((B,), dtype=torch.bool, device=DEVICE)
    flat = tokens.to(torch.int32).reshape(B * SEEN)

    def launch(c):
        _fwd_kernel_apply_penalty[(B,)](logits, logits.stride(0), logits.stride(1), requests, presence, frequency, repetition,
                                        decay, lengths, flat, counts, ends, eos, masked, V, BLOCK_P=1024, EOS_ID_NUM=1, **c)

    def expected():
        x, r = torch.gather(logits0, 1, tokens), repetition[:, None]
        x = torch.where(x > 0, x / r, x * r) - counts.float() * frequency[:, None] - presence[:, None]
        out = logits0.scatter(1, tokens, x)
        end = out[:, V - 1]
        out[:, V - 1] = end + end.abs() * (torch.exp2(torch.log2(decay) * lengths.float()) - 1)
        return [out]

    return Case([config(8)], launch, lambda: [logits], expected, lambda: logits.copy_(logits0))


main("lightllm_penalty", draw, make, 1e-4)
