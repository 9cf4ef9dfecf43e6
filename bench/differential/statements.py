"""Statements of random kernels beyond arithmetic: tuples, control flow, helpers, constants, memory, products."""

HELPERS = '''
@triton.jit
def pair_max(av, ai, bv, bi):
    first = (av > bv) | ((av == bv) & (ai < bi))
    return tl.where(first, av, bv), tl.where(first, ai, bi)


@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def three(a, b, c, x, y, z):
    return a + x, tl.maximum(b, y), c ^ z


@triton.jit
def keep_left(a, b):
    return a


@triton.jit
def early(v, n):
    if n > 3:
        return v + 1
    if n == 2:
        return v * 3
    return v - n


@triton.jit
def nested_early(v, n, FLAG: tl.constexpr):
    if FLAG:
        return v
    if n < 17:
        if n > 2:
            return v + 5
        v = v * 2
    return v + n


@triton.jit
def several(v, w):
    return v + w, v - w, (v & w, tl.full((), 7, tl.int32))


@triton.jit
def power(v, N: tl.constexpr):
    if N == 0:
        return v * 0 + 1
    elif N % 2 == 0:
        return power(v * v, N // 2)
    else:
        return v * power(v, N - 1)


@triton.jit
def total(values, START: tl.constexpr = 0):
    sum = values[0]
    for k in tl.static_range(1, len(values)):
        sum = sum + values[k] * (k + START)
    return sum


@triton.jit
def choose(v, MODE: tl.constexpr, EXTRA: tl.constexpr = None):
    if MODE == "plus":
        v = v + 2
    elif MODE == "minus":
        v = v - 2
    if EXTRA is not None:
        v = v * EXTRA
    return v


@triton.jit
def swap_sorted(a, b):
    less = a < b
    return tl.where(less, a, b), tl.where(less, b, a)


@triton.jit
def folded(v, DEPTH: tl.constexpr):
    if DEPTH == 0:
        return v
    else:
        left, right = swap_sorted(v, v ^ DEPTH)
        return folded(right - left, DEPTH - 1) + DEPTH
'''

CONSTANTS = [
    '-7 // 2', '7 % -3', '2 ** 5', '(1 << 3) | 5', 'min(3, COLUMNS)', 'max(ROWS, 3) - COLUMNS // ROWS', '-(5 % 3)',
    '~4', '9 >> 1', 'COLUMNS if ROWS > 3 else 1', 'ROWS // 2 + (COLUMNS > ROWS)', 'tl.cdiv(COLUMNS + 3, ROWS)',
    'len((1, 2, 3))', 'int(COLUMNS / ROWS)', 'not ROWS', 'ROWS and 4', 'ROWS == 8 or 0', '13 ^ 6', '5 & 6'
]

NAMES = ("pair_max", "affine", "three", "keep_left", "early", "nested_early", "several", "power", "total", "choose",
         "swap_sorted", "folded")


