# Keys written to their places in a pool as int8, with a scale for each head.
from harness import *
from src_lightllm_quantize_kv import _fwd_kernel_destindex_copy_quantize_kv


def draw(d, tiny):
    if tiny:
        return dict(T=20, H=3, D=64)
    return dict(T=d.between(256, 16384), H=d.pick([4, 8, 12, 32]), D=d.pick([64, 128]))


def make(T, H, D):
    k, places = randn(T, H, D), torch.randperm(2 * T, device=DEVICE)[:T].to(torch.int32)
    out = torch.zeros((2 * T, H, D), dtype=torch.int8, device=DEVICE)
    scales = torch.zeros((2 * T, H, 1), dtype=torch.float16, device=DEVICE)

    def launch(c):
        _fwd_kernel_destindex_copy_quantize_kv[(T,)](
            k, places, out, scales, k.stride(0), k.stride(1), k.stride(2), out.stride(0), out.stride(1), out.stride(2),
            scales.stride(0), scales.stride(1), scales.stride(2), H, BLOCK_DMODEL=D, BLOCK_HEAD=triton.next_power_of_2(H), **c)

    def result():
        here = places.to(torch.int64)
        return [out[here].float() * scales[here].float(), scales[here]]

    return Case([config(1, 1)], launch, result, lambda: [k, k.float().abs().amax(dim=-1, keepdim=True) / 127.0])


main("lightllm_quantize_kv", draw, make, 0.01)
