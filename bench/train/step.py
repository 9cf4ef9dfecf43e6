"""A training step by Kiln and by PyTorch: two processes that take turns, round by round.

python3 step.py KILN [--seed S] [--count N] [--rounds R] [--largest N] [--device cuda|cpu] [--optimizer adamw|sgd]

A step is the loss, its gradients and the update of the parameters (model.py): of a two-layer MLP with GELU and of one
attention block with RMS norms, of shapes drawn by the seed. The same functions run in Kiln (torch.func.grad_and_value)
and in PyTorch: torch.compile of the whole step, and eager. From equal parameters and batches each side takes three
steps first. The L2 is flushed before each measured step. Prints for each draw the time of a step on the device (in a
CUDA graph, medians in microseconds; on the CPU with the calls), the same with the calls in front of it ("wall"),
PyTorch's faster time over Kiln's, and how far the parameters are apart after the three steps, as a share of the way that
they went.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

import model as steps

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lines"))
from graphs import graphed, timed

STEPS = 3


def wall_us(run):
    begin = time.perf_counter()
    run()[1].item()
    return (time.perf_counter() - begin) * 1e6


def taken(run, state):
    """What a few steps make of the parameters, and their losses."""
    losses = []
    for _ in range(STEPS):
        state, value = run(state)
        losses.append(value.item())
    return {k: t.float().cpu().numpy() for k, t in state["p"].items()}, losses


def apart(ours, theirs, start):
    """The distance of two ends over the way of one, over all parameters."""
    off = sum(float(np.square(ours[k] - theirs[k]).sum()) for k in start)
    way = sum(float(np.square(theirs[k] - start[k]).sum()) for k in start)
    return math.sqrt(off / way)


def measure(o, name, seed):
    model = steps.MODELS[name](seed, o.largest)
    torch.manual_seed(seed)
    state = steps.initial(model, o.device)
    x, target = model.batch(o.device)

    def step(state):
        return steps.step(model, state, x, target, o.optimizer)

    torch._dynamo.reset()
    compiled = torch.compile(step, dynamic=False)
    ask = tempfile.mkdtemp()
    start = {k: t.cpu().numpy() for k, t in state["p"].items()}
    np.savez(os.path.join(ask, "given.npz"), x=x.float().cpu().numpy(), target=target.cpu().numpy(), **start)
    here = os.path.dirname(os.path.abspath(__file__))
    script = os.path.join(ask, "kiln_step.py")
    with open(script, "w") as f:
        f.write(open(os.path.join(here, "model.py")).read() + open(os.path.join(here, "kiln_tail.py")).read())
    argv = [o.kiln, "run", script, name, seed, o.largest, o.optimizer, o.device, STEPS, o.rounds, ask]
    if o.device == "cpu":
        argv[2:2] = ["--device", "cpu"]
    kiln = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, text=True)
    peers = {"compile": compiled, "eager": step}
    ends = {n: taken(run, state) for n, run in peers.items()}
    us = {n: [] for n in [*peers, "kiln"]}
    wall = {n: [] for n in us}
    graphs = {n: graphed(run, (state, )) for n, run in peers.items()} if o.device != "cpu" else {}
    flushed = torch.empty(1 << 28, dtype=torch.int8, device=o.device)
    losses = kiln.stdout.readline().split()
    if losses[:1] != ["losses"] or kiln.stdout.readline().split() != ["ready"]:
        sys.exit(f"kiln ended at {model.text}")
    for r in range(o.rounds):
        for n, run in peers.items():
            wall[n].append(wall_us(lambda: run(state)))
            us[n].append(timed(graphs[n], flushed) if graphs else wall[n][-1])
        open(f"{ask}/{r}", "w").close()
        a, b = [float(t) for t in kiln.stdout.readline().split()]
        us["kiln"].append(a)
        wall["kiln"].append(b)
    kiln.wait()
    with np.load(os.path.join(ask, "kiln.npz")) as file:
        end = {k: file[k] for k in start}
    us, wall = [{n: statistics.median(v) for n, v in t.items()} for t in (us, wall)]
    ratio = min(us["compile"], us["eager"]) / us["kiln"]
    eager = ends["eager"][0]
    print("%-44s %9.0f %9.0f %9.0f %9.2f  %9.0f %9.0f %9.0f  %8.1e %8.1e" %
          (model.text, us["compile"], us["eager"], us["kiln"], ratio, wall["compile"], wall["eager"], wall["kiln"],
           apart(end, eager, start), apart(ends["compile"][0], eager, start)), flush=True)
    if abs(float(losses[-1]) - ends["eager"][1][-1]) > 0.02 * abs(ends["eager"][1][-1]):
        print(f"  the losses differ: {losses[1:]} and {ends['eager'][1]}")
    return ratio


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=6)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--largest", type=int, default=8192, help="of a dimension")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    o = p.parse_args()
    where = torch.cuda.get_device_name() if o.device != "cpu" else "cpu"
    print(f"seed {o.seed}, {o.count} steps with {o.optimizer}, {where}, torch {torch.__version__}")
    print("step                                           compile     eager      kiln  peer/kiln   "
          "wall: compile, eager, kiln   apart: kiln, compile")
    ratios = [measure(o, ["mlp", "block"][i % 2], o.seed * 1000 + i) for i in range(o.count)]
    print("geometric mean %.3f, worst %.2f" % (math.exp(sum(map(math.log, ratios)) / len(ratios)), min(ratios)))


if __name__ == "__main__":
    main()
