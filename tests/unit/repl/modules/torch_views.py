"""Random programs of views and changes in place, and what PyTorch on a CPU prints for them.

    python3 torch_views.py                                          writes torch_views.txt beside it
    python3 torch_views.py --kiln build/dev/bin/kiln --seed 1000 --count 500     runs fresh ones under both

torch_views_test.cc replays torch_views.txt.

A program makes tensors, small and large ones, takes views of views (slices, transposes, reshapes, expansions), changes
them in place (operators, assignments to slices, masks and indices, copies, functions that change their argument) and
looks at some in between. All numbers are exact in float32, so the printed values must be equal. A statement that
PyTorch refuses is not part of the program.
"""
import argparse
import contextlib
import io
import os
import random
import subprocess
import sys
import tempfile

import torch

PRELUDE = '''\
import torch

def show(name, x):
    if x.dtype.is_floating_point: x = x + 0.0  # the sign of zeros is a kernel's own
    if x.numel() <= 24: values = x.tolist()
    else: values = x.reshape(-1)[::x.numel() // 6].tolist() + [x.sum(dtype=torch.float64).item()]
    print(name, tuple(x.shape), x.dtype, values)

def bump(t, by=1):
    t += by
    return t[1:] if t.dim() and t.shape[0] > 1 else t

def twice(t):
    t.mul_(2)
    u = t.reshape(-1)
    u[0] = 5
    return u

class Box:
    def __init__(self, t): self.t = t
    def add(self, v):
        self.t += v
        return self
'''

SHAPES = [(4, ), (6, ), (2, 3), (3, 4), (4, 4), (2, 3, 2), (1, 4), (5, 1), (), (3, 1, 2), (2, 2, 2, 2)]
LARGE = [(3000, ), (40, 60), (2, 30, 50), (64, 64), (8, 1, 300)]


def same(a, b):
    return a.shape == b.shape and torch.equal(a, b)


class HalfDone(Exception):
    pass


