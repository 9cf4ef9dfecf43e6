"""Random kernels under Triton's interpreter and compiled by Kiln for the CPU, compared element by element.

    PYTHONPATH=build/release/python python bench/differential/interpreter.py --seed 1 --count 500

Needs Python with Triton and numpy; no GPU. Each kernel is a file of its own, which both read: types and promotion of
literals, scalars and tiles of every dtype, integer and float arithmetic, comparisons, shifts, casts, selections,
reductions, scans, sorts, shapes, gathers, products, atomics, loops, branches, bfloat16 and float8, tensor descriptors,
and what is in statements.py. repaired.py makes the interpreter what the compiler is. Values are stored as int64 or
float64, and the width of each result's type beside it. Integers must be equal; floats too, unless the kernel has an
operation that no definition makes exact (division, functions, sums), which then may differ by a few units. Kernels that
the interpreter refuses are counted and left out; what Kiln alone refuses, and what differs, is printed with its source.
Kept out is that in which the interpreter is not the compiler: a number that a `range` or an argument gives (Python's
there), and an argument of 1 (a constexpr here).
"""
import argparse
import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import traceback

os.environ["TRITON_INTERPRET"] = "1"
import numpy as np  # noqa: E402
import triton  # noqa: E402

import kiln  # noqa: E402
import repaired  # noqa: E402
import statements  # noqa: E402

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
ROWS, COLUMNS = 8, 16
# Places of ROWS * COLUMNS elements: those behind 60 results are for atomics, and then for stores through descriptors.
FIRST_STORE, BLOCK_STORES = 68, 6


