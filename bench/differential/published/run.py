"""Published kernels on Triton's interpreter and compiled by Kiln for the CPU: the same memory afterwards?

    kiln --json check FOLDER > kernels.json
    PYTHONPATH=build/release/python python bench/differential/published/run.py kernels.json --seed 1

Needs Python with Triton, torch and numpy; no GPU. `kiln check` says which kernels there are and what types their
arguments may have; their values are drawn here. Each side runs each kernel in a process of its own with a time limit.
"""
import argparse
import ast
import collections
import json
import math
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import torch

import arena

HERE = os.path.dirname(os.path.abspath(__file__))
FLOATS = ("fp16", "bf16", "fp32", "fp64", "fp8e4nv", "fp8e5")
DTYPES = {"fp16": "float16", "fp32": "float32", "bf16": "bfloat16", "fp64": "float64"}
# How far results may be apart, against their own size and that of all: sums in another order, other functions.
UNIT = {"fp16": 2e-3, "bf16": 1.6e-2, "fp32": 2e-4, "fp64": 2e-4, "fp8e4nv": 0.13, "fp8e5": 0.26}
NARROW = {"float16": 2e-3, "bfloat16": 1.6e-2, "float8": 0.13}  # words of a source


class Side:

    def __init__(self, name):
        self.name = name
        # A kernel runs once; and a cache of thousands of them is searched by every process.
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "worker.py"), name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=dict(os.environ, KILN_CACHE="0"))

    def send(self, job):
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()

    def receive(self, job):
        """{"changed": pages} or {"error": text}"""
        status = json.loads(self.process.stdout.readline())["status"]
        path = job["out"] + "." + self.name
        try:
            with open(path, "rb") as f: result = pickle.load(f)
            os.unlink(path)
        except (OSError, EOFError):
            signal = status & 127
            result = {"error": "timeout" if signal == 14 else f"signal {signal}"}
        return result


class Draw:
    """The arguments of one launch, from what `kiln check` assumed."""

    def __init__(self, kernel, seed, text):
        self.random, self.strides, self.arguments = random.Random(seed), {}, []
        # Dots take two operands of one dtype, so that one for all pointers is the usual case.
        self.float, self.mixed = self.random.choice(["fp32", "fp32", "fp16"]), self.random.random() < 0.2
        self.halve = seed % 3
        for assumed in kernel.get("assumed", []):
            if found := re.fullmatch(r"(\w+): (\*?)(\w+)(:16)?", assumed):
                name, star, dtype = found.group(1, 2, 3)
                value = self.pointer(name, dtype) if star else self.number(name, dtype)
            else:
                name, _, text_of = assumed.partition("=")
                value = self.constant(text_of)
            if value is None: raise ValueError(f"no values for {assumed}")
            self.arguments.append({"name": name, **value})
            if "value" in value and "strid" in name.lower(): self.strides.setdefault(self.tensor_of(name), []).append(
                self.arguments[-1])
        for group in self.strides.values(): self.fill_strides(group)
        axes = [f"({k})" in text or f"axis={k}" in text or f"program_id({k}" in text for k in (0, 1, 2)]
        self.grid = [3, 1, 1] if not axes[1] and not axes[2] else [2, 2, 2 if axes[2] else 1]
        if "num_programs" not in text and seed % 2: self.grid = [1 if axes[1] else 2, 1 + axes[1], 1 + axes[2]]

    @staticmethod
    def tensor_of(name):
        """stride_qz, stride_qh and q_row_stride, q_head_stride: what comes before the last word or letter."""
        return re.sub(r"_[a-z]+_strides?$|_?\w$", "", name.lower())

    def fill_strides(self, group):
        """The last is 1; the others leave room for what is inside of them."""
        at, side = 1, self.random.choice([72, 136, 264])
        for k, one in enumerate(reversed(group)):
            one["value"] = at
            at *= (side, 40, 5)[min(k, 2)]

    def pointer(self, name, dtype):
        if dtype in ("fp32", "fp16", "bf16") and (not self.mixed or self.random.random() < 0.5): dtype = self.float
        if dtype not in arena.TORCH: return None
        fill, low = "any", name.lower()
        if re.search(r"var|std|rms|lse|norm|scale", low): fill = "positive"
        if dtype in ("i32", "i64") and re.search(r"cu_|offs|indptr|seqlen|lens|start|cum", low): fill = "ascending"
        return {"pointer": [dtype, fill, self.random.randrange(1 << 20)]}

    def number(self, name, dtype):
        if dtype in FLOATS: return {"value": self.random.choice([0.5, 0.25, 1.5, 0.1, 1e-3])}
        if dtype == "i1": return {"value": self.random.random() < 0.5}
        if dtype[0] in "iu": return {"value": self.random.choice([3, 5, 8, 16, 17, 33, 48, 64, 100])}
        return None

    def constant(self, text):
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            name = DTYPES.get(text, text.split(".")[-1])
            return {"dtype": name} if re.fullmatch(r"(float|int|uint|bfloat)\w+", name) else None
        if isinstance(value, tuple): return {"tuple": value}
        if isinstance(value, bool) and self.random.random() < 0.4: value = not value
        elif isinstance(value, int) and value >= 32 and self.halve and self.random.random() < 0.5: value //= 2
        return {"value": value}


