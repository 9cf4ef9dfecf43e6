"""Random programs of the script language under Python and under Kiln; both must print the same.

    python bench/differential/python.py --kiln build/release/bin/kiln --seed 1 --count 1000

Needs CPython 3.11, whose interpreter runs this file too; no GPU and no tensors. Each program is a file: numbers, texts
and containers, slices and methods, formats, comprehensions, functions of every kind of parameter, closures, generators,
classes with operators and properties, exceptions, `with`, loops with `else`, unpacking, augmented assignment. Every
value is printed by repr(), and an exception by the name of its class: the texts of Kiln's messages are its own. Sets
are printed in order. Programs that need what docs/scripts.md leaves out (ints beyond 128 bits) are counted and left
out. A program that differs is printed with both outputs where they part; `--keep DIR` keeps its file.
"""
import argparse
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

PRELUDE = '''\
def plain(v):
    if isinstance(v, (set, frozenset)):
        return [type(v).__name__] + sorted((int(x) if x is True else plain(x) for x in v), key=repr)
    if isinstance(v, dict): return {k: plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)): return type(v)(map(plain, v)) if type(v) in (list, tuple) else v
    return v


def show(place, f):
    try:
        print(place, repr(plain(f())))
    except Exception as e:
        print(place, type(e).__name__)


class Vec:
    made = 0

    def __init__(self, x, y=1):
        self.x, self.y = x, y
        Vec.made += 1

    def __repr__(self): return f"Vec({self.x!r}, {self.y!r})"
    def __add__(self, o): return Vec(self.x + o.x, self.y + o.y) if isinstance(o, Vec) else NotImplemented
    def __radd__(self, o): return Vec(self.x + o, self.y)
    def __mul__(self, k): return Vec(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __neg__(self): return Vec(-self.x, -self.y)
    def __eq__(self, o): return isinstance(o, Vec) and (self.x, self.y) == (o.x, o.y)
    def __lt__(self, o): return (self.x, self.y) < (o.x, o.y)
    def __hash__(self): return hash((self.x, self.y))
    def __len__(self): return 2
    def __getitem__(self, i): return (self.x, self.y)[i]
    def __iter__(self): return iter((self.x, self.y))
    def __contains__(self, v): return v == self.x or v == self.y
    def __call__(self, *a, **k): return (len(a), sorted(k), self.x)
    def __bool__(self): return bool(self.x)
    def __format__(self, spec): return f"<{self.x:{spec}}>" if spec else "<>"
    def __abs__(self): return abs(self.x) + abs(self.y)
    def __divmod__(self, o): return (self.x, o)
    def __reversed__(self): return iter((self.y, self.x))
    def __index__(self): return 2
    def __enter__(self): return self.x

    def __exit__(self, kind, value, trace):
        print("exit", kind and kind.__name__)
        return kind is KeyError

    @property
    def size(self): return len(self)

    @size.setter
    def size(self, v): self.x = v

    @classmethod
    def of(cls, *a): return cls(*a)

    @staticmethod
    def twice(v): return v * 2

    def __getattr__(self, name):
        if name.startswith("no"): raise AttributeError(name)
        return name.upper()


class Wide(Vec):

    def __init__(self, *a, z=0):
        super().__init__(*a)
        self.z = z

    def __repr__(self): return "Wide" + super().__repr__()[3:]
    def __add__(self, o): return ("wide", super().__add__(o))
    def __setitem__(self, i, v): self.y = (i, v)
    def __iadd__(self, o):
        self.y = o
        return self


class Own(dict):
    def __missing__(self, k): return (k, "missing")


class Failure(ValueError):
    def __init__(self, code, *rest):
        super().__init__(code, *rest)
        self.code = code


def numbers(n, step=1):
    got = None
    i = 0
    try:
        while i < n:
            got = yield i * step if got is None else got
            i += 1
    finally:
        print("numbers end")
    return "done"


def through(n):
    r = yield from numbers(n, 2)
    yield r
'''

# Small, large, at the edges of 64 bits, and a bool, which is an int.
INTS = ["0", "1", "2", "3", "-1", "-7", "10", "255", "1000", "2**40", "-2**63", "True"]
# Zeros with a sign, numbers that print with an exponent, infinity and NaN.
FLOATS = ["0.0", "-0.0", "1.5", "-2.25", "1e10", "1e-7", "0.1", "3.0", "1e16", "float('inf')", "float('nan')", "1/3"]
STRS = [
    # Blanks, quotes, letters beyond ASCII, a final sigma, a title-case letter, a separator of lines: each has its rule.
    "''", "'a'", "'abc'", "'Hello World'", "' x  y '", "'a,b,,c'", "'12'", "'éß日'", "'A\\tb\\n'", "'aXbXc'",
    "\"it's\"", "'-0x1f'", "'ΑΣ ǅ'", "'\\xa0\\u2028z'", "'{}'", "'%s'"
]
SPECS = [
    "", "5", "<6", ">6", "^7", "*^9", "05", "+", ",", "x", "#x", "b", ".2f", "e", "g", ".3", "10.3f", "%", "s", "_",
    "08.3f", "-<5d", " d", "n", "c", "=+8", "#o", ".0f", "012,.1f", "G"
]


