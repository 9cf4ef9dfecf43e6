# Attention over settings drawn from a seed: kernels/attention under Kiln and, where Python has it, under Triton, beside
# PyTorch's scaled_dot_product_attention by cuDNN and by FlashAttention-2. Prints a table.
# Usage: python3 bench/attention/run.py KILN SEED
import math
import pathlib
import subprocess
import sys
import tempfile

import torch
import triton.testing
from torch.nn.attention import SDPBackend, sdpa_kernel

HERE = pathlib.Path(__file__).parent
TAIL = (HERE / "tail.py").read_text()
FOR_TRITON = """
import torch
triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
"""


def times_of(command):
    """Of each setting: microseconds and configuration. What else the script prints is passed on."""
    found = {}
    done = subprocess.run(command, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        words = line.split()
        if words and words[0] == "time":
            found[int(words[1])] = (float(words[2]), words[3])
        else:
            print(line)
    if done.returncode:
        print(done.stderr)
    return found


def sdpa_time(setting, backend, tensors):
    d, causal, keys, group, n, dtype = setting
    q, k, v = (t[None] for t in tensors(*setting))
    try:
        with sdpa_kernel(backend):
            attend = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                              enable_gqa=group > 1)
            return triton.testing.do_bench(attend, warmup=5, rep=25, return_mode="median") * 1000
    except RuntimeError:
        return None


def main(kiln, seed):
    kernel = (HERE / "../../kernels/attention/kernel.py").read_text()
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "for_kiln.py").write_text(kernel + TAIL)
    (folder / "for_triton.py").write_text(kernel + FOR_TRITON + TAIL)
    names = {}
    exec(compile(TAIL, "tail.py", "exec"), names)
    ours = times_of([kiln, "run", str(folder / "for_kiln.py"), str(seed)])
    theirs = times_of([sys.executable, str(folder / "for_triton.py"), str(seed)])
    print("| d | | heads of keys x group | n | dtype | Kiln us | TFLOP/s | configuration | / Triton | / cuDNN "
          "| / FlashAttention-2 |")
    print("|--:|---|---|--:|---|--:|--:|---|--:|--:|--:|")
    ratios = {"Triton": [], "cuDNN": [], "FlashAttention-2": []}
    for number, setting in enumerate(names["draw"](seed)):
        if number not in ours:
            continue
        d, causal, keys, group, n, dtype = setting
        us, config = ours[number]
        peers = {"Triton": theirs.get(number, (None,))[0],
                 "cuDNN": sdpa_time(setting, SDPBackend.CUDNN_ATTENTION, names["tensors"]),
                 "FlashAttention-2": sdpa_time(setting, SDPBackend.FLASH_ATTENTION, names["tensors"])}
        cells = []
        for peer, time in peers.items():
            cells.append(f"{time / us:.2f}" if time else "-")
            if time:
                ratios[peer].append(time / us)
        print(f"| {d} | {'causal' if causal else 'full'} | {keys} x {group} | {n} | {dtype} | {us:.1f} | "
              f"{names['flop'](*setting) / us / 1e6:.0f} | {config} | {' | '.join(cells)} |")
    for peer, found in ratios.items():
        if found:
            mean = math.exp(sum(map(math.log, found)) / len(found))
            print(f"\n{peer}'s time over Kiln's: geometric mean {mean:.3f} of {len(found)}, worst {min(found):.2f}")


main(sys.argv[1], int(sys.argv[2]))