class Program:

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.names, self.count = [], [], 0
        self.scope = {}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(PRELUDE, self.scope)
        self.out = io.StringIO()
        large = self.random.random() < 0.35
        for _ in range(self.random.randint(2, 3)):
            self.create(large)
        for _ in range(self.random.randint(8, 18)):
            self.step()
        for name in list(self.names):
            self.attempt(f"show({name!r}, {name})")

    def one(self, *choices):
        return self.random.choice(choices)

    def attempt(self, line):
        """Runs a statement; one that PyTorch refuses, or whose numbers grow out of exactness, is left out.

        So is a change of an expanded tensor, which PyTorch refuses, warns of or makes, by the function.
        """
        changes = any(f"{f}(" in line
                      for f in ("index_put_", "index_fill_", "masked_fill_", "masked_scatter_", "scatter_",
                                "index_copy_", "index_add_", "copy_")) or any(
                                  f"] {op}" in line for op in ("=", "+=", "-=", "*="))
        expanded = any(s == 0 and n > 1 for x in self.names
                       for s, n in zip(self.scope[x].stride(), self.scope[x].shape))
        if changes and (expanded or any(self.scope[x].numel() == 0 for x in self.names)):
            return False
        out = io.StringIO()
        try:
            kept = {n: self.scope[n].clone() for n in self.names} if not line.startswith("show") else {}
            with contextlib.redirect_stdout(out):
                exec(line, self.scope)
        except (RuntimeError, IndexError, TypeError, ValueError, AttributeError):
            # PyTorch may have made a refused change in part, and a program cannot go on from there.
            if not all(same(kept[n], self.scope[n]) for n in kept): raise HalfDone(line)
            return False
        self.lines.append(line)
        self.out.write(out.getvalue())
        for n in self.names:
            x = self.scope[n]
            if x.dtype.is_floating_point and x.numel() and x.abs().max() > 2**14:
                try:
                    exec(f"{n}.fill_(1)", self.scope)
                except RuntimeError:
                    continue  # of an expanded tensor
                self.lines.append(f"{n}.fill_(1)")
        return True

    def fresh(self):
        self.count += 1
        return f"t{self.count}"

    def new(self, text):
        name = self.fresh()
        if self.attempt(f"{name} = {text}"):
            if isinstance(self.scope[name], torch.Tensor): self.names.append(name)
        return name

    def create(self, large):
        shape = self.random.choice(LARGE if large else SHAPES)
        n = 1
        for d in shape:
            n *= d
        base = self.one(f"torch.arange({n})", f"torch.arange({n}, dtype=torch.float32)",
                        f"(torch.arange({n}) % 7 * 0.5)", f"torch.arange({n}).to(torch.int32)", f"torch.zeros({n})",
                        f"torch.full(({n},), 3)", f"(torch.arange({n}) % 3 == 0)",
                        f"(torch.arange({n}) % 5).to(torch.float64)")
        self.new(f"{base}.reshape({shape})" if self.random.random() < 0.8 else f"{base}.view({shape}).clone()")

    def tensor(self):
        return self.random.choice(self.names)

    def dim(self, x):
        d = self.scope[x].dim()
        return self.random.randint(-d, d - 1) if d else 0

    def index(self, x):
        """A basic index."""
        parts = []
        for size in self.scope[x].shape[:self.random.randint(0, max(0, self.scope[x].dim()))]:
            parts.append(self.one(":", "1:", ":-1", "::2", "0", "-1", "1", ":2", "1:3", "2:", "1::2", "-2:"))
        if self.random.random() < 0.15: parts.insert(self.random.randint(0, len(parts)), "None")
        if self.random.random() < 0.15: parts.append("...")
        elif self.random.random() < 0.1: parts = ["..."] + parts[:1]
        return ", ".join(parts) or self.one("...", ":", "()" if self.scope[x].dim() == 0 else ":")

    def view(self):
        x = self.tensor()
        t = self.scope[x]
        n = t.numel()
        shape = list(t.shape)
        self.random.shuffle(shape)
        order = list(range(t.dim()))
        self.random.shuffle(order)
        factor = self.one(1, 2, 3, 4, -1)
        a, b = self.dim(x), self.dim(x)
        self.new(
            self.one(f"{x}[{self.index(x)}]", f"{x}[{self.index(x)}]", f"{x}[{self.index(x)}]",
                     f"{x}.transpose({a}, {b})", f"{x}.mT" if t.dim() > 1 else f"{x}.view(-1)",
                     f"{x}.permute({', '.join(map(str, order))})" if order else x, f"{x}.reshape({shape})",
                     f"{x}.view({shape})", f"{x}.reshape(-1, {factor})", f"{x}.view({factor}, -1)",
                     f"{x}.unsqueeze({self.one(0, -1, 1)})", f"{x}.squeeze()", f"{x}.squeeze({a})", f"{x}.flatten()",
                     f"{x}.view(-1)", f"{x}.narrow({a}, {self.one(0, 1)}, {self.one(1, 2)})",
                     f"{x}.select({a}, {self.one(0, -1, 1)})", f"{x}.chunk(2, {a})[{self.one(0, -1)}]",
                     f"{x}.split(2, {a})[{self.one(0, -1)}]", f"{x}.unbind({a})[0]",
                     f"{x}.expand({self.one(2, 3)}, *{x}.shape)", f"{x}.diagonal()", f"{x}.movedim({a}, {b})",
                     f"{x}.detach()", f"{x}.expand_as({self.tensor()})", f"{x}.view_as({self.tensor()})", f"{x}.t()",
                     f"{x}.ravel()", f"{x}.unflatten({a}, (-1, 2))", f"{x}.swapaxes({a}, {b})",
                     f"{x}.broadcast_to({self.one(2, 3)}, *{x}.shape)", f"{x}.contiguous()", f"{x}.clone()",
                     f"{x}.T if {x}.dim() == 2 else {x}", f"{x}.unfold({a}, 2, 2)", f"{x}.repeat(2, *[1] * {x}.dim())",
                     f"{x}.flip({a})", f"{x}.roll(1, {a})", f"{x}" if n < 30 else f"{x}[:1]"))

    def value(self, x=None):
        """What is put somewhere: a number or a tensor."""
        y = self.tensor()
        return self.one("1", "2", "0.5", "-3", "True", y, y, f"{y}[{self.index(y)}]", f"{y} + 1", f"{y}.flip(0)",
                        f"torch.arange(3)", f"({y} > 1)", f"{y}.sum()", f"{x or y}.clone()")

    def change(self):
        x = self.tensor()
        a = self.dim(x)
        y = self.value(x)
        target = self.one(x, x, f"{x}[{self.index(x)}]", f"{x}[{self.index(x)}]")
        indices = self.one("[0, 1]", "[1, 0, 1]", "[-1]", "[0, 0]", "torch.tensor([1, 0])", "[[0, 1], [1, 0]]")
        self.attempt(
            self.one(
                f"{target} {self.one('+=', '-=', '+=')} {y}", f"{target} {self.one('+=', '-=')} {y}",
                f"{target} *= {self.one('2', '0.5', '-1')}", f"{x}[{self.index(x)}] = {y}",
                f"{x}[{self.index(x)}] = {y}", f"{x}[{x} > {self.one('1', '2', '0')}] = {self.one('0', '1', '-1')}",
                f"{x}[{x} > 1] {self.one('+=', '-=')} 1", f"{x}[{indices}] = {y}",
                f"{x}[{indices}] {self.one('+=', '-=')} {self.one('1', '2')}",
                f"{x}[..., {self.one('0', '-1', '[0, 1]')}] = {y}", f"{x}[:, {indices}] = {self.one('0', '7', y)}",
                f"{x}.add_({y})", f"{x}.sub_({y}, alpha=2)", f"{x}.copy_({y if y.startswith(('t', '(')) else x})",
                f"{x}.fill_({self.one('4', '-1')})", f"{x}.zero_()", f"{x}.neg_()", f"{x}.abs_()",
                f"{x}.clamp_(min=0, max=3)", f"{x}.masked_fill_({x} == {self.one('1', '0')}, 9)",
                f"{x}.index_fill_({a}, torch.tensor([0]), 6)",
                f"{x}.index_add_({a}, torch.tensor([0, 0]), torch.ones_like({x}.narrow({a}, 0, 2)))",
                f"{x}.index_put_((torch.tensor([0, 1]),), torch.tensor(2, dtype={x}.dtype))",
                f"{x}.index_put_((torch.tensor([1, 1]),), torch.tensor(2, dtype={x}.dtype), accumulate=True)",
                f"{x}.scatter_({a}, torch.zeros_like({x}, dtype=torch.int64), 3)", f"{x}.t_()", f"{x}.unsqueeze_(0)",
                f"{x}.squeeze_()", f"{x}.transpose_(0, -1)", f"torch.add({x}, 1, out={x})",
                f"{x}.T.add_(1) if {x}.dim() == 2 else {x}.add_(1)", f"{x}.view(-1)[{self.one('0', '-1', '::2')}] = 8",
                f"{x}.flatten()[0] = 8", f"{x}.reshape(-1)[1:] += 1",
                f"{x}.masked_scatter_({x} > 1, torch.arange({x}.numel()).to({x}.dtype))", f"{x}.logical_not_()",
                f"{x}[{self.index(x)}], {x}[{self.index(x)}] = {self.one('1', '2')}, {self.one('3', '4')}",
                f"{x}.floor_divide_(2)", f"{x}.remainder_(3)", f"{x}.data.add_(1)", f"{x}.copy_({x}.flip({a}))",
                f"{x}[1:] = {x}[:-1].clone()", f"{x}.fill_diagonal_(7)", f"{x}.diagonal().add_(2)",
                f"{x}.index_copy_({a}, torch.tensor([0]), {x}.narrow({a}, 1, 1).clone())", f"{x}[()] = 3",
                f"{x}[None] += 1", f"{x}.bitwise_xor_(3)", f"{x} //= 2", f"{x} %= 4", f"{x} &= 6",
                f"{x} **= 2 if {x}.numel() < 5 else 1"))

    def call(self):
        x = self.tensor()
        place = self.one(x, f"{x}[{self.index(x)}]", f"{x}.view(-1)")
        if self.random.random() < 0.3: return self.attempt(f"Box({place}).add({self.one('1', '2')}).add(1)")
        self.new(self.one(f"bump({place})", f"bump({place}, {self.one('2', '3')})", f"twice({place})"))

    def compute(self):
        x, y = self.tensor(), self.tensor()
        a = self.dim(x)
        self.new(
            self.one(f"{x} + {y}", f"{x} - {self.value()}", f"{x} * 2", f"{x}.sum({a})",
                     f"torch.where({x} > 1, {x}, {y})", f"torch.cat([{x}, {y}], {self.one(0, a)})",
                     f"torch.stack([{x}, {x}])", f"{x}.clone()", f"-{x}", f"{x} == {y}", f"{x}[{x} > 0]",
                     f"{x}[[0, 1]]", f"{x}.to({self.one('torch.float32', 'torch.int64', 'torch.int32')})",
                     f"{x}.cumsum({a})", f"{x}.amax({a})", f"torch.zeros_like({x})", f"{x}.sort(dim={a}).values",
                     f"{x}.float()", f"{x}.type_as({y})", f"{x}.gather({a}, torch.zeros_like({x}, dtype=torch.int64))",
                     f"torch.tril({x})", f"{x}.unique()", f"{x}.index_select({a}, torch.tensor([1, 0, 0]))",
                     f"{x}.argmax({a})"))

    def look(self):
        x = self.tensor()
        if self.random.random() < 0.3:
            return self.attempt(f"print({x}.dim(), {x}.numel(), {x}.is_contiguous(), "
                                f"[s for s, n in zip({x}.stride(), {x}.shape) if n > 1], {x}.storage_offset())")
        self.attempt(f"show({x!r}, {x})")

    def rebind(self):
        x, y = self.tensor(), self.tensor()
        self.attempt(
            self.one(f"{x} = {y}", f"{x}, {y} = {y}, {x}", f"{x} = {x}.clone()", f"{x} = {x} + 1",
                     f"{x} = {x}[{self.index(x)}]"))

    def step(self):
        self.one(self.view, self.view, self.view, self.change, self.change, self.change, self.change, self.call,
                 self.compute, self.look, self.rebind)()

    def source(self):
        return "\n".join(self.lines) + "\n"


