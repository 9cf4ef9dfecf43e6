"""First results of drawn lines by Kiln and by torch.compile: milliseconds from the call to the result, caches empty.

python3 first.py KILN [--seed S] [--count N] [NAME...]

Each line is called once in a process that has the device and has compiled something before. The two processes run one
after the other. Prints each line and the median of torch.compile's time over Kiln's.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

SIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "first_side.py")


def times_of(command, caches):
    env = dict(os.environ, **{name: os.path.join(caches, name)
                              for name in ("KILN_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")})
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env).stdout
    found = {}
    for line in out.splitlines():
        number, name, ms = line.split()
        found[int(number)] = (name, float(ms))
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("names", nargs="*")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=40, help="draws; 0: each line once")
    o = p.parse_intermixed_args()
    tail = [SIDE, str(o.seed), str(o.count), *o.names]
    with tempfile.TemporaryDirectory() as caches:
        kiln, torch = times_of([o.kiln, "run", *tail], caches), times_of([sys.executable, *tail], caches)
    print(f"seed {o.seed}; milliseconds to the first result")
    print("%-28s %9s %13s %7s" % ("line", "kiln", "torch.compile", "ratio"))
    ratios = []
    for number in sorted(kiln.keys() & torch.keys()):
        name, ours = kiln[number]
        theirs = torch[number][1]
        ratios.append(theirs / ours)
        print("%-28s %9.1f %13.1f %7.1f" % (name, ours, theirs, theirs / ours))
    print(f"median {statistics.median(ratios):.1f} of {len(ratios)}, least {min(ratios):.1f}")


main()
