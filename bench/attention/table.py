# What run.py and gradient.py share: times of settings by other programs and by PyTorch, and the table of ratios.
import math
import subprocess

import triton.testing
from torch.nn.attention import sdpa_kernel


def times_of(command):
    """Of each setting that the program prints as `time NUMBER US [WORDS]`: microseconds and the words. What else it
    prints is passed on."""
    found = {}
    done = subprocess.run(command, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        words = line.split()
        if words and words[0] == "time":
            found[int(words[1])] = (float(words[2]), words[3:])
        else:
            print(line)
    if done.returncode:
        print(done.stderr)
    return found


def microseconds(work):
    return triton.testing.do_bench(work, warmup=5, rep=25, return_mode="median") * 1000


def sdpa_time(backend, prepare):
    """Microseconds of the work that `prepare()` returns, with attention by `backend`; None where PyTorch has none."""
    try:
        with sdpa_kernel(backend):
            return microseconds(prepare())
    except RuntimeError:
        return None


class Table:
    """Rows of settings with Kiln's time and the peers' times over it, and the geometric means at the end."""

    def __init__(self, peers, *more):
        self.ratios = {peer: [] for peer in peers}
        named = "".join(f" {m} |" for m in more)
        print("| d | | heads of keys x group | n | dtype | Kiln us | TFLOP/s |" + named +
              "".join(f" / {peer} |" for peer in peers))
        print("|--:|---|---|--:|---|--:|--:|" + "---|" * len(more) + "--:|" * len(self.ratios))

    def row(self, setting, us, flop, times, *more):
        """`times`: microseconds of each peer, None where it has none."""
        d, causal, keys, group, n, dtype = setting
        cells = list(more)
        for peer, time in times.items():
            cells.append(f"{time / us:.2f}" if time else "-")
            if time:
                self.ratios[peer].append(time / us)
        print(f"| {d} | {'causal' if causal else 'full'} | {keys} x {group} | {n} | {dtype} | {us:.1f} | "
              f"{flop / us / 1e6:.0f} | {' | '.join(cells)} |", flush=True)

    def end(self):
        for peer, found in self.ratios.items():
            if found:
                mean = math.exp(sum(map(math.log, found)) / len(found))
                print(f"\n{peer}'s time over Kiln's: geometric mean {mean:.3f} of {len(found)}, worst {min(found):.2f}")
