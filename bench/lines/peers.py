"""Lines of PyTorch by Kiln and by PyTorch: two processes that take turns, round by round, each line as a CUDA graph.

python3 peers.py KILN [--seed S] [--count N] [--rounds R] [--jobs J] [NAME...]

Lines (lines.py) and shapes (draw.py) are drawn; NAME is the beginning of a line's name, or of its module's, such as
lines_speech. The L2 is flushed before each round. The peer is the faster of torch.compile and eager. Prints each draw
(medians in microseconds and the peer's time over Kiln's), the worst ones, and the geometric mean. Kernels of
torch.compile are compiled ahead by J processes.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch

import lines
from graphs import graphed, shapes_of, timed


def compiled(f):
    torch._dynamo.reset()
    return torch.compile(f, dynamic=False)


def made(draw):
    name, seed = draw
    f, args = lines.LINES[name](lines.Draw(seed))
    return f, args


def warm(draws):
    for draw in draws:
        f, args = made(draw)
        try:
            compiled(f)(*args)
        except Exception:
            pass  # the measuring process tells it


def peers_of(f, args):
    """Graphs of torch.compile and of eager, and why there is none."""
    graphs, why = {}, ""
    for name in ("compile", "eager"):
        try:
            graphs[name] = graphed(compiled(f) if name == "compile" else f, args)
        except Exception as e:
            why = str(e).split("\n")[0]
    return graphs, why


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("names", nargs="*")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=0, help="draws; each line once unless given")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--jobs", type=int, default=8)
    p.add_argument("--warm", type=int, default=-1, help="(own use)")
    o = p.parse_intermixed_args()
    draws = lines.drawn(o.seed, o.count, o.names)
    if o.warm >= 0:
        return warm(draws[o.warm :: o.jobs])
    jobs = [subprocess.Popen([sys.executable, *sys.argv, "--warm", str(j)]) for j in range(o.jobs)]
    for j in jobs:
        j.wait()

    here = os.path.dirname(os.path.abspath(__file__))
    ask = tempfile.mkdtemp()
    kiln = subprocess.Popen([o.kiln, "run", os.path.join(here, "kiln_side.py"), str(o.rounds), ask, str(o.seed),
                             str(o.count), *o.names], stdout=subprocess.PIPE, text=True)
    flushed = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int32, device="cuda")
    print(f"seed {o.seed}, {len(draws)} lines, {torch.cuda.get_device_name()}, torch {torch.__version__}")
    print("line                       compile     eager      kiln  peer/kiln  shapes (bf16 unless said)")
    rows, failed = [], []
    for i, draw in enumerate(draws):
        f, args = made(draw)
        graphs, why = peers_of(f, args)
        for g in graphs.values():
            for _ in range(3):
                g.replay()
        torch.cuda.synchronize()
        answer = kiln.stdout.readline().split(maxsplit=2)
        if answer[:2] == ["fails", str(i)]:
            failed.append((draw[0], answer[2].strip()))
            continue
        if answer[:2] != ["ready", str(i)]:
            sys.exit(f"kiln ended at {draw[0]}: {answer}")
        us = {name: [] for name in [*graphs, "kiln"]}
        for r in range(o.rounds):
            for name, g in graphs.items():
                us[name].append(timed(g, flushed))
            open(f"{ask}/{i}.{r}", "w").close()
            us["kiln"].append(float(kiln.stdout.readline()))
        m = {name: statistics.median(v) for name, v in us.items()}
        if not graphs:
            failed.append((draw[0], "in PyTorch: " + why))
            continue
        ratio = min(m[name] for name in graphs) / m["kiln"]
        rows.append((ratio, draw[0], m, shapes_of(args)))
        print("%-24s %9.1f %9.1f %9.1f %9.2f   %s" %
              (draw[0], m.get("compile", math.nan), m.get("eager", math.nan), m["kiln"], ratio, shapes_of(args)),
              flush=True)
        del graphs, f, args
    rows.sort(key=lambda r: r[0])
    ratios = [r[0] for r in rows] or [math.nan]
    print("worst:", ", ".join("%s %.2f" % (r[1], r[0]) for r in rows[:8]))
    print("geometric mean %.3f, 5th percentile %.2f, worst %.2f, over %d lines; %d do not run" %
          (math.exp(sum(map(math.log, ratios)) / len(ratios)), ratios[len(ratios) // 20], ratios[0], len(rows),
           len(failed)))
    for name, why in failed:
        print("does not run:", name, why)


if __name__ == "__main__":
    main()
