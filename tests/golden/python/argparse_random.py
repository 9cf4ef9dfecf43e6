import argparse, random, sys, io, contextlib
for seed in range(60):
    r = random.Random(seed)
    def make(prog, depth=0):
        p = argparse.ArgumentParser(prog=prog, exit_on_error=True, allow_abbrev=r.random() < 0.8, description=r.choice([None, "does things to well-known and not so well-known files of every kind there is, and then some"]))
        npos = r.randrange(3)
        for i in range(npos):
            kw = {}
            n = r.choice([None, None, "?", "*", "+", 2, 1])
            if n is not None: kw["nargs"] = n
            if r.random() < .3: kw["type"] = int
            if r.random() < .2: kw["default"] = r.choice([7, "8", [1]]) if n in ("?", "*") else 7
            if n != "*" and r.random() < .2: kw["choices"] = [1, 2] if "type" in kw else ["a", "1"]
            if r.random() < .3: kw["help"] = "the help of it which is long enough to be broken over lines, multi-word"
            p.add_argument(f"p{i}", **kw)
        for name in r.sample([["-a"], ["--foo"], ["--foobar"], ["-b", "--bar"], ["-v", "--verbose"], ["-x"], ["--q-r"], ["-1"]][: 8 if r.random() < .2 else 7], r.randrange(1, 6)):
            kind = r.choice(["store"] * 4 + ["store_true", "store_false", "count", "append", "extend", "store_const", "append_const", "bool"])
            kw = {}
            if kind in ("store", "append", "extend"):
                n = r.choice([None, None, "?", "*", "+", 2, "..."])
                if kind == "extend" and n is None: n = "+"
                if n is not None: kw["nargs"] = n
                if r.random() < .3: kw["type"] = int
                if n == "?" and r.random() < .5: kw["const"] = "9"
                if r.random() < .2: kw["metavar"] = "M"
                if r.random() < .2 and kind == "store": kw["default"] = r.choice(["5", 5])
            if kind in ("store_const", "append_const"): kw["const"] = 42
            if r.random() < .1 : kw["required"] = True
            if r.random() < .2: kw["help"] = "h %(default)s of a tri-state and-more-hyphens thing that may be given at most once or so"
            if kind == "bool":
                if not any(o.startswith("--") for o in name): kind = "store_true"
                else: kind = argparse.BooleanOptionalAction
            p.add_argument(*name, action=kind, **kw)
        if depth == 0 and r.random() < .3:
            s = p.add_subparsers(**({"dest": "cmd"} if r.random() < .8 else {}), required=r.random() < .5, **({"help": "what to do"} if r.random() < .3 else {}), **({"title": "the commands"} if r.random() < .2 else {}))
            for c in ("run", "list"):
                k2 = {"help": c + " it"} if r.random() < .7 else {}
                q = s.add_parser(c, aliases=r.choice([[], [c[0]]]), **k2)
                q.add_argument("--n", type=int, default=1); q.add_argument("--foo", action="store_true"); q.add_argument("w", nargs=r.choice(["?", "*", "...", None] if False else ["?", "*", "..."]))
        return p
    p = make("prog")
    for k in range(6):
        words = [r.choice(["a", "1", "2", "b c", "--foo", "--foo=3", "--foob", "--fo", "-a", "-a1", "-av", "-vv", "-b", "-b=2", "--bar", "--bar=", "--no-foo", "-x", "-xv", "--q", "--q-r=a b", "-1", "-1.5", "-1e5", "--", "-", "--zz", "-z", "run", "list", "r", "-h", "--n", "--n=3", "--verbose", ""]) for _ in range(r.randrange(7))]
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                res = sorted(vars(p.parse_args(words)).items()) if k % 2 else p.parse_known_args(words)
        except SystemExit as e: res = e.code
        except Exception as e: res = type(e).__name__
        print(seed, words, res, err.getvalue().strip().split("\n")[-1], out.getvalue() if seed % 5 == 0 else "")
    print(p.format_usage() if seed % 3 == 0 else p.format_help())