def numbers(data, dtype):
    x = torch.frombuffer(bytearray(data), dtype=arena.TORCH[dtype])
    return (x.double() if dtype in FLOATS else x).numpy()


def unit_of(dtype, pointers, text):
    units = [UNIT[dtype], *(unit for word, unit in NARROW.items() if word in text)]
    return max(units + [UNIT["fp16"]] if any(p["pointer"][0] == "fp16" for p in pointers) else units)


def compare(job, text, left, right):
    """(what differs or "", how many elements were written)"""
    pointers = [a for a in job["arguments"] if "pointer" in a]
    written, problems = 0, []
    for k, a in enumerate(pointers):
        pages = sorted(p for p in {*left, *right} if p[0] == k)
        if not pages: continue
        dtype = a["pointer"][0]
        pattern = arena.pattern(*a["pointer"])
        before = {p: arena.at_first(pattern, p[1]) for p in pages}
        x, y, old = (numbers(b"".join(side.get(p, before[p]) for p in pages), dtype) for side in (left, right, before))
        changed = ((x != old) | (y != old)) & ~((x != x) & (y != y) & (old != old))
        written += int(changed.sum())
        same = x == y
        if dtype in FLOATS:
            with np.errstate(all="ignore"):
                both = changed & np.isfinite(x) & np.isfinite(y)
                scale = math.sqrt(float(np.mean(np.minimum(np.abs(x[both]), 1e30)**2))) if both.any() else 1.0
                near = np.abs(x - y) <= unit_of(dtype, pointers, text) * (np.maximum(np.abs(x), np.abs(y)) + scale)
            same |= ((x != x) & (y != y)) | near
        if same.all(): continue
        i, size = int(np.argmin(same)), arena.PAGE * len(pages) // x.size
        index = (pages[i * size // arena.PAGE][1] * arena.PAGE + i * size % arena.PAGE) // size
        problems.append(f"{a['name']}[{index}] ({dtype}): {x[i]!r} in Triton, {y[i]!r} in Kiln, was {old[i]!r} "
                        f"({int((~same).sum())} of {int(changed.sum())} written)")
    return "; ".join(problems), written


def run(kernel, seed, sides, out, limit):
    """(what came of it, why, the arguments)"""
    with open(kernel["file"], encoding="utf-8") as f: text = f.read()
    try:
        drawn = Draw(kernel, seed, text)
    except ValueError as e:
        return "no arguments", str(e), ""
    if not any("pointer" in a for a in drawn.arguments): return "no arguments", "no pointers, so nothing to compare", ""
    job = {"arguments": drawn.arguments, "grid": drawn.grid, "file": kernel["file"], "kernel": kernel["kernel"],
           "line": kernel["line"], "limit": limit, "out": out}
    for s in sides: s.send(job)
    t, k = [s.receive(job) for s in sides]
    shown = f"grid {drawn.grid} " + " ".join(f"{a['name']}={[*a.values()][1]}" for a in drawn.arguments)
    if "error" in t and "error" in k: return "both fail", f"{t['error'][:150]!r} | {k['error'][:300]!r}", ""
    if "error" in t: return "Triton fails", t["error"][:250], ""
    if "error" in k: return "KILN FAILS", k["error"][:600], shown
    problem, written = compare(job, text, t["changed"], k["changed"])
    return "DIFFERS" if problem else "agree" if written else "nothing stored", problem, shown if problem else ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("checks", nargs="+", help="files with the output of `kiln --json check`")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--draws", type=int, default=1, help="launches of each kernel")
    p.add_argument("--only", default="", help="pattern of FILE:KERNEL")
    p.add_argument("--skip", default="^$", help="pattern of FILE:KERNEL, as of kernels that wait for other programs")
    p.add_argument("--limit", type=int, default=25, help="seconds of a launch")
    given = p.parse_args()
    sides, counts = [Side("triton"), Side("kiln")], collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for line in (line for check in given.checks for line in open(check, encoding="utf-8")):
            kernel = json.loads(line)
            if not kernel.get("ok") or not kernel["file"].endswith(".py"): continue
            name = f"{kernel['file']}:{kernel['kernel']}"
            if not re.search(given.only, name) or re.search(given.skip, name): continue
            for number in range(given.draws):
                seed = zlib.crc32(f"{name} {given.seed} {number}".encode())
                kind, why, shown = run(kernel, seed, sides, os.path.join(folder, "result"), given.limit)
                counts[kind] += 1
                print(f"{kind} {name} {number} {why}" + (f"\n    {shown}" if shown else ""), flush=True)
    for s in sides: s.process.stdin.close()
    print(", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return 1 if counts["DIFFERS"] or counts["KILN FAILS"] else 0


if __name__ == "__main__": sys.exit(main())
