"""CPU time of cold compilations for Hopper, Kiln's beside Triton's, without a GPU.

    python3 cold.py --kiln KILN --kernels DIR [--runs N] [--seed S] [--warm] [names]

For each driver the kernel of its first launch (without names: of those drivers whose kernels call tl.dot), the least
of N runs of each side, with no cache:
  ratio   Triton's CPU time over Kiln's: above 1 Kiln is faster
  kiln    ms of the whole process `kiln compile`, `llvm` and `asm` of it (by the wall clock, of the same run)
  triton  ms of the compilation alone, the first of a process that has imported Triton (with --warm: the second, behind
          that of a kernel of one store); `ptxas` of it
  SASS    bytes of machine code, Kiln's and Triton's
Both use Triton's ptxas. The last line has the median, the worst, and how many are below 3.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

from first_launch import driver_names, first_launch


def compile_child(name, seed, warm):
    compiled = first_launch(name, seed, warm)
    with tempfile.NamedTemporaryFile() as code:
        code.write(compiled.kernel.asm["cubin"])
        code.flush()
        size = text_bytes(code.name)
    print("COLD" + json.dumps([compiled.arguments, compiled.seconds * 1e3, compiled.ptxas * 1e3, size]))


def text_bytes(path):
    """Of an ELF64's sections of machine code."""
    data = open(path, "rb").read()
    number = lambda at, size: int.from_bytes(data[at:at + size], "little")
    sections, size, count, names = number(40, 8), number(58, 2), number(60, 2), number(62, 2)
    headers = [sections + i * size for i in range(count)]
    strings = number(headers[names] + 24, 8)
    return sum(number(h + 32, 8) for h in headers if data[strings + number(h, 4):].startswith(b".text."))


def triton_side(name, o, env):
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run([sys.executable, __file__, "--compile", name, str(o.seed), str(int(o.warm))],
                              capture_output=True, text=True,
                              env=dict(env, TRITON_CACHE_DIR=cache, TRITON_ALWAYS_COMPILE="1"))
    lines = [l for l in done.stdout.splitlines() if l.startswith("COLD")]
    if not lines:
        raise RuntimeError("Triton: " + (done.stderr.strip().splitlines() or ["nothing was launched"])[-1])
    return json.loads(lines[0][4:])


def kiln_side(name, arguments, o, env):
    source = os.path.join(o.kernels, "src_%s.py" % name)
    with tempfile.TemporaryDirectory() as folder:
        code = os.path.join(folder, "cubin")
        command = [o.kiln, "compile", source, "--target", "sm_90a", "--emit", "cubin", "--time-passes", "-o", code]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command + arguments, capture_output=True, text=True, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            raise RuntimeError("kiln: " + (done.stderr.strip().splitlines() or ["no message"])[0])
        size = text_bytes(code)
    phases = dict(l.rsplit(None, 1) for l in done.stderr.splitlines() if len(l.split()) == 2)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds * 1e3, float(phases["llvm"]), float(phases["cubin"]), size


def main():
    if sys.argv[1:2] == ["--compile"]:
        return compile_child(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
    p = argparse.ArgumentParser()
    p.add_argument("--kiln", required=True)
    p.add_argument("--kernels", required=True)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--warm", action="store_true")
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    import triton
    source_of = lambda name: os.path.join(o.kernels, "src_%s.py" % name)
    multiplies = lambda n: os.path.exists(source_of(n)) and "tl.dot(" in open(source_of(n)).read()
    names = o.names or [n for n in driver_names() if multiplies(n)]
    rows = []
    with tempfile.TemporaryDirectory() as toolkit:
        tools = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin")
        os.symlink(tools, os.path.join(toolkit, "bin"))
        # A library without nvJitLink's functions in the place of one that is installed: ptxas is taken then.
        os.mkdir(os.path.join(toolkit, "lib64"))
        os.symlink(next(l.split()[-1] for l in open("/proc/self/maps") if "/libc.so" in l),
                   os.path.join(toolkit, "lib64", "libnvJitLink.so.13"))
        env = dict(os.environ, PUBLISHED=os.path.abspath(o.kernels), KILN_CACHE="0", CUDA_HOME=toolkit)
        for name in names:
            try:
                theirs = min((triton_side(name, o, env) for _ in range(o.runs)), key=lambda r: r[1])
                ours = min((kiln_side(name, theirs[0], o, env) for _ in range(o.runs)), key=lambda r: r[0])
                rows.append((theirs[1] / ours[0], name, *ours[:3], theirs[1], theirs[2], ours[3], theirs[3]))
                print(name, "%.2f" % rows[-1][0], file=sys.stderr, flush=True)
            except RuntimeError as e:
                print(name, e, file=sys.stderr, flush=True)
    print("%-30s %5s  %6s %5s %5s  %6s %6s  %7s %7s" %
          ("kernel", "ratio", "kiln", "llvm", "asm", "triton", "ptxas", "SASS", "Triton"))
    for r in sorted(rows):
        print("%-30s %5.2f  %6.0f %5.0f %5.0f  %6.0f %6.0f  %7d %7d" % (r[1], r[0], *r[2:]))
    ratios = [r[0] for r in rows]
    if ratios:
        print("%d kernels: median %.2f, worst %.2f, below 3: %d" %
              (len(rows), statistics.median(ratios), min(ratios), sum(r < 3 for r in ratios)))
    return len(rows) != len(names)


sys.exit(main())