class Array:
    """What the interpreter asks of a tensor: memory of numpy's, which is its own copy on the host."""

    def __init__(self, array):
        self.array, self.dtype = array, f"numpy.{array.dtype}"

    def data_ptr(self): return self.array.ctypes.data
    def untyped_storage(self): return self
    def cpu(self): return self
    def copy_(self, other): assert other.array is self.array
    def new_empty(self, size, device): return Array(self.array)
    def set_(self, storage, offset, size, stride): self.array = storage.array
    def storage_offset(self): return 0
    def size(self): return self.array.shape
    def stride(self): return tuple(n // self.array.itemsize for n in self.array.strides)


class Value:
    """A name with what is known of it: kind is b(ool), i(nteger) or f(loat); shape "s", "v" (COLUMNS) or "m"."""

    def __init__(self, name, kind, shape):
        self.name, self.kind, self.shape = name, kind, shape


class Program(statements.More):
    INTS, FLOATS = INTS, FLOATS

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.values, self.inputs, self.scalars = [], [], [], []
        self.exact, self.count, self.indent, self.blocks, self.slots = True, 0, "    ", 0, 0
        for _ in range(self.random.randint(2, 4)): self.load()
        for _ in range(self.random.randint(0, 2)): self.scalar()
        for _ in range(self.random.randint(4, 14)): self.statement()

    # --- pieces ---

    def emit(self, text):
        self.lines.append(self.indent + text)

    def new(self, text, kind, shape):
        name = f"t{self.count}"
        self.count += 1
        self.emit(f"{name} = {text}")
        self.values.append(Value(name, kind, shape))

    def load(self):
        dtype, shape = self.random.choice(INTS + FLOATS + ["int1"]), self.random.choice("vvmm")
        k = len(self.inputs)
        self.inputs.append(dtype)
        offsets = "columns" if shape == "v" else "rows[:, None] * COLUMNS + columns[None, :]"
        kind = "b" if dtype == "int1" else "f" if dtype in FLOATS else "i"
        self.new(f"tl.load(x{k} + {offsets})" + (" != 0" if dtype == "int1" else ""), kind, shape)

    def scalar(self):
        kind = self.random.choice("iif")
        name = f"a{len(self.scalars)}"
        # Not 1, which is a constexpr to the compiler alone.
        value = self.random.choice([0, 2, 16, -3, 100, 2**31 - 1, 2**40, -2**40, 255]) if kind == "i" else \
            self.random.choice([0.5, -1.25, 3.0, 1e10, 0.1])
        self.scalars.append(value)
        # To the interpreter a float argument is a number of Python, and to the compiler an fp32.
        if kind == "f": self.new(f"tl.zeros((COLUMNS, ), tl.float32) + {name}", "f", "v")
        else: self.values.append(Value(name, kind, "s"))

    def pick(self, kinds="bif", shapes="svm", tile=False):
        found = [v for v in self.values if v.kind in kinds and v.shape in (shapes if not tile else "vm")]
        return self.random.choice(found) if found else None

    def literal(self, kind):
        if kind == "f": return self.random.choice(["0.5", "2.0", "-1.5", "1e-3", "3", "0.1"])
        return self.random.choice(["1", "2", "-1", "3", "7", "100", "127", "128", "255", "300", "65536", "2147483647",
                                   "2147483648", "-2147483648", "True"])

    def joined(self, a, b):
        """The shape of both, or None where they do not broadcast."""
        if "s" in (a, b): return b if a == "s" else a
        return "m" if "m" in (a, b) else "v"

    def operands(self, kinds):
        a, b = self.pick(kinds), self.pick(kinds)
        if a is None: return None
        if b is None or self.random.random() < 0.3:
            text = self.literal("f" if a.kind == "f" else "i")
            pair = (a.name, text) if self.random.random() < 0.7 else (text, a.name)
            return (*pair, "f" if a.kind == "f" else "b" if a.kind == "b" and text == "True" else "i", a.shape)
        kind = "f" if "f" in (a.kind, b.kind) else "i" if "i" in (a.kind, b.kind) else "b"
        return a.name, b.name, kind, self.joined(a.shape, b.shape)

    # --- statements ---

    def statement(self):
        names = ["arithmetic"] * 4 + ["bits"] * 2 + ["cast"] * 2 + [
            "shift", "compare", "divide", "where", "minmax", "unary", "reduce", "scan", "shape", "gather", "loop",
            "branch", "math", "argreduce", "sort", "histogram", "dot", "fold", "while_loop", "atomic", "logical",
            "clamp", "helper", "constants", "joining", "narrow", "narrow", "small", "block", "block", "block_store"]
        name = self.random.choice(names)
        if self.random.random() < 0.6: name = self.random.choice(self.MORE)
        getattr(self, name)()

    def arithmetic(self):
        if (o := self.operands("if")) is None: return
        self.new(f"{o[0]} {self.random.choice('+-*')} {o[1]}", o[2], o[3])

    def bits(self):
        if (o := self.operands("bi")) is None: return
        self.new(f"{o[0]} {self.random.choice('&|^')} {o[1]}", o[2], o[3])

    def shift(self):
        a = self.pick("i")
        if a is None: return
        self.new(f"{a.name} {self.random.choice(['<<', '>>'])} {self.random.choice(['1', '3', '(columns & 7)'])}"
                 if a.shape != "s" else f"{a.name} << 2", "i", a.shape)

    def compare(self):
        if (o := self.operands("if")) is None: return
        self.new(f"{o[0]} {self.random.choice(['<', '<=', '>', '>=', '==', '!='])} {o[1]}", "b", o[3])

    def divide(self):
        a, b = self.pick("i"), self.pick("i")
        if a is None: return
        if self.random.random() < 0.5:
            self.new(f"{a.name} {self.random.choice(['//', '%'])} ({b.name} | 1)", "i", self.joined(a.shape, b.shape))
        else:
            f = self.pick("f")
            if f is None: return
            self.exact = False
            self.new(f"{a.name} / ({f.name} * {f.name} + 1)", "f", self.joined(a.shape, f.shape))

    def cast(self):
        a = self.pick("bif", tile=True)
        if a is None: return
        to = self.random.choice(INTS + FLOATS + ["int1"])
        # A float outside of the target's range has no defined value.
        if a.kind == "f" and to not in FLOATS:
            if to == "int1": text = f"({a.name} != 0)"
            else:
                least = "0.0" if to.startswith("u") else "-100.0"
                text = f"tl.clamp({a.name}.to(tl.float32), {least}, 100.0).to(tl.{to})"
        else:
            text = f"{a.name}.to(tl.{to})"
        self.new(text, "b" if to == "int1" else "f" if to in FLOATS else "i", a.shape)

    def where(self):
        c = self.pick("b", tile=True)
        if c is None or (o := self.operands("if")) is None: return
        self.new(f"tl.where({c.name}, {o[0]}, {o[1]})", o[2], self.joined(c.shape, o[3]))

    def minmax(self):
        if (o := self.operands("if")) is None: return
        self.new(f"tl.{self.random.choice(['minimum', 'maximum'])}({o[0]}, {o[1]})", o[2], o[3])

    def clamp(self):
        a = self.pick("f", tile=True)
        if a is not None: self.new(f"tl.clamp({a.name}, -2.0, 2.0)", "f", a.shape)

    def unary(self):
        a = self.pick("if", tile=True)
        if a is None: return
        text = self.random.choice([f"-{a.name}", f"tl.abs({a.name})"] + ([f"~{a.name}"] if a.kind == "i" else []))
        self.new(text, a.kind, a.shape)

    def logical(self):
        a, b = self.pick("b", tile=True), self.pick("b", tile=True)
        if a is not None:
            op = self.random.choice(["&", "|", "^", "=="])
            self.new(f"{a.name} {op} {b.name}", "b", self.joined(a.shape, b.shape))

    def math(self):
        a = self.pick("f", tile=True)
        if a is None: return
        self.exact = False
        f = self.random.choice(["exp", "sin", "cos", "log2", "sqrt", "floor", "ceil", "rsqrt"])
        self.new(f"tl.{f}(tl.abs({a.name}.to(tl.float32)) + 0.5)", "f", a.shape)

    def reduce(self):
        a = self.pick("bif", "m")
        if a is None: return
        f, axis = self.random.choice(["sum", "max", "min", "xor_sum"]), self.random.choice([0, 1])
        if a.kind == "b" or (a.kind == "f" and f == "xor_sum"): f = "sum"
        name = a.name
        if a.kind == "f" and f == "sum": self.exact, name = False, f"{name}.to(tl.float32)"  # halves lose too much
        keep = self.random.random() < 0.3
        text = f"tl.{f}({name}, axis={axis}{', keep_dims=True' if keep else ''})"
        kind = "f" if a.kind == "f" else "i"
        if keep: self.new(f"{text} + tl.zeros((ROWS, COLUMNS), tl.int8)", kind, "m")
        elif axis == 0: self.new(text, kind, "v")
        else:
            if kind == "f": self.exact = False
            self.new(f"tl.sum({text}.to(tl.{'float64' if kind == 'f' else 'int64'}))", kind, "s")

    def argreduce(self):
        a = self.pick("if", "m")
        if a is not None: self.new(f"tl.{self.random.choice(['argmax', 'argmin'])}({a.name}, axis=0)", "i", "v")

    def scan(self):
        a = self.pick("if", "m")
        if a is None: return
        f = self.random.choice(["cumsum", "cumsum", "cumprod"])
        name = a.name
        if a.kind == "f": self.exact, f, name = False, "cumsum", f"{name}.to(tl.float32)"
        reverse = self.random.choice(["", ", reverse=True"])
        self.new(f"tl.{f}({name}, {self.random.choice([0, 1])}{reverse})", a.kind, "m")

    def sort(self):
        a = self.pick("i", "m")
        if a is not None:
            self.new(self.random.choice([f"tl.sort({a.name})", f"tl.sort({a.name}, descending=True)",
                                         f"tl.flip({a.name}, 1)", f"tl.topk({a.name}, 4).to(tl.int64).sum(1, "
                                         "keep_dims=True) + tl.zeros((ROWS, COLUMNS), tl.int64)"]), "i", "m")

    def shape(self):
        a = self.pick("bif", "m")
        if a is None: return
        self.new(self.random.choice([
            f"tl.reshape(tl.trans({a.name}), (ROWS, COLUMNS))", f"{a.name}.T.reshape(ROWS, COLUMNS)",
            f"tl.reshape({a.name}, (ROWS * COLUMNS, )).reshape(ROWS, COLUMNS)",
            f"tl.permute(tl.reshape({a.name}, (2, ROWS // 2, COLUMNS)), (1, 0, 2)).reshape(ROWS, COLUMNS)"]), a.kind,
                 "m")

    def joining(self):
        a = self.pick("if", "m")
        if a is None: return
        self.emit(f"l{self.count}, r{self.count} = tl.split(tl.reshape({a.name}, (ROWS, COLUMNS // 2, 2)))")
        l, r = f"l{self.count}", f"r{self.count}"
        self.new(self.random.choice([f"tl.interleave({r}, {l})", f"tl.join({r}, {l}).reshape(ROWS, COLUMNS)",
                                     f"tl.interleave({l}, {l})"]), a.kind, "m")

    def histogram(self):
        a = self.pick("i", "v")
        if a is not None: self.new(f"tl.histogram(({a.name} & 15).to(tl.int32), COLUMNS)", "i", "v")

    def dot(self):
        a, b = self.pick("bif", "m"), self.pick("bif", "m")
        if a is None: return
        # Small integers in halves: each sum is exact.
        small = [f"(({v.name} != 0).to(tl.float16) + {self.random.choice(['1', '2'])}).to(tl.float16)" for v in (a, b)]
        self.new(f"tl.dot({small[0]}, tl.trans({small[1]}).reshape(COLUMNS, ROWS))"
                 ".to(tl.float32).reshape(ROWS * ROWS).sum(0)", "f", "s")

    def fold(self):
        a = self.pick("if", "m")
        if a is None: return
        wide = "int64" if a.kind == "i" else "float32"
        text = f"tl.{self.random.choice(['reduce', 'associative_scan'])}({a.name}.to(tl.{wide}), 0, larger)"
        self.new(text, a.kind, "v" if ".reduce(" in text else "m")

    def while_loop(self):
        a = self.pick("if", "m")
        if a is None: return
        name = f"t{self.count}"
        self.count += 1
        wide = "float64" if a.kind == "f" else "int64"
        self.emit(f"{name} = {a.name}.to(tl.{wide})")
        self.emit("n = tl.sum((columns < 3).to(tl.int32))")
        self.emit("while n > 0:")
        self.emit(f"    {name} = {name} + n")
        self.emit(f"    n -= {self.random.choice(['1', '2'])}")
        self.values.append(Value(name, a.kind, "m"))

    def atomic(self):
        a, i = self.pick("i", "v"), self.pick("i", "v")
        if a is None: return
        slot = self.slot("ints")
        op = self.random.choice(["add", "max", "min", "and", "or", "xor"])
        self.emit(f"tl.atomic_{op}({slot} + ({i.name} & 7).to(tl.int32), {a.name}.to(tl.int64), mask=columns < 11)")
        self.new(f"tl.load({slot} + columns)", "i", "v")

    def gather(self):
        a, i = self.pick("if", "m"), self.pick("i", "m")
        if a is not None and i is not None:
            self.new(f"tl.gather({a.name}, ({i.name} & (COLUMNS - 1)).to(tl.int32), 1)", a.kind, "m")

    def narrow(self):
        """bfloat16 and float8 as memory holds them; one bit less leaves out NaN and infinities, and one
        more the denormal numbers of bfloat16, which the interpreter gets wrong."""
        dtype, bits, mask = self.random.choice([("bfloat16", 16, "0xBFFF | 256"), ("float8e5", 8, "0xFB"),
                                                ("float8e4nv", 8, "0xFE")])
        k = len(self.inputs)
        self.inputs.append(f"uint{bits}")
        text = f"(tl.load(x{k} + places) & {mask}).to(tl.uint{bits}).to(tl.{dtype}, bitcast=True)"
        if self.random.random() < 0.5: text = f"tl.where(columns[None, :] < 9, {text}, tl.zeros((1, 1), tl.{dtype}))"
        self.new(f"{text}.to(tl.float32)", "f", "m")

    def small(self):
        """Integers that bfloat16 and float8 hold exactly."""
        a = self.pick("i", tile=True)
        if a is None: return
        dtype, most = self.random.choice([("bfloat16", 255), ("float8e5", 7), ("float8e4nv", 15)])
        bits = f".to(tl.uint{16 if dtype == 'bfloat16' else 8}, bitcast=True)"
        text = f"({a.name} & {most}).to(tl.float32).to(tl.{dtype})"
        if self.random.random() < 0.5: self.new(text + bits, "i", a.shape)
        else: self.new(text + ".to(tl.float32)", "f", a.shape)

    def block(self):
        """A block of a tensor through a descriptor, in part outside, or rows of it."""
        k, dtype = len(self.inputs), self.random.choice(INTS + FLOATS)
        self.inputs.append(dtype)
        kind, rows = "f" if dtype in FLOATS else "i", self.random.choice(["ROWS", "ROWS - 3"])
        make = f"tl.make_tensor_descriptor(x{k}, [{rows}, COLUMNS], [COLUMNS, 1], "
        step = 16 // np.dtype(dtype).itemsize  # a block begins at a multiple of 16 bytes
        first = self.random.choice([0, step, -step])
        if "8" not in dtype and self.random.random() < 0.4:
            self.emit(f"d{k} = {make}[1, COLUMNS])")
            self.new(f"d{k}.gather((rows * {self.random.choice(['1', '3', '5'])} - 2) & 15, {first})", kind, "m")
        else:
            self.emit(f"d{k} = {make}[ROWS, COLUMNS])")
            self.new(f"d{k}.load([{self.random.choice(['0', '2', '-3', '7', '8'])}, {first}])", kind, "m")

    def block_store(self):
        a = self.pick("i", "m")
        if a is None or self.blocks == BLOCK_STORES: return
        area = f"(ints + {FIRST_STORE + self.blocks} * ROWS * COLUMNS)"
        self.blocks += 1
        self.emit(f"d = tl.make_tensor_descriptor({area}, [ROWS, COLUMNS], [COLUMNS, 1], "
                  f"[{'1' if (scattered := self.random.random() < 0.4) else 'ROWS'}, COLUMNS])")
        column = self.random.choice(["0", "4", "-2"])
        if scattered:
            shift = self.random.choice(["0", "2"])
            self.emit(f"d.scatter({a.name}.to(tl.int64), (rows ^ 3) + {shift}, {column})")
        else: self.emit(f"d.store([{self.random.choice(['0', '2', '-3'])}, {column}], {a.name}.to(tl.int64))")
        self.new(f"tl.load({area} + places)", "i", "m")

    def helper(self):
        a = self.pick("if", tile=True)
        if a is None: return
        call = self.random.choice([f"twice({a.name})", f"plus({a.name}, 3)", f"plus({a.name}, b=True)"])
        self.new(call, a.kind, a.shape)

    def constants(self):
        kind = self.random.choice("if")
        dtype = self.random.choice(INTS if kind == "i" else FLOATS)
        self.new(self.random.choice([f"tl.full((COLUMNS, ), {'5' if kind == 'i' else '0.1'}, tl.{dtype})",
                                     f"tl.zeros((COLUMNS, ), tl.{dtype}) + {self.literal(kind)}",
                                     "tl.arange(0, COLUMNS) * 3 - 7" if kind == "i" else
                                     f"tl.full((COLUMNS, ), -2.5, tl.{dtype}) * columns"]), kind, "v")

    def loop(self):
        a = self.pick("if", "m")
        if a is None: return
        b = self.pick("if", "m")
        name = f"t{self.count}"
        self.count += 1
        wide = "float64" if "f" in (a.kind, b.kind) else "int64"
        self.emit(f"{name} = {a.name}.to(tl.{wide})")
        self.emit(f"for k in range({self.random.choice(['0, 3', '4', '5, 0, -2', 'ROWS'])}):")
        # To the interpreter the variable of a range is a number of Python, and to the compiler an int32.
        self.emit("    k = tl.full((1, 1), k, tl.int32)")
        op = self.random.choice(["+=", "-=", "="])
        self.emit(f"    {name} {op} ({b.name} * k + {name} * 0).to(tl.{wide})")
        if self.random.random() < 0.3: self.emit(f"    {name} = tl.where({name} > k, {name}, k).to(tl.{wide})")
        self.values.append(Value(name, "f" if wide == "float64" else "i", "m"))

    def branch(self):
        a, s = self.pick("if", "m"), self.pick("i", "s")
        if a is None or s is None: return
        name = f"t{self.count}"
        self.count += 1
        wide = "float64" if a.kind == "f" else "int64"
        self.emit(f"if {s.name} {self.random.choice(['>', '==', '%'])} 3:")
        self.emit(f"    {name} = {a.name}.to(tl.{wide}) + 1")
        self.emit("else:")
        self.emit(f"    {name} = {a.name}.to(tl.{wide}) * 2")
        self.values.append(Value(name, a.kind, "m"))

    # --- the file ---

    def source(self):
        parameters = [f"x{k}" for k in range(len(self.inputs))] + [f"a{k}" for k in range(len(self.scalars))]
        text = ["import triton", "import triton.language as tl", "", "", "@triton.jit", "def twice(v):",
                "    return v + v", "", "", "@triton.jit", "def plus(v, b: tl.constexpr):", "    return v + b", "", "",
                "@triton.jit", "def larger(a, b):", "    return tl.where(a > b, a, b)", "", statements.HELPERS, "",
                "@triton.jit",
                f"def kernel({', '.join(parameters)}, ints, floats, widths, ROWS: tl.constexpr, "
                "COLUMNS: tl.constexpr):",
                "    rows = tl.arange(0, ROWS)", "    columns = tl.arange(0, COLUMNS)",
                "    places = rows[:, None] * COLUMNS + columns[None, :]", *self.lines]
        for k, v in enumerate(self.results()):
            out, wide = ("floats", "float64") if v.kind == "f" else ("ints", "int64")
            text.append(f"    tl.store({out} + {k} * ROWS * COLUMNS + places, "
                        f"{v.name}.to(tl.{wide}) + tl.zeros((ROWS, COLUMNS), tl.{wide}))")
            text.append(f"    tl.store(widths + {k}, {v.name}.dtype.primitive_bitwidth)")
        return "\n".join(text) + "\n"

    def results(self):
        return [v for v in self.values if v.name.startswith("t")]

    def arguments(self):
        generator = np.random.default_rng(self.random.randint(0, 2**31))
        arrays = []
        for dtype in self.inputs:
            if dtype in FLOATS:
                x = generator.standard_normal(ROWS * COLUMNS) * generator.choice([1, 1, 100])
                arrays.append(x.astype(dtype))
            else:
                name = "int8" if dtype == "int1" else dtype
                info = np.iinfo(name)
                x = generator.integers(info.min, info.max, ROWS * COLUMNS, dtype=name, endpoint=True)
                small = generator.integers(0, 10, ROWS * COLUMNS).astype(name)
                mixed = np.where(generator.random(ROWS * COLUMNS) < 0.5, x, small)
                arrays.append(mixed if dtype != "int1" else small & 1)
        return arrays


def load_module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outputs(count):
    places = (FIRST_STORE + BLOCK_STORES) * ROWS * COLUMNS
    return (np.full(places, 77, np.int64), np.full(places, 77.0), np.zeros(count, np.int64))


def difference(program, expected, got):
    for k, v in enumerate(program.results()):
        if expected[2][k] != got[2][k]: return f"{v.name} has {expected[2][k]} bits in Triton, {got[2][k]} in Kiln"
        part = slice(k * ROWS * COLUMNS, (k + 1) * ROWS * COLUMNS)
        e, g = (expected[1][part], got[1][part]) if v.kind == "f" else (expected[0][part], got[0][part])
        if v.kind != "f" or program.exact: same = (e == g) | ((e != e) & (g != g)) if v.kind == "f" else e == g
        else:
            unit = 2.0**-9 if expected[2][k] == 16 or "float16" in program.inputs else 2.0**-18
            same = np.isclose(e, g, rtol=unit, atol=unit, equal_nan=True)
        if not same.all():
            i = int(np.argmin(same))
            return f"{v.name}[{i}]: {e[i]!r} in Triton, {g[i]!r} in Kiln ({int((~same).sum())} places)"
    return ""


SHORT = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "int1": "i8"}


