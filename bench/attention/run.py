# Attention over settings drawn from a seed: kernels/attention under Kiln and, where Python has it, under Triton, beside
# PyTorch's scaled_dot_product_attention by cuDNN and by FlashAttention-2. Prints a table.
# Usage: python3 bench/attention/run.py KILN SEED
import pathlib
import sys
import tempfile

import torch
from table import Table, sdpa_time, times_of
from torch.nn.attention import SDPBackend

HERE = pathlib.Path(__file__).parent
SETTINGS = (HERE / "settings.py").read_text()
TAIL = (HERE / "tail.py").read_text()
FOR_TRITON = """
import torch
triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
"""


def forward_time(setting, backend, tensors):
    d, causal, keys, group, n, dtype = setting
    q, k, v = (t[None] for t in tensors(*setting))
    return sdpa_time(backend, lambda: lambda: torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal, enable_gqa=group > 1))


def main(kiln, seed):
    kernel = (HERE / "../../kernels/attention/kernel.py").read_text()
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "for_kiln.py").write_text(kernel + SETTINGS + TAIL)
    (folder / "for_triton.py").write_text(kernel + SETTINGS + FOR_TRITON + TAIL)
    names = {}
    exec(compile(SETTINGS, "settings.py", "exec"), names)
    ours = times_of([kiln, "run", str(folder / "for_kiln.py"), str(seed)])
    theirs = times_of([sys.executable, str(folder / "for_triton.py"), str(seed)])
    table = Table(("Triton", "cuDNN", "FlashAttention-2"), "configuration")
    for number, setting in enumerate(names["draw"](seed)):
        if number not in ours:
            continue
        us, (config,) = ours[number]
        table.row(setting, us, names["flop"](*setting), {
            "Triton": theirs.get(number, (None,))[0],
            "cuDNN": forward_time(setting, SDPBackend.CUDNN_ATTENTION, names["tensors"]),
            "FlashAttention-2": forward_time(setting, SDPBackend.FLASH_ATTENTION, names["tensors"])}, config)
    table.end()


main(sys.argv[1], int(sys.argv[2]))
