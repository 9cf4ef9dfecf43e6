import argparse
import os

p = argparse.ArgumentParser(prog="bench.py", description="Runs the benchmark.", epilog="See the README.")
p.add_argument("op", choices=["matmul", "softmax"], help="what to run")
p.add_argument("sizes", nargs="*", type=int)
p.add_argument("--dtype", default="float16", choices=["float16", "bfloat16"], help="of the inputs")
p.add_argument("--iters", "-i", type=int, default=10, metavar="N", help="how often (default: %(default)s)")
p.add_argument("--no-check", dest="check", action="store_false")
p.add_argument("-v", action="count", default=0)
p.add_argument("--tag", action="append")
p.add_argument("--level", action="store_const", const=3)
p.add_argument("--lr", type=float, default="0.5")
p.add_argument("--save", nargs="?", const="out.csv", default=None)
p.add_argument("--shape", nargs=2, type=int)
p.add_argument("--graph", action=argparse.BooleanOptionalAction, default=True)
g = p.add_mutually_exclusive_group()
g.add_argument("--fast", action="store_true")
g.add_argument("--slow", action="store_true")


def show(words):
    try:
        a = p.parse_args(words)
        print(sorted(vars(a).items()))
    except SystemExit as e:
        print("exit", e.code)


show(["matmul", "1", "2", "--iters", "5", "-vv", "--tag", "a", "--tag=b", "--no-check"])
show(["softmax", "--lr", "1e-3", "--save", "--level"])
show(["softmax", "--save", "x.csv", "--shape", "3", "-4", "--no-graph"])
show(["softmax", "-i7", "-vvv", "--dty", "bfloat16"])
show(["softmax", "--", "5"])
show(["nope"])
show([])
show(["softmax", "--iters", "x"])
show(["softmax", "--unknown"])
show(["softmax", "--fast", "--slow"])
show(["softmax", "--shape", "1"])
print(p.parse_known_args(["matmul", "--other", "3", "4"]))
a, rest = p.parse_known_args(["matmul", "--zzz"])
print(rest, a.op, a.sizes)
q = argparse.ArgumentParser()
s = q.add_subparsers(dest="cmd", required=True)
r = s.add_parser("run", help="runs it")
r.add_argument("--n", type=int, default=1)
r.set_defaults(func=lambda a: a.n * 2)
t = s.add_parser("list")
t.add_argument("what", nargs="?", default="all")
a = q.parse_args(["run", "--n", "4"])
print(a.cmd, a.n, a.func(a))
print(q.parse_args(["list"]).what, q.parse_args(["list", "x"]).what)
try:
    q.parse_args([])
except SystemExit as e:
    print("exit", e.code)


def positive(text):
    n = int(text)
    if n <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return n


u = argparse.ArgumentParser(add_help=False)
u.add_argument("--n", type=positive, required=True)
grp = u.add_argument_group("extra")
grp.add_argument("--flag", action="store_true")
print(u.parse_args(["--n", "3", "--flag"]))
for words in (["--n", "-3"], []):
    try:
        u.parse_args(words)
    except SystemExit as e:
        print("exit", e.code)
print(argparse.Namespace(a=1, b="x"), argparse.Namespace(a=1) == argparse.Namespace(a=1))
v = argparse.ArgumentParser(prog="v", add_help=False)
v.add_argument("files", nargs="*", help="what to read")
v.add_argument("mode", nargs="?", choices=["a", "b"])
v.add_argument("pair", nargs=2, metavar="P")
print(v.format_help(), end="")
w = argparse.ArgumentParser(prog="w")
w.add_subparsers(dest="command").add_parser("run", help="runs it")
print(w.format_help(), end="")
# What begins with a dash and is no plain number is an option.
import contextlib, io
numbers = argparse.ArgumentParser()
numbers.add_argument("--x", type=float)
numbers.add_argument("y", nargs="*")
for words in (["--x", "-inf"], ["--x", "-nan"], ["--x", "-1e5"], ["-1_0"], ["-5."], ["--x", "-1"], ["--x", "-.5", "-1.5"], ["--", "-inf"]):
    try:
        with contextlib.redirect_stderr(io.StringIO()): print(words, numbers.parse_args(words))
    except SystemExit as e: print(words, "exit", e.code)