def by_ir(program, path, tools, arrays, results):
    """Runs the kernel's IR in Kiln's own interpreter, which leaves `results` changed."""
    types = ["*" + SHORT.get(d, d.replace("uint", "u").replace("int", "i")) for d in program.inputs]
    types += ["fp32" if isinstance(v, float) else "i32" if -2**31 <= v < 2**31 else "i64" for v in program.scalars]
    types += ["*i64", "*fp64", "*i64", "constexpr", "constexpr"]
    made = subprocess.run([tools[0], "compile", path, "--kernel", "kernel", "--signature", ",".join(types),
                           "--constexpr", f"ROWS={ROWS}", "--constexpr", f"COLUMNS={COLUMNS}", "--target", "host",
                           "--emit", "ir", "--enable-fp-fusion=false"], capture_output=True, text=True)
    if made.returncode: raise RuntimeError(made.stderr)
    with open(path + ".ir", "w") as file: file.write(made.stdout)
    words, files = [], []
    for k, a in enumerate([*arrays, *results]):
        files.append(f"{path}.{k}")
        a.tofile(files[-1])
    bits = [str(int(np.float32(v).view(np.uint32)) if isinstance(v, float) else v % 2**64) for v in program.scalars]
    words = [f"@{f}" for f in files[:len(arrays)]] + bits + [f"@{f}" for f in files[len(arrays):]]
    done = subprocess.run([tools[1], path + ".ir", "1,1,1", *words], capture_output=True, text=True)
    if done.returncode: raise RuntimeError(done.stderr)
    for a, f in zip(results, files[len(arrays):]): a[:] = np.fromfile(f, a.dtype)