class Program:

    def __init__(self, seed):
        # One generator for the whole program: its seed is its name.
        self.random = random.Random(seed)
        self.lines, self.names, self.count, self.places = [], {}, 0, 0
        self.functions = []
        # One variable of each kind, so that every statement finds one.
        for kind in "ifslLdtSv":
            self.assign(kind)
        for _ in range(self.random.randint(12, 30)):
            self.statement("", 0)

    # --- names and places ---

    def fresh(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def place(self):
        self.places += 1
        return self.places

    def emit(self, indent, text):
        self.lines.append(indent + text)

    def chance(self, p):
        return self.random.random() < p

    def one(self, *choices):
        return self.random.choice(choices)

    def assign(self, kind, indent=""):
        name = self.fresh()
        self.emit(indent, f"{name} = {self.literal(kind)}")
        self.names.setdefault(kind, []).append(name)

    def name(self, kind):
        found = self.names.get(kind)
        return self.random.choice(found) if found else self.literal(kind)

    # --- values: i(nt) f(loat) s(tr) l(ist of ints) L(ist of strs) d(ict str->int) t(uple) S(et of ints) v(ector) ---

    def literal(self, kind):
        if kind == "i": return self.random.choice(INTS)
        if kind == "f": return self.random.choice(FLOATS)
        if kind == "s": return self.random.choice(STRS)
        if kind == "b": return self.one("True", "False")
        if kind == "l": return "[" + ", ".join(self.literal("i") for _ in range(self.random.randint(0, 5))) + "]"
        if kind == "L": return "[" + ", ".join(self.literal("s") for _ in range(self.random.randint(0, 4))) + "]"
        if kind == "d":
            return "{" + ", ".join(f"{self.literal('s')}: {self.literal('i')}"
                                   for _ in range(self.random.randint(0, 4))) + "}"
        if kind == "t":
            return "(" + "".join(
                self.literal(self.one("i", "f", "s")) + ", " for _ in range(self.random.randint(1, 4))) + ")"
        if kind == "S":
            return "{" + ", ".join(self.literal("i") for _ in range(self.random.randint(1, 4))) + "}"
        if kind == "v":
            return self.one(f"Vec({self.literal('i')})", f"Vec({self.literal('i')}, {self.literal('f')})",
                            f"Wide({self.literal('i')}, z={self.literal('s')})", "Wide(1, 2)")
        return "None"

    def value(self, kind, depth=2):
        """An expression that usually has that kind; now and then another one, so that errors are met."""
        if self.chance(0.03): kind = self.one(*"ifslLdtvb")
        # Depth ends here; a name is likelier than a literal, so that values flow through the program.
        if depth <= 0: return self.name(kind) if self.chance(0.7) else self.literal(kind)
        if self.chance(0.2): return self.name(kind)
        make = getattr(self, f"value_{kind}")
        return make(lambda k, d=depth - 1: self.value(k, d))

    def value_b(self, v):
        return self.one(
            lambda: f"({v('i')} {self.one('<', '<=', '>', '>=', '==', '!=')} {v(self.one('i', 'f'))})",
            lambda: f"({v('s')} in {v(self.one('s', 'L', 'd'))})", lambda: f"({v('i')} not in {v(self.one('l', 'S'))})",
            lambda: f"(not {v(self.one(*'ifslLdtSv'))})", lambda: f"({v('i')} < {v('f')} <= {v('i')})",
            lambda: f"({v('l')} == {v('l')})", lambda: f"({v('t')} < {v('t')})", lambda: f"({v('S')} <= {v('S')})",
            lambda: f"isinstance({v(self.one(*'ifslv'))}, {self.one('int', '(str, float)', 'Vec', 'list', 'object')})",
            lambda: f"{self.one('any', 'all')}({v(self.one('l', 'L'))})", lambda: f"callable({v(self.one('v', 'i'))})",
            lambda: f"{v('s')}.{self.one(*STR_TESTS)}()", lambda: f"bool({v(self.one(*'ifslLdtSv'))})",
            lambda: f"{v('s')}.startswith({v('s')})", lambda: f"({v('v')} == {v('v')})",
            lambda: f"hasattr({v('v')}, {self.one(repr('x'), repr('nope'), repr('other'))})",
            lambda: f"({v('i')} in {v('v')})", lambda: f"{v('S')}.isdisjoint({v('l')})",
            lambda: f"({v('b')} {self.one('and', 'or', '^', '&', '|', 'is', 'is not')} {v('b')})")()

    def value_i(self, v):
        return self.one(
            lambda: f"({v('i')} {self.one('+', '-', '*', '//', '%', '&', '|', '^')} {v('i')})",
            # Shifts stay small: results beyond 128 bits are left out of Kiln.
            lambda: f"({v('i')} {self.one('<<', '>>')} {self.one('1', '2', '3', v('b'))})",
            # Small bases for the same reason.
            lambda: f"(({v('i')}) % 50) ** {self.one('0', '1', '2', '3')}", lambda: f"(-{v('i')})",
            lambda: f"(~{v('i')})", lambda: f"len({v(self.one(*'slLdtSv'))})", lambda: f"abs({v(self.one(*'ifv'))})",
            lambda: f"int({v(self.one(*'fsb'))})", lambda: f"int({v('s')}, {self.one('0', '10', '16', '36')})",
            lambda: f"round({v('f')})", lambda: f"sum({v('l')})", lambda: f"{self.one('max', 'min')}({v('l')})",
            lambda: f"max({v('l')}, default={v('i')})", lambda: f"{v('l')}[{self.index()}]",
            lambda: f"{v('d')}.get({v('s')}, {v('i')})", lambda: f"{v('d')}[{v('s')}]",
            lambda: f"({v('i')} if {v('b')} else {v('i')})", lambda: f"{v('s')}.count({v('s')})",
            lambda: f"{v('s')}.{self.one('find', 'rfind', 'index', 'rindex')}({v('s')})",
            lambda: f"{v(self.one('l', 't'))}.index({v('i')})", lambda: f"{v('l')}.count({v('i')})",
            lambda: f"divmod({v('i')}, {v('i')})[{self.one('0', '1')}]", lambda: f"ord({v('s')})",
            # A negative exponent needs an inverse, which need not exist.
            lambda: f"pow({v('i')}, {self.one('2', '3', '-1')}, {self.one('7', '10', v('i'))})",
            lambda: f"({v('i')}).bit_length()", lambda: f"(lambda a, b={v('i')}: a - b)({v('i')})",
            lambda: f"sum(i * {self.name('i')} for i in {v('l')} if i {self.one('>', '!=')} 0)",
            lambda: f"range({self.small()}, {self.small()}, {self.one('1', '2', '-1')})[{self.index()}]",
            lambda: f"{v('v')}.{self.one('x', 'size')}", lambda: f"({v('i')} {self.one('or', 'and')} {v('i')})",
            lambda: f"len(range({self.small()}, {self.small()}, {self.one('1', '3', '-2', '0')}))",
            lambda: f"round({v('i')}, {self.one('-1', '0', '-2', 'None')})", lambda: f"hash({self.literal('i')})",
            lambda: f"next(iter({v('l')}), {v('i')})", lambda: f"(lambda w=({v('i')}): w + w)()",
            lambda: f"[*{v('l')}, {v('i')}].pop({self.index()})")()

    def value_f(self, v):
        return self.one(lambda: f"({v('f')} {self.one('+', '-', '*', '/', '//', '%')} {v(self.one('i', 'f'))})",
                        lambda: f"({v('i')} / {v('i')})", lambda: f"float({v(self.one('i', 's'))})",
                        lambda: f"abs({v('f')})", lambda: f"round({v('f')}, {self.one('0', '1', '2', '-1')})",
                        lambda: f"(-{v('f')})", lambda: f"({v('i')} ** -{self.one('1', '2')})",
                        lambda: f"min({v('f')}, {v('i')})", lambda: f"divmod({v('f')}, {v('f')})[{self.one('0', '1')}]",
                        lambda: f"sum([{v('f')}, {v('f')}])", lambda: f"({v('f')} if {v('b')} else {v('f')})",
                        lambda: f"(abs({v('f')}) ** {self.one('2', '0.5', '0')})")()

    def value_s(self, v):
        spec = self.random.choice(SPECS)
        plain = self.one(*"ifsb")
        return self.one(
            lambda: f"({v('s')} + {v('s')})", lambda: f"({v('s')} * {self.one('0', '2', '3', '-1')})",
            lambda: f"{v('s')}[{self.slice()}]", lambda: f"{v('s')}[{self.index()}]",
            lambda: f"str({v(self.one(*'ifslLdtvb'))})", lambda: f"repr({v(self.one(*'ifsltv'))})",
            lambda: f"{v('s')}.{self.one(*STR_CHANGES)}()", lambda: f"{v('s')}.join({v('L')})",
            lambda: f"{v('s')}.replace({v('s')}, {v('s')}{self.one('', ', 1')})",
            lambda: f"{v('s')}.{self.one('strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix')}({v('s')})",
            lambda: f"{v('s')}.{self.one('ljust', 'rjust', 'center', 'zfill')}({self.small()})",
            lambda: f"format({v(plain)}, {spec!r})", lambda: f"f'{{{self.name(self.one(*'ifs'))}:{spec}}}|'",
            lambda: f"f'{{{self.name(self.one(*'ifslLdtv'))}{self.one('', '!r', '!s', '!a', '=')}}}'",
            lambda: f"f'{{{self.name('i')}:{{{self.small()}}}}}'",
            lambda: f"'{{:{spec}}} {{}}'.format({v(plain)}, {v('s')})",
            lambda: f"'{{1}}-{{0!r:>5}} {{k[0]}}'.format({v('s')}, {v('i')}, k={v(self.one('l', 's', 't'))})", lambda:
            f"'%{self.one('5', '-6', '05', '+', '.2', '')}{self.one(*'dsrxfgeoiac')}' % {v(self.one('i', 'f'))}",
            lambda: f"'%s|%r' % ({v(self.one(*'ifsl'))}, {v(self.one(*'fsb'))})", lambda: f"chr({v('i')} % 1000)",
            lambda: f"{self.one('hex', 'bin', 'oct', 'ascii')}({v('i')})",
            lambda: f"{self.one('max', 'min')}({v('s')})", lambda: f"''.join(sorted({v('s')}))",
            lambda: f"''.join(reversed({v('s')}))", lambda: f"type({v(self.one(*'ifslLdtSvb'))}).__name__",
            lambda: f"ascii({v(self.one('s', 'L'))})", lambda: f"{v('s')}.translate(str.maketrans('ab', 'xy'))",
            lambda: f"f'{{{self.name('v')}:{self.one('', '5')}}}'", lambda: f"{v('v')}.other")()

    def value_l(self, v):
        x = self.fresh("c")
        return self.one(
            lambda: f"({v('l')} + {v('l')})", lambda: f"({v('l')} * {self.one('0', '2', '-1')})",
            lambda: f"{v('l')}[{self.slice()}]", lambda:
            f"sorted({v(self.one('l', 'S'))}{self.one('', ', reverse=True', ', key=lambda q: -q', ', key=str')})",
            lambda: f"[{x} {self.one('+', '*', '%', '//')} {v('i', 0)} for {x} in {v('l')}]",
            lambda: f"[{x} for {x} in {v('l')} if {x} {self.one('>', '==', '%')} {v('i', 0)}]",
            lambda: f"list(range({self.small()}, {self.small()}, {self.one('1', '2', '-1', '-3')}))",
            lambda: f"list(map(lambda q, r: q - r, {v('l')}, {v('l')}))", lambda: f"list(filter(None, {v('l')}))",
            lambda: f"list({v('d')}.values())", lambda: f"list(reversed({v('l')}))", lambda: f"[*{v('l')}, *{v('l')}]",
            lambda: f"[{x} + i for i, {x} in enumerate({v('l')}, {self.small()})]",
            lambda: f"[i * j for i in {v('l')} for j in range({self.one('0', '2', '3')}) if i != j]",
            lambda: f"list({self.one('numbers', 'through')}({self.one('0', '1', '3')}))",
            lambda: f"list(map(int, {v('L')}))", lambda: f"[len({x}) for {x} in {v('L')}]",
            lambda: f"list({v(self.one('t', 'v', 's'))})", lambda: f"[y for {x} in [{v('l')}] for y in {x}]",
            lambda: f"sum([{v('l')}, {v('l')}], [])", lambda: f"list(zip({v('l')}, {v('s')}))")()

    def value_L(self, v):
        x = self.fresh("c")
        return self.one(
            lambda: f"{v('s')}.{self.one('split', 'rsplit')}({self.one('', v('s'), 'None, 1', repr(',') + ', 2')})",
            lambda: f"{v('s')}.splitlines({self.one('', 'True')})", lambda: f"list({v('s')})",
            lambda: f"sorted({v('L')}{self.one('', ', key=len', ', key=str.lower, reverse=True')})",
            lambda: f"[{x}.{self.one(*STR_CHANGES)}() for {x} in {v('L')}]", lambda: f"({v('L')} + {v('L')})",
            lambda: f"list({v('d')})", lambda: f"{v('L')}[{self.slice()}]", lambda: f"list(map(str, {v('l')}))",
            lambda: f"[str(i) + {x} for i, {x} in enumerate({v('s')})]",
            lambda: f"list({v('s')}.{self.one('partition', 'rpartition')}({v('s')}))",
            lambda: f"[k * n for k, n in zip({v('L')}, [0, 1, 2])]")()

    def value_d(self, v):
        x = self.fresh("c")
        return self.one(lambda: f"({v('d')} | {v('d')})", lambda: f"{{**{v('d')}, {v('s')}: {v('i')}}}",
                        lambda: f"{{{x}: len({x}) for {x} in {v('L')}}}", lambda: f"dict(zip({v('s')}, {v('l')}))",
                        lambda: f"dict({v('d')}, q={v('i')})",
                        lambda: f"{{k: n + 1 for k, n in {v('d')}.items() if n}}",
                        lambda: f"dict(sorted({v('d')}.items()))", lambda: f"dict.fromkeys({v('s')}, {v('i')})",
                        lambda: f"{v('d')}.copy()",
                        lambda: f"{{str(k): n for n, k in enumerate({v(self.one('l', 't'))})}}",
                        lambda: f"Own({v('d')})", lambda: f"dict(reversed({v('d')}.items()))")()

    def value_t(self, v):
        return self.one(lambda: f"({v('t')} + {v('t')})", lambda: f"tuple({v(self.one('l', 's', 'L', 'v'))})",
                        lambda: f"{v('t')}[{self.slice()}]", lambda: f"({v('t')} * {self.one('0', '2')})",
                        lambda: f"divmod({v('i')}, {v(self.one('i', 'f'))})",
                        lambda: f"({v('i')}, *{v('l')}, {v('s')})", lambda: f"tuple(i for i in {v('l')})",
                        lambda: f"max({v('d')}.items())", lambda: f"({v('f')}).as_integer_ratio()",
                        lambda: f"slice({self.index()}, {self.index()}).indices({self.small()})",
                        lambda: f"divmod({v('v')}, {v('i')})", lambda: f"{v('v')}({v('i')}, k={v('i')}, *{v('t')})",
                        lambda: f"({v('b')}, {v('f')}, {v('v')})")()

    def value_S(self, v):
        return self.one(lambda: f"({v('S')} {self.one('|', '&', '-', '^')} {v('S')})",
                        lambda: f"set({v(self.one('l', 's', 't'))})", lambda: f"{{i % 3 for i in {v('l')}}}",
                        lambda: f"{v('S')}.union({v('l')}, {v('S')})", lambda: f"frozenset({v('l')})",
                        lambda: f"{v('S')}.{self.one('difference', 'intersection')}({v('l')})",
                        lambda: f"({v('d')}.keys() & {v('d')}.keys())")()

    def value_v(self, v):
        return self.one(lambda: f"({v('v')} + {v(self.one('v', 'i'))})", lambda: f"({v('i')} + {v('v')})",
                        lambda: f"({v('v')} * {v('i')})", lambda: f"({v('i')} * {v('v')})", lambda: f"(-{v('v')})",
                        lambda: f"sum([{v('v')}, {v('v')}])",
                        lambda: f"{self.one('Vec', 'Wide')}.of({v('i')}, {v('s')})",
                        lambda: f"{self.one('max', 'min', 'sorted')}([{v('v')}, {v('v')}])", lambda: f"Vec(*{v('l')})",
                        lambda: f"Wide(z={v('s')}, *{v('t')})", lambda: f"Vec({v('l')}, {v('s')})",
                        lambda: f"{{{v('v')}: 1}}.get({v('v')})", lambda: f"Vec.twice({v('v')})",
                        lambda: f"list(reversed({v('v')}))")()

    def index(self):
        return self.one("0", "1", "-1", "2", "-2", "5")

    def small(self):
        return self.one("0", "1", "2", "3", "5", "8", "-2")

    def slice(self):
        part = lambda: self.one("", "", "1", "2", "-1", "-3", "7", "0")
        return f"{part()}:{part()}" + self.one("", "", ":" + self.one("1", "2", "-1", "-2"))

    # --- statements ---

    def statement(self, indent, depth):
        # Printed values are what finds a difference, so they are the most frequent.
        f = self.one(*[self.print_value] * 6, *[self.new_value] * 4, self.augment, self.change, self.change,
                     self.for_loop, self.while_loop, self.branch, self.attempt, self.function, self.call_function,
                     self.unpack, self.with_block, self.generator, self.klass, self.delete, self.closure)
        f(indent, depth)

    def print_value(self, indent, depth):
        text = self.value(self.one(*"iifsssslLdtSvbb"), 3)
        if self.chance(0.05): text = f"(w := {text}, w)"
        self.emit(indent, f"show({self.place()}, lambda: {text})")

    def guarded(self, indent, line, also=""):
        """A line that may raise, whose exception is printed."""
        # By a try statement for each line: the program must go on to find more.
        place = self.place()
        self.emit(indent, "try:")
        self.emit(indent, f"    {line}")
        self.emit(indent, "except Exception as e:")
        self.emit(indent, f"    print({place}, type(e).__name__)")
        if also: self.emit(indent, f"    {also}")

    def new_value(self, indent, depth):
        kind = self.one(*"ifslLdtSv")
        name = self.fresh()
        self.guarded(indent, f"{name} = {self.value(kind, 3)}", f"{name} = {self.literal(kind)}")
        self.emit(indent, f"show({self.place()}, lambda: {name})")
        if depth == 0: self.names.setdefault(kind, []).append(name)

    def augment(self, indent, depth):
        kind = self.one(*"ifslLtSvd")
        if not self.names.get(kind): return
        # `*= 2 #` comments out the operand that follows.
        ops = {
            "i": ["+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=",
                  ">>="], "f": ["+=", "-=", "*=", "/=", "//=", "%="], "s": ["+="], "l": ["+=", "*= 2 #"], "L": ["+="],
            "t": ["+="], "S": ["|=", "&=", "-=", "^="], "v": ["+=", "*= 2 #"], "d": ["|="]
        }[kind]
        name = self.name(kind)
        if kind == "i":
            self.guarded(indent, f"{name} {self.one(*ops)} {self.value('i')}")
            # Kept small, or a loop would square it out of 128 bits.
            self.guarded(indent, f"{name} %= 1000003")
        else:
            self.guarded(indent, f"{name} {self.one(*ops)} {self.value(kind)}")
        self.emit(indent, f"show({self.place()}, lambda: {name})")

    def change(self, indent, depth):
        l, d, s, v = self.name("l"), self.name("d"), self.name("S"), self.name("v")
        value = self.value
        line = self.one(
            lambda: f"{l}.append({value('i')})", lambda: f"{l}.extend({value('l')})",
            lambda: f"{l}[{self.index()}] = {value('i')}", lambda: f"{l}[{self.slice()}] = {value('l')}",
            lambda: f"del {l}[{self.slice()}]", lambda: f"{l}.insert({self.index()}, {value('i')})",
            lambda: f"{l}.sort({self.one('', 'reverse=True')})", lambda: f"{l}.reverse()",
            lambda: f"{l}.remove({value('i')})", lambda: f"print({l}.pop({self.index()}))",
            lambda: f"{d}[{value('s')}] = {value('i')}", lambda: f"{d}[{value('s')}] += 1",
            lambda: f"print({d}.pop({value('s')}, None))", lambda: f"print({d}.setdefault({value('s')}, {value('i')}))",
            lambda: f"{d}.update({value('d')}, k={value('i')})", lambda: f"print({d}.popitem())",
            lambda: f"{s}.add({value('i')})", lambda: f"{s}.discard({value('i')})", lambda: f"{s}.remove({value('i')})",
            lambda: f"{s}.{self.one('update', 'intersection_update', 'symmetric_difference_update')}({value('l')})",
            lambda: f"{v}.x = {value('i')}", lambda: f"{v}.size = {value('i')}",
            lambda: f"{v}[{value('i')}] = {value('s')}",
            lambda: f"{l}[{self.index()}] {self.one('+=', '-=')} {value('i')}",
            lambda: f"setattr({v}, 'y', {value('f')})", lambda: f"{v}.y += {value('i')}",
            lambda: f"{l}[{self.index()}], {l}[{self.index()}] = {value('i')}, {value('i')}")()
        # What was changed is shown, where it is a variable and no literal.
        target = next((n for n in (l, d, s, v) if line.startswith(n) or f"({n}" in line or line.startswith("del " + n)),
                      l)
        self.guarded(indent, line)
        if target.startswith("v"): self.emit(indent, f"show({self.place()}, lambda: {target})")

    def body(self, indent, depth):
        # Two levels of blocks, or programs would grow without a bound.
        if depth >= 2: return self.print_value(indent, depth)
        for _ in range(self.random.randint(1, 2)):
            self.statement(indent, depth + 1)

    def for_loop(self, indent, depth):
        x = self.fresh("k")
        head = self.one(f"for {x} in {self.literal('l')}:", f"for {x}, q in enumerate({self.literal('s')}):",
                        f"for {x} in range({self.small()}):", f"for {x}, q in {self.literal('d')}.items():",
                        f"for {x} in numbers({self.one('1', '3')}):", f"for {x}, *q in [(1, 2), 'ab', (3, )]:",
                        f"for {x}, (q, r) in zip(range(2), [(1, 2), (3, 4)]):")
        self.emit(indent, head)
        self.emit(indent, f"    print({x}, end=' ')")
        self.body(indent + "    ", depth)
        if self.chance(0.4): self.emit(indent, f"    if {x} == {self.one('1', '0')}: {self.one('break', 'continue')}")
        if self.chance(0.4):
            self.emit(indent, "else:")
            self.emit(indent, f"    print('else', {x if head.endswith('[1, 2]:') else 0})")

    def while_loop(self, indent, depth):
        x = self.fresh("n")
        self.emit(indent, f"{x} = {self.random.randint(1, 3)}")
        self.emit(indent, f"while {x} > 0:")
        self.emit(indent, f"    {x} -= 1")
        if self.chance(0.3): self.emit(indent, f"    if {x} == 1: {self.one('break', 'continue')}")
        self.body(indent + "    ", depth)
        if self.chance(0.4): self.emit(indent, "else: print('while else')")

    def branch(self, indent, depth):
        self.emit(indent, "try:")
        self.emit(indent, f"    c = {self.value('b')}")
        self.emit(indent, "except Exception: c = None")
        self.emit(indent, "if c:")
        self.body(indent + "    ", depth)
        if self.chance(0.5):
            self.emit(indent, "elif c is None:")
            self.body(indent + "    ", depth)
        if self.chance(0.7):
            self.emit(indent, "else:")
            self.body(indent + "    ", depth)

    def attempt(self, indent, depth):
        place = self.place()
        self.emit(indent, "try:")
        self.emit(
            indent,
            "    " + self.one(f"raise Failure({self.value('i')}, 'x')", f"x = {self.value('i')}", "raise KeyError('k')",
                              f"assert {self.value('b')}, 'told'", "{}['k']", "raise StopIteration(5)",
                              "raise ValueError from KeyError(1)", "1 / 0", "[].pop()", "int('q')", "(lambda a: a)()"))
        if self.chance(0.5): self.body(indent + "    ", depth)
        self.emit(indent, f"except {self.one('Failure', 'KeyError', '(ValueError, TypeError)', 'LookupError')} as e:")
        self.emit(
            indent,
            f"    print({place}, type(e).__name__, "
            f"{self.one('repr(e.__cause__)', 'len(e.args)', 'e.__suppress_context__')}"
            ")" if self.chance(0.2) else f"    print({place}, type(e).__name__)")
        # An exception inside of a handler: its context must be the one that was being handled.
        if self.chance(0.3):
            self.emit(indent, "    try: raise IndexError(3)")
            self.emit(indent, "    except IndexError as f: print(type(f.__context__).__name__, f.args, f)")
        self.emit(indent, "except Exception as e:")
        self.emit(indent, f"    print({place}, 'other', type(e).__name__, type(e.__context__).__name__)")
        if self.chance(0.4): self.emit(indent, f"else: print({place}, 'else')")
        if self.chance(0.5): self.emit(indent, f"finally: print({place}, 'finally')")

    def function(self, indent, depth):
        # Functions stand at the top, where later statements can call them.
        if depth > 0: return self.print_value(indent, depth)
        name = self.fresh("f")
        self.functions.append(name)
        parameters = self.one("a", "a, b=2", "a, /, b=3", "a, *, b=4", "a, *r", "a, **k", "a, b=1, *r, c=5, **k",
                              "a, /, *r, b, **k", "*r", "a, b, /", "a=1, b=2, *, c=3")
        self.emit("", f"def {name}({parameters}):")
        # The names without stars, defaults and separators.
        names = [p.strip().split("=")[0].lstrip("*") for p in parameters.split(",")]
        names = [n for n in names if n not in ("", "/")]
        result = ", ".join(names)
        self.emit(
            "",
            self.one(f"    return ({result}, )", f"    try: return [{result}]\n    finally: print('left', {names[0]})",
                     f"    if {names[0]}: return ({result}, )", f"    yield from ({result}, )",
                     f"    for q in range(3):\n        if q == {names[0]}: return q, {result}"))
        self.call_function(indent, depth, name)

    def call_function(self, indent, depth, name=None):
        if not self.functions: return
        name = name or self.random.choice(self.functions)
        given = self.one("1", "1, 2", "a=1", "1, b=2", "1, 2, 3", "*[1, 2]", "**{'a': 1}", "1, **{'b': 5, 'z': 6}", "",
                         "1, c=2", "b=1, a=0", "1, *(2, 3), b=4", "0, 1, c=2, d=3")
        call = f"{name}({given})"
        self.emit(indent, f"show({self.place()}, lambda: {self.one(call, f'list({call})', f'next({call})')})")

    def unpack(self, indent, depth):
        target = self.one("p, q", "p, *q", "*p, q", "p, (q, *r)", "[p, q]", "p, *q, r", "p, q, r")
        kind = self.one(*"lstLdv")
        self.guarded(indent,
                     f"{target} = {self.value(kind)}; print({target.replace('(', '').replace(')', '').strip('[]')})")

    def with_block(self, indent, depth):
        place = self.place()
        self.emit(indent, "try:")
        self.emit(indent, f"    with {self.one('Vec(3) as m', 'Vec(1) as m, Wide(2) as n', '(Vec(4, 5) as m)')}:")
        self.emit(indent, f"        print({place}, m)")
        self.emit(indent,
                  "        " + self.one("raise KeyError(m)", "raise ValueError(m)", f"m = {self.value('i')}", "pass"))
        self.emit(indent, f"except Exception as e: print({place}, type(e).__name__)")

    def generator(self, indent, depth):
        g = self.fresh("g")
        self.emit(indent, f"{g} = {self.one('numbers', 'through')}({self.random.randint(0, 3)})")
        for _ in range(self.random.randint(1, 4)):
            act = self.one(f"next({g})", f"{g}.send(None)", f"next({g}, 'none')", f"{g}.close()", f"list({g})",
                           f"{g}.throw(ValueError('t'))", f"{g}.send(7)", f"{g}.throw(KeyError)")
            place = self.place()
            self.emit(indent, f"try: print({place}, {act})")
            self.emit(indent, f"except Exception as e: print({place}, type(e).__name__, getattr(e, 'value', '-'))")

    def klass(self, indent, depth):
        if depth > 0: return self.print_value(indent, depth)
        name = self.fresh("C")
        base = self.one("", "(Vec)", "(Wide)", "(dict)", "(list)", "(int)", "(str)", "(Exception)", "(tuple)")
        self.emit("", f"class {name}{base}:")
        for method in self.random.sample([
                "    n = 5", "    def m(self, a=1): return (self.n if hasattr(self, 'n') else 0, a)",
                "    def __str__(self): return 'str!'", "    def __repr__(self): return 'repr!'",
                "    def __len__(self): return 3", "    def __eq__(self, o): return True",
                "    def __getitem__(self, i): return ('item', i) if i != 4 else [][0]",
                "    def __iter__(self): yield from (7, 8)", "    def __add__(self, o): return 'added'",
                "    def __radd__(self, o): return 'radded'", "    def __iadd__(self, o): return 'iadded'",
                "    def __contains__(self, o): return o == 3", "    def __call__(self, *a): return a",
                "    def __bool__(self): return False", "    def __lt__(self, o): return True",
                "    def __hash__(self): return 3", "    @property\n    def p(self): return 'property'",
                "    def __getattr__(self, k): return 'got ' + k", "    def __int__(self): return 12",
                "    def __float__(self): return 1.5", "    def __neg__(self): return 'neg'",
                "    def __rmul__(self, o): return ('rmul', o)", "    def __format__(self, s): return 'F' + s",
                "    def __delitem__(self, k): print('del', k)", "    def __setattr__(self, k, v): print('set', k)",
                "    def __missing__(self, k): return 'missing'",
                "    def __init_subclass__(cls): print('sub', cls.__name__)"
        # Methods in any order and any choice: each one changes what the others are asked.
        ], self.random.randint(1, 7)):
            self.emit("", method)
        made = self.fresh("o")
        self.guarded("", f"{made} = {name}({self.one('', '', '5', repr('ab'), '[1, 2]')})", f"{made} = None")
        for text in self.random.sample([
                f"len({made})", f"{made} == 5", f"{made} != 5", f"{made}[1]", f"list({made})", f"{made} + 1",
                f"1 + {made}", f"{made} in [1]", f"3 in {made}", f"{made}(1)", f"bool({made})", f"{made} < 3",
                f"3 > {made}", f"{made}.p", f"{made}.m()", f"{made}.zzz", f"int({made})", f"float({made})", f"-{made}",
                f"2 * {made}", f"f'{{{made}:x}}'", f"str({made})", f"repr({made})", f"[{made}]",
                f"isinstance({made}, {name})", f"hash({made}) == hash({made})", f"{{{made}: 1}}", f"'%s' % {made}",
                f"sorted([{made}, {made}])[:1]", f"type({made}).__name__", f"hasattr({made}, 'append')",
                f"{made} is {made}", f"{name}.n", f"{made} == {made}", f"max({made}, {made})",
                f"reversed({made}) and 1", f"f'{{{made}}}'", f"{made} and 1", f"not {made}", f"iter({made}) and 1",
                f"[*{made}][:2]", f"dict.__len__({made})", f"{made}['k']", f"{made} is None", f"sum([{made}], 0)"
        ], 9):
            self.emit("", f"show({self.place()}, lambda: {text})")

    def delete(self, indent, depth):
        self.guarded(
            indent,
            self.one(f"del {self.name('d')}[{self.value('s')}]", f"del {self.name('l')}[{self.index()}]",
                     f"del {self.name('v')}.{self.one('x', 'y', 'nope')}"))

    def closure(self, indent, depth):
        if depth > 0: return self.print_value(indent, depth)
        name = self.fresh("f")
        self.emit("", f"def {name}(start={self.literal('i')}):")
        self.emit("", "    total = start")
        self.emit("", f"    def step(n={self.value('i', 1)}):") if self.chance(0.5) else self.emit(
            "", "    def step(n=1):")
        self.emit("", "        nonlocal total")
        self.emit("", f"        total {self.one('+=', '-=', '^=')} n")
        self.emit("", "        return total")
        self.emit("", f"    return step, {self.one('lambda: total', '[lambda q=q: (q, total) for q in range(2)]')}")
        self.guarded("", f"s, get = {name}(); print(s(), s(3), get() if callable(get) else [g() for g in get])")

    def source(self):
        return PRELUDE + "\n\n" + "\n".join(self.lines) + "\nprint('end', Vec.made)\n"


STR_CHANGES = [
    "upper", "lower", "title", "capitalize", "swapcase", "casefold", "strip", "lstrip", "rstrip", "expandtabs"
]
STR_TESTS = [
    "isalpha", "isdigit", "isalnum", "isspace", "isupper", "islower", "istitle", "isidentifier", "isdecimal",
    "isnumeric", "isascii", "isprintable"
]


def run(command):
    try:
        # A program that does not end is a difference unless neither side ends.
        done = subprocess.run(command, capture_output=True, timeout=30)
    except subprocess.TimeoutExpired:
        return "", "it does not end"
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace") if done.returncode else ""


def compare(seed, kiln, folder):
    """"" when both agree, "left out", or what is wrong."""
    path = os.path.join(folder, f"p{seed}.py")
    source = Program(seed).source()
    with open(path, "w") as file:
        file.write(source)
    expected, problem = run([sys.executable, path])
    # Kiln shows an object without its address, so that a run prints what the last one printed.
    expected = re.sub(r"<(?:__main__\.)?([\w.]+ object(?: \w+)?) at 0x[0-9a-f]+>", r"<\1>", expected)
    if problem and "SyntaxError" in problem: return f"left out: {problem.strip().splitlines()[-1]}"
    got, refused = run([kiln, path])
    if expected == got and bool(problem) == bool(refused): return ""
    if "128 bits" in refused: return "left out: ints of more than 128 bits"
    a, b = expected.split("\n"), got.split("\n")
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    if at < len(b) and b[at].endswith(" OverflowError"): return "left out: ints of more than 128 bits"
    # The number that the line began with finds the statement in the program.
    place = (a[at] if at < len(a) else b[at] if at < len(b) else "").split(" ")[0]
    lines = [
        f"    {n}: {t}" for n, t in enumerate(source.splitlines(), 1) if f"show({place}," in t or f"print({place}," in t
    ]
    return "\n".join([
        f"{path}", *lines[:2], f"    Python: {a[at] if at < len(a) else '(ends)' + problem[-300:]}",
        f"    Kiln:   {b[at] if at < len(b) else '(ends) ' + refused[:600]}"
    ])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kiln", default="build/release/bin/kiln")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--count", type=int, default=500)
    arguments.add_argument("--most", type=int, default=20, help="disagreements after which it ends")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--keep", help="a folder for the programs that differ")
    given = arguments.parse_args()
    agreed, out, wrong = 0, {}, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        # Far apart, so that the programs of two seeds are different ones.
        first = given.seed * 1_000_000
        for seed, problem in zip(range(first, first + given.count),
                                 pool.map(lambda s: compare(s, given.kiln, folder), range(first, first + given.count))):
            if problem.startswith("left out"): out[problem] = out.get(problem, 0) + 1
            elif not problem: agreed += 1
            else:
                wrong += 1
                if given.keep:
                    os.makedirs(given.keep, exist_ok=True)
                    shutil.copy(os.path.join(folder, f"p{seed}.py"), given.keep)
                print(f"--- {seed}: {problem}", flush=True)
                # The programs that are waiting are left out; those that run end by themselves.
                if wrong >= given.most:
                    pool.shutdown(cancel_futures=True)
                    break
    for reason, count in sorted(out.items(), key=lambda r: -r[1])[:10]:
        print(f"{count:5} {reason}")
    print(f"seed {given.seed}: {agreed} agree, {wrong} do not, {sum(out.values())} left out")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
