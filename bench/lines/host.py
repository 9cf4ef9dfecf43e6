"""Lines of PyTorch on the CPU by Kiln and by PyTorch in eager mode: CPU time on one thread. Needs no GPU.

python3 host.py KILN [--seed S] [--count N] [--limit SECONDS] [NAME...]

Lines (lines.py) and shapes (draw.py) are drawn as for peers.py, at the sizes of a GPU; NAME is the beginning of a
line's name or module. Each side runs a line three times in a process of its own, and its CPU time is the least of them, so
that other processes change it little. A side that takes longer than --limit is left out. Prints each draw, the worst
ones and the geometric mean of PyTorch's time over Kiln's.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch looks for GPUs: the lines are made where one is
HERE = os.path.dirname(os.path.abspath(__file__))
SIDE = """
import sys, time
import torch
import lines
torch.manual_seed(int(sys.argv[2]))
f, given = lines.LINES[sys.argv[1]](lines.Draw(int(sys.argv[2])))
times = []
for _ in range(3):
    start = time.process_time()
    y = f(*given)
    y = list(y) if isinstance(y, (tuple, list)) else [y]
    torch.cpu.synchronize()
    times.append(time.process_time() - start)
print(min(times), times[0])
"""


def measured(command, limit):
    """Seconds at best and of the first run, or why there are none."""
    env = {**os.environ, "KILN_CACHE": "0", "KILN_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=HERE, env=env)
    except subprocess.TimeoutExpired:
        return f"more than {limit:g} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return [float(word) for word in done.stdout.split()]


def main():
    import lines
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln")
    p.add_argument("names", nargs="*")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=60, help="draws")
    p.add_argument("--limit", type=float, default=60, help="seconds of a side")
    o = p.parse_intermixed_args()
    draws = lines.drawn(o.seed, 0, o.names)
    random.Random(o.seed).shuffle(draws)
    rows = []
    for name, seed in draws[:o.count]:
        tail = ["-c", SIDE, name, str(seed)]
        torch = measured([sys.executable, *tail], o.limit)
        here = [os.path.abspath(o.kiln), "--device", "cpu", *tail]
        kiln = torch if isinstance(torch, str) else measured(here, o.limit)
        if isinstance(kiln, str):
            print("%-28s seed %d: %s: %s" % (name, seed, "PyTorch" if kiln is torch else "Kiln", kiln), flush=True)
            continue
        ratio = torch[0] / max(kiln[0], 1e-6)
        rows.append((ratio, "%-28s seed %d: %.2f (kiln %.2f ms, its first run %.0f, PyTorch %.2f)" % (
            name, seed, ratio, 1e3 * kiln[0], 1e3 * kiln[1], 1e3 * torch[0])))
        print(rows[-1][1], flush=True)
    rows.sort()
    print("the worst:", *(text for _, text in rows[:10]), sep="\n  ")
    if rows:
        ratios = [r for r, _ in rows]
        print(f"seed {o.seed}: {len(rows)} draws, PyTorch's time over Kiln's: geometric mean "
              f"{statistics.geometric_mean(ratios):.2f}, median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