def run(seed, folder, tools=None):
    """"" when all agree, "refused" when the interpreter takes it not, else what is wrong."""
    program = Program(seed)
    if not program.results(): return "refused"
    path = os.path.join(folder, f"k{seed}.py")
    with open(path, "w") as file: file.write(program.source())
    arrays, count = program.arguments(), len(program.results())
    expected, got, before = outputs(count), outputs(count), [a.copy() for a in arrays]
    try:
        module = load_module(path, f"triton_{seed}")
        with np.errstate(all="ignore"):
            module.kernel[(1, )](*[Array(a) for a in arrays], *program.scalars,
                                 *[Array(o) for o in expected], ROWS=ROWS, COLUMNS=COLUMNS)
    except Exception as e:
        return f"refused: {str(e).strip().splitlines()[-1] if str(e).strip() else type(e).__name__}"
    try:
        functions = {}
        names = load_module(path, f"kiln_{seed}")
        for name in ("twice", "plus", "larger", *statements.NAMES, "kernel"):
            function = getattr(names, name)
            functions[name] = kiln.jit(function.fn)
            setattr(names, name, functions[name])
            function.fn.__globals__[name] = functions[name]
        functions["kernel"][(1, )](*arrays, *program.scalars, *got, ROWS=ROWS, COLUMNS=COLUMNS, enable_fp_fusion=False)
    except Exception as e:
        return f"Kiln refuses it: {e}\n" + ("" if isinstance(e, kiln.Error) else traceback.format_exc())
    if problem := difference(program, expected, got): return problem
    if tools is None: return ""
    third = outputs(count)
    try:
        by_ir(program, path, tools, before, third)
    except RuntimeError as e:
        return f"the interpreter of IR refuses it: {e}"
    problem = difference(program, third, got)
    return problem and "of IR's interpreter and the host: " + problem.replace("in Triton", "by the IR")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--count", type=int, default=500)
    arguments.add_argument("--most", type=int, default=20, help="disagreements after which it ends")
    arguments.add_argument("--ir", nargs=2, metavar=("KILN", "INTERPRET_IR"),
                           help="programs `kiln` and `interpret_ir`: the kernel's IR in Kiln's own interpreter, too")
    given = arguments.parse_args()
    agreed, refused, wrong, reasons = 0, 0, 0, {}
    repaired.apply()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seed * 1_000_000, given.seed * 1_000_000 + given.count):
            problem = run(seed, folder, given.ir)
            if problem.startswith("refused"):
                refused += 1
                reasons[problem] = reasons.get(problem, 0) + 1
            elif problem:
                wrong += 1
                print(f"--- {seed}: {problem}\n{open(os.path.join(folder, f'k{seed}.py')).read()}", flush=True)
                if wrong >= given.most: break
            else:
                agreed += 1
    for reason, count in sorted(reasons.items(), key=lambda r: -r[1])[:10]: print(f"{count:5} {reason}")
    print(f"seed {given.seed}, Triton {triton.__version__}, Kiln {kiln.__version__}: {agreed} agree, {wrong} do not; "
          f"{refused} refused by Triton's interpreter")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