class More:
    """Mixed into Program, which has new(), pick(), emit(), literal() and random."""

    MORE = [
        "tuple_reduce", "tuple_scan", "early_return", "returns", "recursion", "static_loop", "swap_loop", "nested_loop",
        "conditions", "booleans", "wide_shift", "constexprs", "pointers", "masked", "block_pointer", "product",
        "float_atomic", "compare_swap", "three_dimensions", "indices_of", "functions", "strings", "scalar_branch",
        "bits_of", "brain", "eight", "unary_operators", "random_numbers", "tuple_value", "float_sort", "typed_sums",
        "late_carry", "integer_edges", "product3", "scalar_memory", "masked_histogram",
        "bool_memory", "gather_rows", "cat", "split_thrice", "small_compare", "bounds", "loop_variable", "number_casts",
        "ternary", "scan_tuple_floats", "wide_reduce", "unsigned_ops", "local_helpers", "mixed_where", "repeat_store"
    ]

    def fresh(self):
        self.count += 1
        return f"q{self.count}"

    def slot(self, array):
        """COLUMNS places of their own, behind the results."""
        self.slots += 1
        return f"({array} + 60 * ROWS * COLUMNS + {self.slots - 1} * COLUMNS)"

    def wide(self, v):
        return f"{v.name}.to(tl.int64)" if v.kind == "i" else f"{v.name}.to(tl.float64)"

    def one(self, *of):
        return self.random.choice(of)

    def number(self, *of):
        return str(self.random.choice(of))

    def tuple_reduce(self):
        a, b = self.pick("i", "m"), self.pick("i", "m")
        if a is None: return
        axis, name = self.one(0, 1), self.fresh()
        which = self.one(0, 1, 2, 3)
        if which == 0:
            self.emit(f"{name}, i{name} = tl.reduce(({a.name}, tl.broadcast_to(columns[None, :], ({a.name}).shape)), "
                      f"{axis}, pair_max)")
            pair = [name, f"i{name}"]
        elif which == 1:
            self.emit(f"{name}, i{name} = tl.reduce(({self.wide(a)}, {self.wide(b)}), {axis}, affine)")
            pair = [name, f"i{name}"]
        elif which == 2:
            self.emit(f"{name}, i{name}, j{name} = tl.reduce(({self.wide(a)}, {b.name}, {a.name}), {axis}, three, "
                      "keep_dims=True)")
            pair = [name, f"i{name}", f"j{name}"]
            for one in pair:
                self.new(f"{one} + tl.zeros((ROWS, COLUMNS), tl.int8)", "i", "m")
            return
        else:
            self.emit(f"{name}, i{name} = tl.reduce(({self.wide(a)}, {self.wide(b)}), None, affine)")
            for one in (name, f"i{name}"):
                self.new(f"{one}", "i", "s")
            return
        for one in pair:
            self.new(one, "i", "v") if axis == 0 else self.new(f"tl.sum({one}.to(tl.int64))", "i", "s")

    def tuple_scan(self):
        a, b = self.pick("i", "m"), self.pick("i", "m")
        if a is None: return
        axis, name, reverse = self.one(0, 1), self.fresh(), self.one("", ", reverse=True")
        f, pair = self.one(("affine", (self.wide(a), self.wide(b))), ("pair_max", (a.name, b.name)))
        self.emit(f"{name}, i{name} = tl.associative_scan(({pair[0]}, {pair[1]}), {axis}, {f}{reverse})")
        for one in (name, f"i{name}"):
            self.new(one, "i", "m")
        if self.random.random() < 0.3:
            self.new(f"tl.associative_scan({a.name}, {axis}, keep_left{reverse})", "i", "m")

    def early_return(self):
        a, s = self.pick("if", tile=True), self.pick("i", "s")
        if a is None or s is None: return
        n = f"{s.name}.to(tl.int32)"
        self.new(
            self.one(f"early({self.wide(a)}, {n})", f"nested_early({self.wide(a)}, {n}, False)",
                     f"nested_early({a.name}, {n}, True)"), a.kind, a.shape)

    def returns(self):
        a, b = self.pick("i", "v"), self.pick("i", "v")
        if a is None: return
        n = self.fresh()
        self.emit(
            f"{n}, r{n}, (s{n}, u{n}) = several({a.name}, {b.name})" if self.random.random() < 0.4 else
            f"{n}, r{n}, v{n} = several({a.name}, {b.name})\n{self.indent}s{n} = v{n}[0]\n{self.indent}u{n} = v{n}[1]")
        for one in (n, f"r{n}", f"s{n}"):
            self.new(one, "i", "v")
        self.new(f"{n} * u{n}", "i", "v")

    def recursion(self):
        a = self.pick("i", tile=True)
        if a is not None: self.new(f"power({a.name}, {self.number(0, 1, 3, 6)})", "i", a.shape)

    def static_loop(self):
        a = self.pick("i", tile=True)
        if a is None: return
        n = self.fresh()
        self.emit(f"{n} = {a.name}")
        bounds = self.one("3", "1, 7, 2", "5, -1, -2", "2, 2")
        self.emit(f"for k{n} in tl.static_range({bounds}):")
        self.emit(f"    if k{n} % 2 == {self.number(0, 1)}:")
        self.emit(f"        {n} = {n} {self.one('+', '^', '*')} (k{n} + 1)")
        self.emit("    else:")
        self.emit(f"        {n} = ({n} << k{n}) {self.one('-', '|')} {a.name}")
        self.new(n, "i", a.shape)

    def swap_loop(self):
        a, b = self.pick("i", "m"), self.pick("i", "m")
        if a is None: return
        n = self.fresh()
        self.emit(f"x{n}, y{n} = {self.wide(a)}, {self.wide(b)}")
        self.emit(f"z{n} = tl.full((), 1, tl.int64)")
        self.emit(f"for k{n} in range({self.number(0, 3, 4)}):")
        self.emit(f"    x{n}, y{n} = y{n}, x{n} + {self.one('y' + n, 'k' + n, 'z' + n)}")
        self.emit(f"    z{n} = z{n} * 3 - k{n}")
        for one in (f"x{n}", f"y{n}"):
            self.new(one, "i", "m")
        self.new(f"z{n}", "i", "s")

    def nested_loop(self):
        a, s = self.pick("i", "v"), self.pick("i", "s")
        if a is None: return
        n, limit = self.fresh(), f"({s.name} % 5).to(tl.int32)" if s is not None else "4"
        self.emit(f"x{n} = {self.wide(a)}")
        self.emit(f"c{n} = tl.full((), 0, tl.int32)")
        self.emit(f"for i in range(0, {self.number(3, 4)}):")
        self.emit(f"    for j in range(i, {limit}):")
        self.emit(f"        if (i + j) % 2 == 0:")
        self.emit(f"            x{n} += i * {self.number(2, 7)}")
        self.emit(f"            c{n} += 1")
        self.emit(f"        elif j == {self.number(1, 3)}:")
        self.emit(f"            x{n} = x{n} ^ (j + c{n})")
        self.emit(f"    while c{n} > 3:")
        self.emit(f"        c{n} = c{n} - 2")
        self.emit(f"        x{n} = x{n} - c{n}")
        self.new(f"x{n}", "i", "v")
        self.new(f"c{n}", "i", "s")

    def conditions(self):
        a, s = self.pick("i", "m"), self.pick("i", "s")
        if a is None: return
        n = self.fresh()
        self.emit(f"i{n} = tl.full((), {self.number(0, 3, 9)}, tl.int32)")
        self.emit(f"x{n} = {self.wide(a)}")
        other = f"({s.name} {self.one('>', '!=')} 2)" if s is not None else f"(i{n} != 7)"
        self.emit(f"while (i{n} < {self.number(6, 12)}) {self.one('and', 'and', '&')} "
                  f"({other} {self.one('or', '|')} (tl.max(columns) > i{n})):")
        self.emit(f"    i{n} += {self.number(1, 2, 3)}")
        self.emit(f"    if not (i{n} == {self.number(4, 5)}):")
        self.emit(f"        x{n} = x{n} + i{n}")
        self.new(f"x{n}", "i", "m")
        self.new(f"i{n}", "i", "s")

    def booleans(self):
        a, b = self.pick("b", tile=True), self.pick("b", tile=True)
        if a is None: return
        c = self.pick("if", tile=True)
        text, kind = self.one((f"{a.name} + {b.name}", "b"), (f"{a.name} * {b.name}", "b"), (f"~{a.name}", "b"),
                              (f"{a.name} ^ {b.name}", "b"), (f"({a.name} < {b.name})", "b"),
                              (f"({a.name} >= {b.name})", "b"), (f"tl.where({a.name}, {b.name}, ~{a.name})", "b"),
                              (f"{a.name}.to(tl.int8) - {b.name}", "i"), (f"{a.name} * 3", "i"), (f"{a.name} - 1", "i"),
                              (f"{a.name} // True", "i"))
        shape = self.joined(a.shape, b.shape) if b.name in text else a.shape
        if c is not None and self.random.random() < 0.4:
            text, kind, shape = f"{a.name} * {c.name}", c.kind, self.joined(a.shape, c.shape)
        self.new(text, kind, shape)

    def wide_shift(self):
        a = self.pick("i", tile=True)
        if a is None: return
        to = self.one("int32", "uint32", "int64", "uint64")
        by = self.one("columns", "(columns + 9)", "31", "(columns & 3).to(tl.int64)", "(columns % 7).to(tl.uint8)")
        self.new(f"{a.name}.to(tl.{to}) {self.one('<<', '>>')} {by}", "i", a.shape)

    def constexprs(self):
        a = self.pick("if", tile=True)
        if a is None: return
        self.emit(f"C{self.count}: tl.constexpr = {self.one(*CONSTANTS)}")
        op = self.one("+", "-", "*")
        self.new(f"{a.name} {op} C{self.count}", a.kind, a.shape)

    def pointers(self):
        k = self.load_of("i")
        p = f"x{k}"
        n = self.fresh()
        offset = self.one("columns", "(columns * 3) % 7", "columns.to(tl.int64)", "columns.to(tl.uint8)",
                          "(COLUMNS - 1 - columns).to(tl.int16)")
        which = self.one(0, 1, 2, 3, 4)
        if which == 0: text = f"tl.load(({p} + 5) - 2 + {offset})"
        elif which == 1:
            self.emit(f"p{n} = {p} + {offset}")
            self.emit(f"for k{n} in range(3):")
            self.emit(f"    p{n} += {self.number(1, 2, 'k' + n)}")
            text = f"tl.load(p{n})"
        elif which == 2:
            text = f"tl.load(tl.where(columns % 3 == 0, {p} + {offset}, {p} + 1))"
        elif which == 3:
            text = f"tl.load(({p} + {offset}).to(tl.int64).to(tl.pointer_type({p}.dtype.element_ty), bitcast=True))"
        else:
            text = f"tl.load(({p}.to(tl.pointer_type(tl.uint8), bitcast=True)) + {offset})"
        self.new(text, "i", "v")

    def load_of(self, kind):
        k, dtype = len(self.inputs), self.one(*self.INTS if kind == "i" else self.FLOATS)
        self.inputs.append(dtype)
        return k

    def masked(self):
        kind = self.one("i", "f")
        k, a = self.load_of(kind), self.pick("if", "m")
        other = self.one("1", "0", "-3", "7.75" if kind == "f" else "5", "rows[:, None]", "True")
        if a is not None and a.kind == kind and self.random.random() < 0.3: other = a.name
        elif a is not None and a.kind == "i" and self.random.random() < 0.3: other = a.name
        mask = self.one("columns[None, :] < 9", "rows[:, None] != 3", "(rows[:, None] + columns[None, :]) % 3 > 0",
                        "rows[:, None] < 0", "columns[None, :] >= ROWS - 3")
        self.new(f"tl.load(x{k} + places, mask={mask}, other={other})", kind, "m")

    def block_pointer(self):
        kind = self.one("i", "f")
        k, n = self.load_of(kind), self.fresh()
        rows, columns = self.number("ROWS", "ROWS - 3", "5"), self.number("COLUMNS", "COLUMNS - 5", "7")
        self.emit(f"p{n} = tl.make_block_ptr(x{k}, ({rows}, {columns}), (COLUMNS, 1), ({self.number(0, 2, -2)}, "
                  f"{self.number(0, 3, -1)}), (ROWS, COLUMNS), (1, 0))")
        if self.random.random() < 0.4:
            self.emit(f"p{n} = tl.advance(p{n}, ({self.number(0, 1, -1)}, {self.number(0, 2)}))")
        padding = self.one(', padding_option="zero"', ', padding_option="zero"',
                           ', padding_option="nan"' if kind == "f" else ', padding_option="zero"')
        self.emit(f"{n} = tl.load(p{n}, boundary_check=(0, 1){padding})")
        self.new(f"tl.where({n} == {n}, {n}, 9)", kind, "m")

    def product(self):
        a, b = self.pick("i", "m"), self.pick("i", "m")
        if a is None: return
        which = self.one("int8", "float16", "float32", "float64", "bfloat16", "float8e5", "float8e4nv", "acc", "out")
        t = which if which not in ("acc", "out") else "float16"
        l, r = (f"({v.name} & 3).to(tl.int8)" + ("" if t == "int8" else ".to(tl.float32)" + f".to(tl.{t})")
                for v in (a, b))
        if "8" in t: l, r = (f"{v}.reshape(ROWS // 2, COLUMNS * 2)" for v in (l, r))
        if t == "int8": l, r = (f"{v.name}.to(tl.int8).reshape(ROWS // 2, COLUMNS * 2)" for v in (a, b))
        extra = ""
        if which == "acc": extra = ", acc=tl.full((ROWS, ROWS), 5, tl.float32)"
        if which == "out": extra = ", out_dtype=tl.float16"
        if t == "float32": extra = ', input_precision="ieee"'
        if t == "int8": extra = ", out_dtype=tl.int32"
        if t == "float64": extra = ", out_dtype=tl.float64"
        kind = "i" if t == "int8" else "f"
        n = self.fresh()
        self.emit(f"{n} = tl.dot({l}, tl.trans({r}){extra})")
        self.new(
            f"tl.sum(tl.sum({n}.to(tl.{'int64' if kind == 'i' else 'float64'}), 0) "
            f"* (tl.arange(0, {n}.shape[1]) + 1))", kind, "s")

    def product3(self):
        a, b = self.pick("i", "m"), self.pick("i", "m")
        if a is None: return
        n = self.fresh()
        self.emit(f"{n} = tl.dot(({a.name} & 7).to(tl.float16).reshape(2, ROWS // 2, COLUMNS), "
                  f"tl.permute(({b.name} & 3).to(tl.float16).reshape(2, ROWS // 2, COLUMNS), (0, 2, 1)))")
        self.new(f"tl.sum({n}.reshape(ROWS * ROWS // 2) * tl.arange(0, ROWS * ROWS // 2))", "f", "s")

    def float_atomic(self):
        a, i = self.pick("i", "v"), self.pick("i", "v")
        if a is None: return
        n = self.fresh()
        slot = self.slot("floats")
        value = f"({a.name} & 255).to(tl.float64)"
        op = self.one("add", "add", "xchg")
        index = "columns" if op == "xchg" else f"({i.name} & 7).to(tl.int32)"
        name = self.fresh()
        self.emit(f"{name} = tl.atomic_{op}({slot} + {index}, {value}, mask=columns % 4 != 1)")
        if op == "xchg" or index == "columns": self.new(f"tl.where(columns % 4 != 1, {name}, 0)", "f", "v")
        self.new(f"tl.load({slot} + columns)", "f", "v")

    def compare_swap(self):
        a = self.pick("i", "v")
        if a is None: return
        slot = self.slot("ints")
        self.new(
            f"tl.atomic_cas({slot} + columns, tl.where(columns % 2 == 0, 77, 76).to(tl.int64), {a.name}.to(tl.int64))",
            "i", "v")
        self.new(f"tl.load({slot} + columns)", "i", "v")
        name = self.fresh()
        self.emit(
            f"{name} = tl.atomic_{self.one('add', 'max', 'min', 'or', 'xchg')}({slot} + 3, {self.number(-5, 100, 3)})")
        self.new(name, "i", "s")
        self.new(f"tl.load({slot} + columns)", "i", "v")

    def three_dimensions(self):
        a = self.pick("bif", "m")
        if a is None: return
        t = f"tl.reshape({a.name}, (ROWS // 2, 4, COLUMNS // 2))"
        order = self.one("(0, 2, 1)", "(2, 1, 0)", "(1, 2, 0)", "(2, 0, 1)", "(1, 0, 2)")
        f = self.one("", f"flip{self.random.choice([0, 1, 2])}", "sum", "cumsum", "max")
        text = f"tl.permute({t}, {order})"
        if f.startswith("flip"): text = f"tl.flip({text}, {f[4]})"
        kind = a.kind
        if f and not f.startswith("flip"):
            if a.kind == "i":
                axis = self.random.choice([0, 1, 2])
                if f == "cumsum": text = f"tl.cumsum({text}, {axis})"
                else:
                    n = self.fresh()
                    self.emit(f"{n} = {text}")
                    text = f"(tl.{f}({n}, {axis}, keep_dims=True) + tl.zeros({n}.shape, tl.int8))"
        self.new(f"{text}.reshape(ROWS, COLUMNS)", kind, "m")

    def indices_of(self):
        a = self.pick("i", "m")
        if a is None: return
        n, axis = self.fresh(), self.one(0, 1)
        self.emit(f"{n}, i{n} = tl.{self.one('max', 'min')}({a.name}, {axis}, return_indices=True)")
        for one in (n, f"i{n}"):
            self.new(one, "i", "v") if axis == 0 else self.new(f"tl.sum({one}.to(tl.int64))", "i", "s")
        self.new(
            f"tl.arg{self.one('max', 'min')}({a.name}, axis={axis}, tie_break_left=True, keep_dims=True) "
            "+ tl.zeros((ROWS, COLUMNS), tl.int8)",
            "i", "m")

    def functions(self):
        a, b = self.pick("i", tile=True), self.pick("i", tile=True)
        f, g = self.pick("f", tile=True), self.pick("f", tile=True)
        if a is None or f is None: return
        text, kind, shape, exact = self.one(
            (f"tl.cdiv({a.name}, 7)", "i", a.shape, True), (f"tl.abs({a.name})", "i", a.shape, True),
            (f"tl.umulhi({a.name}.to(tl.uint32), {b.name}.to(tl.uint32))", "i", self.joined(a.shape, b.shape), True),
            (f"tl.umulhi({a.name}.to(tl.uint64), {b.name}.to(tl.uint64))", "i", self.joined(a.shape, b.shape), True),
            (f"tl.abs({f.name})", "f", f.shape, True), (f"-{f.name}", "f", f.shape, True),
            (f"tl.fma({f.name}.to(tl.float32), {f.name}.to(tl.float32), {f.name}.to(tl.float32))", "f", f.shape, False),
            (f"{f.name} % ({g.name} * 0 + 3)", "f", self.joined(f.shape, g.shape), True),
            (f"tl.maximum({f.name}, {g.name}, propagate_nan=tl.PropagateNan.ALL)", "f", self.joined(f.shape,
                                                                                                    g.shape), True),
            (f"tl.div_rn({f.name}.to(tl.float32), {g.name}.to(tl.float32) + 0.5)", "f", self.joined(
                f.shape, g.shape), False), (f"tl.sqrt_rn(tl.abs({f.name}).to(tl.float32))", "f", f.shape, False),
            (f"tl.fdiv({f.name}.to(tl.float32), 3.0)", "f", f.shape, False),
            (f"tl.sigmoid({f.name}.to(tl.float32))", "f", f.shape, False),
            (f"tl.erf({f.name}.to(tl.float32))", "f", f.shape, False),
            (f"tl.softmax({f.name}.to(tl.float32))" if f.shape == "v" else f"tl.floor({f.name}.to(tl.float32))", "f",
             f.shape, False), (f"tl.floor({f.name}.to(tl.float32)) + tl.ceil({f.name}.to(tl.float64))", "f", f.shape,
                               True), (f"tl.exp2(({a.name} & 7).to(tl.float32))", "f", a.shape, False),
            (f"{f.name} > {g.name}", "b", self.joined(f.shape, g.shape), True),
            (f"({f.name} == {f.name}) & ({f.name} < float('inf'))", "b", f.shape, True))
        if not exact: self.exact = False
        self.new(text, kind, shape)

    def strings(self):
        a = self.pick("if", tile=True)
        if a is not None:
            self.new(
                self.one(f'choose({a.name}, "plus")', f'choose({a.name}, MODE="minus", EXTRA=3)',
                         f'choose({a.name}, "other", 2)', f'choose({a.name}, "plus", EXTRA=None)'), a.kind, a.shape)

    def scalar_branch(self):
        a, s, u = self.pick("i", "m"), self.pick("i", "s"), self.pick("i", "s")
        if a is None or s is None: return
        n = self.fresh()
        which = self.one(0, 1, 2)
        if which == 0:
            self.new(f"({s.name}.to(tl.int64) if {s.name} > {u.name} else {u.name}.to(tl.int64) * 2)", "i", "s")
        elif which == 1:
            self.emit(f"x{n} = {self.wide(a)}")
            self.emit(f"if ({s.name} > 3) {self.one('and', 'or')} ({u.name} {self.one('<', '!=')} 16):")
            self.emit(f"    if {u.name} == 0:")
            self.emit(f"        x{n} += {s.name}.to(tl.int32)")
            self.emit("    else:")
            self.emit(f"        x{n} = x{n} * 3")
            self.emit(f"elif not ({s.name} == -3):")
            self.emit(f"    x{n} = -x{n}")
            self.new(f"x{n}", "i", "m")
        else:
            self.emit(f"x{n} = {self.wide(a)}")
            self.emit(f"y{n} = tl.sum(x{n} & 1)")
            self.emit(f"if y{n} > {self.number(60, 64)}:")
            self.emit(f"    x{n}, y{n} = x{n} >> 1, y{n} * 2")
            self.new(f"x{n}", "i", "m")
            self.new(f"y{n}", "i", "s")

    def bits_of(self):
        a = self.pick("i", tile=True)
        if a is None: return
        pairs = [("int32", "float32"), ("uint32", "float32"), ("int64", "float64"), ("int16", "float16"),
                 ("uint8", "int8"), ("uint16", "bfloat16"), ("int64", "float64")]
        i, f = self.one(*pairs)
        if f == "int8": self.new(f"{a.name}.to(tl.{i}).to(tl.{f}, bitcast=True)", "i", a.shape)
        else:
            n = self.fresh()
            self.emit(f"{n} = {a.name}.to(tl.{i}).to(tl.{f}, bitcast=True)")
            self.new(
                self.one(f"tl.abs({n}).to(tl.{i}, bitcast=True)", f"tl.where({n} == {n}, 1, 0)", f"({n} < 1.5)",
                         f"tl.maximum(tl.where({n} == {n}, {n}, 0), -2.0) > 0"), "i", a.shape)

    def brain(self):
        """Arithmetic in bfloat16: one rounding each."""
        a, b = self.pick("i", tile=True), self.pick("f", tile=True)
        if a is None or b is None: return
        n = self.fresh()
        self.emit(f"{n} = ({a.name} & 255).to(tl.bfloat16)")
        self.emit(f"y{n} = {b.name}.to(tl.float32).to(tl.bfloat16)")
        shape = self.joined(a.shape, b.shape)
        text = self.one("a * b", "a + b", "a - b", "tl.maximum(a, b)", "tl.where(a > b, a, b)", "a * 0.3 + b")
        self.emit(f"a, b = {n}, y{n}")
        self.emit(f"{n} = {text}")
        self.new(f"{n}.to(tl.float32)", "f", shape)

    def eight(self):
        """Roundings to float8 and between its two formats."""
        f = self.pick("f", tile=True)
        if f is None: return
        t = self.one("float8e5", "float8e4nv")
        u = self.one("float16", "float32", "bfloat16")
        n = self.fresh()
        self.emit(f"{n} = ({f.name}.to(tl.float32) * {self.one('1', '1e-3', '100')}).to(tl.{u}).to(tl.{t})")
        self.new(f"{n}.to(tl.{self.one('float16', 'float32', 'bfloat16')}).to(tl.float32)", "f", f.shape)

    def unary_operators(self):
        a = self.pick("if", tile=True)
        if a is None: return
        self.new(
            self.one(f"-{a.name}", f"~{a.name}" if a.kind == "i" else f"-(-{a.name})", f"({a.name} != 0) * {a.name}"),
            a.kind, a.shape)

    def random_numbers(self):
        a = self.pick("i", tile=True)
        if a is None: return
        seed = self.number(0, 5, 123456789)
        self.new(
            self.one(f"tl.randint({seed}, {a.name}.to(tl.int32))", f"tl.randint({seed}, {a.name}.to(tl.uint32), 7)"),
            "i", a.shape)
        if self.random.random() < 0.4: self.new(f"tl.rand({seed}, {a.name}.to(tl.int32))", "f", a.shape)

    def tuple_value(self):
        a, b = self.pick("i", "v"), self.pick("i", "v")
        if a is None: return
        n = self.fresh()
        self.emit(f"{n} = ({a.name}, {b.name}, tl.full((), 3, tl.int32))")
        self.new(
            self.one(f"total({n})", f"total({n}, START=2)", f"{n}[0] + {n}[2]", f"total(({b.name}, {n}[1]), 1)",
                     f"{n}[-1] * {n}[1]", f"total({n}[1:])"), "i", "v")

    def float_sort(self):
        a = self.pick("f", "m")
        if a is None: return
        self.new(
            self.one(f"tl.sort({a.name}, 1)", f"tl.sort({a.name}, descending=True)", f"tl.flip({a.name}, 0)",
                     f"tl.sort({a.name}.reshape(ROWS * COLUMNS), descending=True).reshape(ROWS, COLUMNS)",
                     f"tl.sort(tl.trans({a.name})).reshape(ROWS, COLUMNS)"), "f", "m")

    def typed_sums(self):
        a = self.pick("i", "m")
        if a is None: return
        self.new(
            self.one(f"tl.sum({a.name}, 0, dtype=tl.int64)", f"tl.sum({a.name}, 0, dtype=tl.uint8)",
                     f"tl.cumsum({a.name}, 1, dtype=tl.int64).to(tl.int64).sum(0)", f"tl.max({a.name}, 0)",
                     f"tl.xor_sum({a.name}, 0)", f"tl.reduce_or({a.name}, 0)",
                     f"tl.min({a.name}, axis=0, keep_dims=False)"), "i", "v")
        self.new(
            self.one(f"tl.sum({a.name})", f"tl.max({a.name})", f"tl.min({a.name})", f"tl.xor_sum({a.name})",
                     f"tl.sum(({a.name} > 3).to(tl.int32))"), "i", "s")

    def late_carry(self):
        """Names that a loop binds for the next iteration, with a test of the iteration before."""
        a = self.pick("i", "v")
        if a is None: return
        n = self.fresh()
        self.emit(f"x{n} = {self.wide(a)}")
        self.emit(f"last{n} = tl.full((), {self.number(0, 1, 5)}, tl.int32)")
        self.emit(f"best{n} = tl.full((), -100, tl.int64)")
        self.emit(f"for k{n} in tl.range(0, {self.number(5, 6)}, {self.number(1, 2)}, num_stages={self.number(1, 3)}):")
        self.emit(f"    now = tl.sum(tl.where(columns == k{n}, x{n}, 0)) % 11")
        self.emit(f"    if now > best{n}:")
        self.emit(f"        best{n} = now")
        self.emit(f"        last{n} = k{n}")
        self.emit(f"    x{n} = x{n} + tl.where(last{n} > 2, {self.number(1, -1)}, best{n})")
        for one in (f"best{n}", f"last{n}"):
            self.new(one, "i", "s")
        self.new(f"x{n}", "i", "v")

    def integer_edges(self):
        a = self.pick("i", tile=True)
        if a is None: return
        t = self.one("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
        bits, signed = int(t.lstrip("uint")), not t.startswith("u")
        edge = self.one(*([-2**(bits - 1), 2**(bits - 1) - 1, -1] if signed else [2**bits - 1, 2**(bits - 1)]))
        n = self.fresh()
        self.emit(f"{n} = tl.full((COLUMNS, ), {edge}, tl.{t})" if self.random.random() <
                  0.7 else f"{n} = (tl.zeros((COLUMNS, ), tl.int64) + {min(edge, 2**63 - 1)}).to(tl.{t})")
        divisor = f"(columns.to(tl.{t}) | 1)" if edge == -2**(bits - 1) else f"({a.name}.to(tl.{t}) | 1)"
        self.new(
            self.one(f"{n} + {a.name}", f"{n} - 1", f"{n} * {a.name}", f"-{n}", f"{n} // {divisor}", f"{n} % {divisor}",
                     f"{n} < {a.name}", f"tl.minimum({n}, {a.name})", f"{n} >> 3", f"{n} << 1",
                     f"{n}.to(tl.float64).to(tl.float32) * 0.5 > 0", f"tl.abs({n})", f"{n} + 1 > {n}"), "i",
            "v" if a.shape == "v" else "m")
        self.values[-1].shape = "m" if a.name in self.lines[-1] and a.shape == "m" else "v"

    def scalar_memory(self):
        k, s = self.load_of("i"), self.pick("i", "s")
        index = f"({s.name} & 15)" if s is not None else "3"
        self.new(f"tl.load(x{k} + {index})", "i", "s")
        slot = self.slot("ints")
        value = self.values[-1].name
        self.emit(f"tl.store({slot} + {self.number(0, 3)}, {value})")
        self.emit(f"tl.store({slot} + 8 + tl.arange(0, 4), {value} + 1, mask=tl.arange(0, 4) != 2)")
        self.new(f"tl.load({slot} + columns)", "i", "v")

    def masked_histogram(self):
        a = self.pick("i", "v")
        if a is None: return
        n = self.fresh()
        self.emit(f"{n} = ({a.name} & 31).to(tl.int32)")
        self.new(f"tl.histogram({n}, COLUMNS * 2, mask={n} < {self.number(5, 16, 32)}).reshape(2, COLUMNS).sum(0)", "i",
                 "v")

    def bool_memory(self):
        b = self.pick("b", "v")
        if b is None: return
        slot, n = self.slot("ints"), self.fresh()
        self.emit(f"p{n} = {slot}.to(tl.pointer_type(tl.int1), bitcast=True) + columns * 3")
        value = self.one(b.name, f"{b.name}.to(tl.int32) * 2", f"{b.name}.to(tl.float32) * 0.5")
        self.emit(f"tl.store(p{n}, {value}, mask=columns != 4)")
        self.new(f"tl.load(p{n})", "b", "v")
        self.new(f"tl.load({slot} + columns)", "i", "v")

    def gather_rows(self):
        a, i = self.pick("bif", "m"), self.pick("i", "m")
        if a is not None and i is not None:
            self.new(f"tl.gather({a.name}, ({i.name} & (ROWS - 1)).to(tl.{self.one('int32', 'int64', 'int8')}), 0)",
                     a.kind, "m")

    def cat(self):
        a, b = self.pick("i", "v"), self.pick("i", "v")
        if a is not None:
            self.new(f"tl.sum(tl.cat({self.wide(a)}, {self.wide(b)}, can_reorder=True))", "i", "s")

    def split_thrice(self):
        a = self.pick("bif", "m")
        if a is None: return
        n = self.fresh()
        self.emit(f"x{n}, y{n} = tl.split(tl.reshape({a.name}, (4, ROWS // 4, COLUMNS // 2, 2)))")
        self.emit(f"z{n} = tl.join(tl.join(y{n}, x{n}), tl.join(x{n}, x{n}))")
        self.new(f"tl.trans(z{n}, {self.one('0, 1, 2, 3, 4', '4, 3, 2, 1, 0', '1, 4, 0, 2, 3')})"
                 f".reshape(2, ROWS * COLUMNS).reshape(2 * ROWS, COLUMNS).reshape(ROWS, 2, COLUMNS)"
                 + (".to(tl.int32).sum(1)" if a.kind == "b" else f".{self.one('max', 'min')}(1)"),
                 "i" if a.kind == "b" else a.kind, "m")

    def small_compare(self):
        """Comparisons and selections in float8 and bfloat16."""
        a, b = self.pick("i", tile=True), self.pick("i", tile=True)
        if a is None: return
        t, u = self.one(("float8e5", "uint8"), ("float8e4nv", "uint8"), ("bfloat16", "uint16"), ("float16", "uint16"))
        n = self.fresh()
        for v, name in ((a, "x"), (b, "y")): self.emit(f"{name}{n} = {v.name}.to(tl.{u}).to(tl.{t}, bitcast=True)")
        if "8" in t: self.emit(f"x{n}, y{n} = x{n}.to(tl.float32), y{n}.to(tl.float32)")
        self.new(f"x{n} {self.one('<', '<=', '==', '!=', '>', '>=')} y{n}", "b", self.joined(a.shape, b.shape))

    def bounds(self):
        """Ranges with bounds of other types, that may be empty, and steps."""
        a, s = self.pick("i", "v"), self.pick("i", "s")
        if a is None or s is None: return
        n, t = self.fresh(), self.one("int8", "int16", "int32", "int64", "uint8", "uint32", "uint16")
        self.emit(f"x{n} = {self.wide(a)}")
        limit = f"({s.name} & 7).to(tl.{t})"
        self.emit(f"for i{n} in range({self.one(f'{limit}', f'2, {limit}', f'{limit}, 9', f'0, {limit}, 3')}):")
        self.emit(f"    x{n} = x{n} * 3 + i{n}")
        self.new(f"x{n}", "i", "v")

    def loop_variable(self):
        """Values of a loop after it, and of loops in loops that carry several."""
        a = self.pick("i", "v")
        if a is None: return
        n = self.fresh()
        self.emit(f"x{n}, y{n}, z{n} = {self.wide(a)}, tl.full((), 1, tl.int64), columns.to(tl.int64)")
        self.emit(f"for i{n} in range({self.number(2, 3)}):")
        self.emit(f"    t{n} = x{n}")
        self.emit(f"    for j{n} in range(i{n} + {self.number(0, 1)}):")
        self.emit(f"        x{n}, z{n} = z{n} - j{n}, x{n} ^ t{n}")
        self.emit(f"        if y{n} % {self.number(2, 3)} == 0:")
        self.emit(f"            z{n} += y{n}")
        self.emit(f"        y{n} += tl.sum(z{n} & 1)")
        self.emit(f"    z{n} = tl.where(z{n} > x{n}, z{n}, t{n})")
        for one in (f"x{n}", f"z{n}"): self.new(one, "i", "v")
        self.new(f"y{n}", "i", "s")

    def number_casts(self):
        a = self.pick("i", tile=True)
        if a is None: return
        i, f = self.one("uint64", "int64", "uint32", "int16", "uint8"), self.one("float32", "float64", "float16")
        self.new(f"{a.name}.to(tl.{i}).to(tl.{f})", "f", a.shape)
        back = self.one("int8", "uint8", "int64", "uint32", "int1")
        self.new(f"({a.name}.to(tl.{i}) & 127).to(tl.{f}).to(tl.{back})", "i", a.shape)

    def ternary(self):
        a, s = self.pick("i", "v"), self.pick("i", "s")
        if a is None or s is None: return
        n = self.fresh()
        self.emit(f"x{n} = {self.wide(a)}")
        self.new(f"(x{n} + 1 if {s.name} > {self.number(0, 3, 50)} else x{n} - {self.number(1, 9)})", "i", "v")
        self.new(f"(x{n} if COLUMNS > {self.number(3, 100)} else {s.name})", "i", "v")
        if self.lines[-1].find("> 100") >= 0: self.values[-1].shape = "s"

    def scan_tuple_floats(self):
        a, b = self.pick("i", "m"), self.pick("i", "m")
        if a is None: return
        n, axis = self.fresh(), self.one(0, 1)
        pair = [f"({v.name} & 1).to(tl.float32)" for v in (a, b)]
        reverse = self.one("", ", reverse=True")
        self.emit(f"x{n}, y{n} = tl.associative_scan(({pair[0]}, {pair[1]}), {axis}, affine{reverse})")
        self.new(f"x{n} + y{n}", "f", "m")

    def wide_reduce(self):
        """Reductions of three dimensions along each, and of all."""
        a = self.pick("i", "m")
        if a is None: return
        f = self.one("sum", "max", "min", "xor_sum", "argmax", "argmin")
        text = f"tl.reshape({a.name}, (2, ROWS, COLUMNS // 2))"
        axis = self.random.choice([0, 1, 2])
        n = self.fresh()
        self.emit(f"{n} = tl.{f}({text}, {axis}, keep_dims=True) + tl.zeros((2, ROWS, COLUMNS // 2), tl.int8)")
        self.new(f"{n}.reshape(ROWS, COLUMNS)", "i", "m")

    def unsigned_ops(self):
        a, b = self.pick("i", tile=True), self.pick("i", tile=True)
        if a is None: return
        t = self.one("uint8", "uint16", "uint32", "uint64")
        x, y = f"{a.name}.to(tl.{t})", f"({b.name}.to(tl.{t}) | 1)"
        op = self.one("//", "%", ">>", "<", ">=", "-", "*")
        if op == ">>": y = f"({y} & 7)"
        self.new(f"{x} {op} {y}", "i", self.joined(a.shape, b.shape))

    def local_helpers(self):
        a, b = self.pick("i", "m"), self.pick("i", "m")
        if a is None: return
        n = self.fresh()
        self.emit(f"x{n}, y{n} = swap_sorted({self.wide(a)}, {self.wide(b)})")
        for one in (f"x{n}", f"y{n}"): self.new(one, "i", "m")
        self.new(f"folded({self.wide(a)}, 2)", "i", "m")

    def mixed_where(self):
        c, a = self.pick("b", "m"), self.pick("if", "m")
        if c is None or a is None: return
        other = self.one("1", "0.5" if a.kind == "f" else "7", "rows[:, None]", "columns[None, :].to(tl.int8)")
        self.new(f"tl.where({c.name}, {a.name}, {other})", a.kind, "m")

    def repeat_store(self):
        """A store over another and loads between them, through the same and other pointers."""
        a, b = self.pick("i", "v"), self.pick("i", "v")
        if a is None: return
        slot, n = self.slot("ints"), self.fresh()
        self.emit(f"p{n} = {slot} + columns")
        self.emit(f"tl.store(p{n}, {a.name}, mask=columns < {self.number(5, 12)})")
        self.emit(f"x{n} = tl.load({slot} + (COLUMNS - 1 - columns))")
        self.emit(f"tl.store({slot} + (columns ^ {self.number(1, 3, 8)}), x{n} + {b.name}.to(tl.int32))")
        self.new(f"tl.load(p{n}) - x{n}", "i", "v")