def record(path, count):
    with open(path, "w") as file:
        file.write(
            f"# Written by torch_views.py from PyTorch {torch.__version__}: programs, and behind > what they print.\n")
        for seed in range(count):
            try:
                p = Program(seed)
            except HalfDone:
                continue
            file.write(f"# {seed}\n{p.source()}")
            file.write("".join(f">{line}\n" for line in p.out.getvalue().splitlines()))


def compare(kiln, seed, folder):
    try:
        p = Program(seed)
    except HalfDone:
        return ""
    path = os.path.join(folder, f"v{seed}.py")
    with open(path, "w") as file:
        file.write(PRELUDE + p.source())
    done = subprocess.run([kiln, path], capture_output=True, text=True, timeout=120)
    expected = p.out.getvalue()
    if done.stdout == expected and done.returncode == 0: return ""
    a, b = expected.splitlines(), done.stdout.splitlines()
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return (
        f"{p.source()}    PyTorch: {a[at] if at < len(a) else '(ends)'}\n"
        f"    Kiln:    {b[at] if at < len(b) else '(ends)'}\n"
        f"{done.stderr[:500]}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kiln")
    arguments.add_argument("--seed", type=int, default=1000)
    arguments.add_argument("--count", type=int, default=60)
    given = arguments.parse_args()
    if not given.kiln: return record(os.path.splitext(__file__)[0] + ".txt", given.count)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seed, given.seed + given.count):
            problem = compare(given.kiln, seed, folder)
            if not problem: continue
            wrong += 1
            print(f"--- {seed}\n{problem}", flush=True)
    print(f"{given.count - wrong} agree, {wrong} do not")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
