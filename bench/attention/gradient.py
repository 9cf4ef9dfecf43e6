# Gradients of attention over settings drawn from a seed (settings.py): kernels/attention/gradient.py under Kiln, with
# the sums in front of it, beside the backward of PyTorch's scaled_dot_product_attention by cuDNN and by
# FlashAttention-2. Checks each result against PyTorch's. Prints a table.
# Usage: python3 bench/attention/gradient.py KILN SEED
import pathlib
import sys
import tempfile

import torch
from table import Table, sdpa_time, times_of
from torch.nn.attention import SDPBackend

HERE = pathlib.Path(__file__).parent
SETTINGS = (HERE / "settings.py").read_text()
OURS = SETTINGS + """
from torch import _attention

for number, setting in enumerate(draw(int(sys.argv[1]))):
    d, causal, keys, group, n, dtype = setting
    if d > 128:  # by the scores
        continue
    torch.manual_seed(number)
    q, k, v = tensors(*setting)
    g = tensors(*setting)[0]
    sums = torch.empty(q.shape[:-1], device="cuda")
    out = _attention.attention(q, k, v, d**-0.5, causal, None, sums)

    def back():
        return _attention.gradients(q, k, v, out, g, sums, d**-0.5, causal)

    if group == 1 and n <= 8192:  # the last head by its scores
        picked = [t[-1:].float() for t in (q, k, v)]
        f = lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        want = torch.func.vjp(f, *picked)[1](g[-1:].float())
        for name, a, b in zip("qkv", back(), want):
            off, most = (a[-1:].float() - b).abs().max().item(), b.abs().max().item()
            if not off <= (4e-3 if dtype == "float16" else 3e-2) * max(1.0, most):
                print("WRONG", number, setting, "d" + name, off, most)
    print("time", number, triton.testing.do_bench(back, warmup=5, rep=25, return_mode="median") * 1000, flush=True)
"""


def backward_time(setting, backend, tensors):
    d, causal, keys, group, n, dtype = setting
    q, k, v = (t[None].requires_grad_() for t in tensors(*setting))
    g = tensors(*setting)[0][None]

    def prepare():
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=group > 1)
        return lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True)

    return sdpa_time(backend, prepare)


def main(kiln, seed):
    script = pathlib.Path(tempfile.mkdtemp()) / "for_kiln.py"
    script.write_text(OURS)
    names = {}
    exec(compile(SETTINGS, "settings.py", "exec"), names)
    ours = times_of([kiln, "run", str(script), str(seed)])
    table = Table(("cuDNN", "FlashAttention-2"))
    for number, setting in enumerate(names["draw"](seed)):
        if number not in ours:
            continue
        # Five products of the definition, two of which are in the forward pass too.
        table.row(setting, ours[number][0], 2.5 * names["flop"](*setting), {
            "cuDNN": backward_time(setting, SDPBackend.CUDNN_ATTENTION, names["tensors"]),
            "FlashAttention-2": backward_time(setting, SDPBackend.FLASH_ATTENTION, names["tensors"])})
    table.end()


main(sys.argv[1], int(sys.argv[2]))
