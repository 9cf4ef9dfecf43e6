"""Sorts, selections and running sums of 2^20 to 2^28 elements by Kiln and by PyTorch: the same calls in two processes.

python3 large.py KILN [--seed S] [--count N]

Lengths are drawn evenly in the logarithm. Each call is timed as do_bench does it (cold L2, its median), PyTorch's
process after Kiln's. A running sum is held against a copy of its tensor too. Prints a table and geometric means.
"""
import argparse
import math
import os
import subprocess
import sys
from statistics import geometric_mean

SIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "large_side.py")


def times_of(command):
    """{(name, size): {what: milliseconds}} of a side's lines."""
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    times = {}
    for line in out.splitlines():
        name, size, what, ms = line.split()
        times.setdefault((name, int(size)), {})[what] = float(ms)
    return times


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=4, help="draws of each operation")
    o = p.parse_args()
    tail = [SIDE, str(o.seed), str(o.count)]
    kiln, torch = times_of([o.kiln, "run", *tail]), times_of([sys.executable, *tail])
    print(f"seed {o.seed}; milliseconds; torch / kiln; copy / kiln for running sums")
    print("%-16s %10s %9s %9s %7s %7s" % ("operation", "elements", "kiln", "torch", "ratio", "copy"))
    ratios, copies = {}, []
    for key, ours in kiln.items():
        ratio = torch[key]["call"] / ours["call"]
        ratios.setdefault(key[0].split("-")[0], []).append(ratio)
        copy = min(torch[key]["copy"], ours["copy"]) / ours["call"] if "copy" in ours else math.nan
        if "copy" in ours:
            copies.append(copy)
        print("%-16s %10d %9.3f %9.3f %7.2f %7.2f" % (*key, ours["call"], torch[key]["call"], ratio, copy))
    for name, found in ratios.items():
        print(f"{name}: geometric mean {geometric_mean(found):.2f} of {len(found)}, worst {min(found):.2f}")
    print(f"running sums against a copy: geometric mean {geometric_mean(copies):.2f}, worst {min(copies):.2f}")


main()
