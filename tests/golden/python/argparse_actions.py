import argparse
def t(p, argv):
    try: print(p.parse_args(argv))
    except SystemExit as e: print("exit", e.code)
p = argparse.ArgumentParser(prog="x"); s = p.add_subparsers(dest="cmd"); c = s.add_parser("check", aliases=["c"]); c.add_argument("--flag", action="store_true"); c.add_argument("rest", nargs=argparse.REMAINDER)
for a in (["check", "--flag", "a", "--b"], ["check", "a", "-h"], ["c", "--flag"], ["check", "--b"], ["check", "--", "--b"]): t(p, a)
p = argparse.ArgumentParser(prog="x"); p.add_argument("-n", type=int); p.add_argument("script"); p.add_argument("args", nargs="...")
for a in (["-n", "3", "s.py", "--x", "-n", "5"], ["s.py"], [], ["s.py", "-n", "4"]): t(p, a)
p = argparse.ArgumentParser(prog="x"); p.add_argument("-n", type=int, default=3); p.add_argument("-x", nargs="?", const=7, type=int); p.add_argument("--list", nargs="*"); p.add_argument("-a", action="append"); p.add_argument("--ext", action="extend", nargs="+", type=int); p.add_argument("pos", nargs="?"); p.add_argument("--version", action="version", version="%(prog)s 1.0"); p.add_argument("-q", "--quiet", action="store_const", const=0, dest="lvl", default=1)
for a in (["-n5"], ["-n", "-5"], ["-x"], ["-x", "4"], ["--list"], ["--list", "a", "b", "--", "c"], ["-a", "1", "-a2"], ["--ext", "1", "2", "--ext", "3"], ["-q", "p"], ["--lis", "x"], ["--version"], ["-n=4"], ["--ext=1"], ["-xq"], ["p", "q"], ["--list=3"], ["-5"], ["--no"]): t(p, a)
k, u = p.parse_known_args(["--foo", "1", "-n", "2", "b", "--bar=3"]); print(k, u)
p = argparse.ArgumentParser(prog="x", add_help=False, fromfile_prefix_chars=None, epilog="the end", usage="%(prog)s [o]", argument_default=argparse.SUPPRESS, allow_abbrev=False); p.add_argument("--foo", help="f %(type)s", type=float, metavar="F"); g = p.add_argument_group("grp", "descr"); g.add_argument("--bar", help=argparse.SUPPRESS); g.add_argument("--baz", help="b" * 100)
p.print_help(); t(p, []); t(p, ["--foo", "1e3"]); t(p, ["--fo", "1"])
def pos_int(s):
    v = int(s)
    if v <= 0: raise argparse.ArgumentTypeError("not positive")
    return v
p = argparse.ArgumentParser(prog="x", exit_on_error=False); p.add_argument("--v", type=pos_int, choices=range(1, 5), required=True); m = p.add_mutually_exclusive_group(required=False); m.add_argument("--a", action="store_true"); m.add_argument("--b", action="store_true")
for a in (["--v", "3"], ["--v", "0"], ["--v", "x"], ["--v", "9"], [], ["--v", "1", "--a", "--b"]):
    try: t(p, a)
    except argparse.ArgumentError as e: print("AE", e)
print(p.format_usage())
class A(argparse.Action):
    def __call__(self, parser, ns, values, option_string=None): setattr(ns, self.dest, {"v": values, "o": option_string})
p = argparse.ArgumentParser(prog="x"); 
p.add_argument("--kv", action=A, nargs=2); t(p, ["--kv", "a", "b"])
p.set_defaults(z=5); print(p.get_default("z"), p.parse_args([]).z, argparse.Namespace(a=1) == argparse.Namespace(a=1), "a" in argparse.Namespace(a=1))
