"""kiln.jit on the CPU, with whatever arrays this Python has."""
import collections
import copy
import enum
import gc
import importlib.util
import math
import os
import pickle
import sys
import tempfile
import threading
import types
import typing
import unittest
import unittest.mock
import weakref

import kiln
import kiln.language as tl
from kiln.language import exp as e_to_the

np = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None
torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
if not np and not torch:
    print("skipped: this Python has neither numpy nor torch (KILN_TEST_PYTHON names another one)")
    sys.exit(0)

TWO = tl.constexpr(2)
PLAIN = 3


def zeros(n, dtype="float32"):
    return np.zeros(n, dtype) if np else torch.zeros(n, dtype=getattr(torch, dtype))


@kiln.jit
def doubled(v, by: tl.constexpr = TWO):
    return v * by


@kiln.jit
def scale(x, out, n, factor=1.0, BLOCK: tl.constexpr = 64):
    """Multiplies."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, doubled(tl.load(x + i, mask=i < n)) * factor, mask=i < n)


@kiln.jit
def square(x, out):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(x + at)))


@kiln.jit
def put(out, value):
    tl.store(out, value)


@kiln.jit
def count(out):
    tl.store(out + tl.program_id(0), tl.load(out + tl.program_id(0)) + 1)


@kiln.jit
def put_constant(out, value: tl.constexpr):
    tl.store(out, value)


@kiln.jit(do_not_specialize=["value"])
def put_plainly(out, value):
    tl.store(out, value)


@kiln.jit
def annotated(out, big: tl.int64, small: tl.int8, real: tl.float64, flag: tl.int1):
    tl.store(out, (big + small).to(tl.float64) + real + flag)


@kiln.jit
def choose(out, dtype: tl.constexpr, f: tl.constexpr, pair: tl.constexpr):
    tl.store(out, f(pair[0].to(dtype) if False else tl.full((), pair[1], dtype)).to(tl.float32))


@kiln.jit
def reads_plain_global(out):
    tl.store(out, PLAIN)


@kiln.jit
def scaled_product(a, a_scale, b, b_scale, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    half, groups = tl.arange(0, K // 2), tl.arange(0, K // 32)
    x = tl.load(a + m[:, None] * (K // 2) + half[None, :])
    y = tl.load(b + half[:, None] * N + n[None, :])
    sx = tl.load(a_scale + m[:, None] * (K // 32) + groups[None, :])
    sy = tl.load(b_scale + n[:, None] * (K // 32) + groups[None, :])
    acc = tl.full((M, N), 1.0, tl.float32)
    tl.store(out + m[:, None] * N + n[None, :], tl.dot_scaled(x, sx, "e2m1", y, sy, "e2m1", acc))


Rows = collections.namedtuple("Rows", "start n")
Sized = collections.namedtuple("Sized", "n start")


@kiln.jit
def add_all(inputs, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, ), tl.float32)
    for k in tl.static_range(len(inputs)):
        total += tl.load(inputs[k] + i, mask=i < out.n)
    tl.store(out.start + i, total, mask=i < out.n)


class Part(typing.NamedTuple):
    first: typing.Any
    scale: typing.Any = 3


@kiln.jit
def put_parts(out):
    part, other = Part(2.0), Part(scale=5, first=Sized(n=7, start=8))
    tl.store(out, part.first * part.scale)
    tl.store(out + 1, other.first.start + other.scale)


@kiln.jit
def put_item(out, pair):
    tl.store(out, pair[0](pair[1][0]) if pair[0] is not None else pair[1][0] + 0.5)


@kiln.jit
def put_start(out, rows: tl.constexpr):
    tl.store(out, rows.start)


@kiln.jit
def with_one(v):
    return v + 1


@kiln.jit
def calls_with_one(v):
    return with_one(v)


@kiln.jit
def reads_globals(out, v):
    tl.store(out, calls_with_one(v) * TWO + other.add_some(v))


@kiln.jit
def put_f(out, x, f: tl.constexpr, at: tl.int64, nothing):
    if nothing is None: tl.store(out, f(tl.load(x + at)))


@kiln.jit
def put_far(out, at):
    tl.store(out + at + tl.program_id(0), 1.0)


class Launches(unittest.TestCase):

    def test_classes_of_named_tuples(self):
        out = zeros(2)
        put_parts[1](out)
        self.assertEqual(out.tolist(), [6, 13])

    def test_grids(self):
        # Numbers, tuples, lists and functions of the arguments.
        for grid in (2, (2, ), (2, 1, 1), [2, 1], lambda meta: (-(-meta["n"] // meta["BLOCK"]), ), lambda meta: 2):
            x, out = zeros(100), zeros(100)
            x[:] = 3
            scale[grid](x, out, 100, factor=0.5)
            self.assertEqual(out.tolist(), [3.0] * 100)
        out = zeros(100)
        # No programs: nothing is launched and nothing refused.
        scale[0](x, out, 100)
        scale[2, 0](x, out, 100)
        self.assertEqual(out.tolist(), [0.0] * 100)
        for wrong in ("2", 2.0, None, True, (), (1, 1, 1, 1), (1, "1"), lambda meta: None):
            with self.assertRaisesRegex(TypeError, "grid"): scale[wrong](x, out, 100)
        for wrong in (-1, (1, 70000)):
            with self.assertRaises(kiln.Error): scale[wrong](x, out, 100)
        # What a function of the grid raises comes out.
        with self.assertRaises(ZeroDivisionError): scale[lambda meta: 1 // 0](x, out, 100)
        with self.assertRaisesRegex(TypeError, "with a grid"): scale(x, out, 100)

    def test_precision_of_floats_is_of_the_environment(self):
        x, out = zeros(256), zeros(256)
        with unittest.mock.patch.dict(os.environ, {"TRITON_F32_DEFAULT": "fp19"}):
            with self.assertRaisesRegex(kiln.Error, "TRITON_F32_DEFAULT.* must be .*, got 'fp19'"): square[1](x, out)
        with unittest.mock.patch.dict(os.environ, {"TRITON_F32_DEFAULT": "ieee"}): square[1](x, out)

    def test_specialises_as_triton(self):
        kernel = kiln.jit(put.fn)
        out = zeros(1, "int64")
        # By value: 1, others, divisible by 16, 64 bits, bool, unsigned.
        for value, variants in ((1, 1), (2, 2), (3, 2), (16, 3), (32, 3), (1, 3), (2**40 + 1, 4), (True, 5), (2**63, 6)):
            kernel[1](out, value)
            self.assertEqual(kernel.variants, variants, value)
            if value < 2**63: self.assertEqual(int(out[0]), int(value))
        kernel = kiln.jit(put_plainly.fn, do_not_specialize=["value"])
        for value in (1, 2, 16): kernel[1](out, value)
        self.assertEqual(kernel.variants, 1)
        shifted = zeros(9)
        kernel = kiln.jit(put.fn)
        for start in (0, 1, 4, 5): kernel[1](shifted[start:], 2.5)
        # Two of them aligned and two not.
        self.assertEqual(kernel.variants, 2)  # by the address modulo 16
        self.assertEqual([i for i, v in enumerate(shifted.tolist()) if v], [0, 1, 4, 5])

    def test_subclasses_of_numbers_are_numbers(self):

        class Flags(enum.IntFlag):
            BIG = 16

        class Real(float):
            pass

        kernel, out = kiln.jit(put.fn), zeros(1, "float64")
        for value, variants in ((16, 1), (Flags.BIG, 1), (1, 2), (Flags(1), 2), (2.5, 3), (Real(2.5), 3)):
            kernel[1](out, value)
            self.assertEqual((float(out[0]), kernel.variants), (value, variants))

    def test_constants_are_told_apart(self):
        kernel, out = kiln.jit(put_constant.fn), zeros(1, "float64")
        # 1, 1.0 and True are equal in Python and different in a kernel.
        for value in (1, 1.0, True, 0.0, -0.0, 2, 2.5): kernel[1](out, value)
        self.assertEqual(kernel.variants, 7)
        for value in (2, True, 2): kernel[1](out, tl.constexpr(value))
        self.assertEqual((float(out[0]), kernel.variants), (2, 9))

    @unittest.skipUnless(np, "no numpy")
    def test_constants_of_types_are_told_apart(self):
        kernel, out = kiln.jit(put_constant.fn), zeros(1, "float64")
        # Equal in numpy and, as 2 / 3 and 2.0 / 3, not in a kernel.
        for value in (np.int64(2), np.float64(2), np.float32(2), np.float64(0.0), np.float64(-0.0)):
            kernel[1](out, value)
            self.assertEqual((float(out[0]), np.signbit(out[0])), (float(value), np.signbit(value)))
        self.assertEqual(kernel.variants, 5)

    def test_names_of_a_constant_tuple_count(self):
        out = zeros(1)
        for rows, start in ((Rows(3, 4), 3), (Sized(3, 4), 4), (Rows(3, 4), 3)):
            put_start[1](out, rows)
            self.assertEqual(out.tolist(), [start])

    def test_tuples(self):
        x, out, kernel = zeros(100) + 3, zeros(100), kiln.jit(add_all.fn)
        for inputs, rows, total in (((x, x), Rows(out, 100), 6), ((x, x, x), Rows(out, 100), 9),
                                    ((), Rows(out, 100), 0), ((x, x), Sized(100, out), 6), ((x, x), Rows(out, 100), 6)):
            kernel[2](inputs, rows, BLOCK=64)
            self.assertEqual(out.tolist(), [total] * 100)
        self.assertEqual(kernel.variants, 4)
        # Nested, None, 1 as a constant, functions.
        for pair, value in (((doubled, (2, )), 4), ((doubled, (2.5, )), 5), ((None, (1, )), 1.5), ((None, [3]), None),
                            ((tl.exp, (0.0, )), 1)):
            if value is None:
                with self.assertRaisesRegex(TypeError, "argument 'pair' got a list"): put_item[1](out, pair)
            else:
                put_item[1](out, pair)
                self.assertEqual(float(out[0]), value)
        with self.assertRaisesRegex(TypeError, "argument 'pair': <object.* means nothing to a kernel"):
            put_item[1](out, (object(), (1, )))
        with self.assertRaisesRegex(kiln.Error, "has no attribute n"): kernel[2]((x, ), (out, 100), BLOCK=64)

    @unittest.skipUnless(np, "no numpy")
    def test_tuples_hold_read_only_arrays(self):
        x, out = zeros(100), zeros(100)
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "'out' is an array that may not be written to"):
            add_all[2]((x, ), Rows(out, 100), BLOCK=64)

    def test_deep_tuples(self):
        deep = 1
        for _ in range(100000): deep = (deep, )
        for kernel in (put, put_constant):
            with self.assertRaises(RecursionError): kernel[1](zeros(1), deep)
        # The limit is where it was.
        put[1](zeros(1), 2)

    def test_constexpr_kinds(self):
        out = zeros(1)
        choose[1](out, tl.float16, doubled, (1, 3))
        self.assertEqual(out.tolist(), [6])
        kernel = kiln.jit(choose.fn)
        # Two names of one function are one constant.
        for f in (e_to_the, tl.exp, tl.exp): kernel[1](out, tl.float32, f, (1, 0))
        self.assertEqual((out.tolist(), kernel.variants), ([1], 1))
        with self.assertRaisesRegex(TypeError, "argument 'f': <object.* means nothing to a kernel"):
            choose[1](out, tl.float16, object(), (1, 2))
        with self.assertRaisesRegex(TypeError, "'f' is a tl.constexpr and got an unhashable dict"):
            choose[1](out, tl.float16, {}, (1, 2))

    def test_annotations(self):
        out = zeros(1, "float64")
        annotated[1](out, 2**40, -3, 0.5, True)
        self.assertEqual(out.tolist(), [2**40 - 3 + 0.5 + 1])
        with self.assertRaisesRegex(OverflowError, "'small' does not fit its annotation i8"): annotated[1](out, 1, 128, 0.5, 1)
        with self.assertRaisesRegex(TypeError, "'big' is annotated i64 and got a float"): annotated[1](out, 1.5, 1, 0.5, 1)
        with self.assertRaisesRegex(TypeError, "'real' is annotated f64 and got a str"): annotated[1](out, 1, 1, "x", 1)

    def test_threads(self):
        kernel = kiln.jit(put.fn)

        def work(seed):
            out = zeros(1, "int64")
            for i in range(200):
                # More values than kernels, so that threads meet at each.
                value = (seed * 7 + i) % 40
                kernel[1](out, value)
                if int(out[0]) != value: wrong.append((seed, i))

        wrong: list = []
        threads = [threading.Thread(target=work, args=(seed, )) for seed in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        # The three kinds of values that there are among 0 to 39.
        self.assertEqual((wrong, kernel.variants), ([], 3))

    def test_faults_are_errors(self):
        far = 1 << 46  # outside of all memory, and an address all the same
        out = zeros(64)
        for _ in range(2):
            with self.assertRaisesRegex(kiln.Error, "kernel 'put_far' .*\n.*by this statement") as caught:
                put_far[4](out, far)
            self.assertEqual(caught.exception.kind, "launch")
        put[1](out, 2.5)
        self.assertEqual(float(out[0]), 2.5)

    def test_checked_launches(self):
        x, out = zeros(100) + 3, zeros(100)
        scale[2](x, out, 100, check=True)
        self.assertEqual(out.tolist(), [6] * 100)
        said = "'scale' reads element 100 of 'x', which has 100 elements, in program 1"
        with self.assertRaisesRegex(kiln.Error, said) as caught: scale[2](x, out, 128, check=True)
        with open(__file__) as f: self.assertIn("tl.load(x + i", f.read().splitlines()[caught.exception.line - 1])
        # A view may use the memory of all of its tensor.
        scale[1](x[50:], out, 50, check=True)
        with self.assertRaisesRegex(kiln.Error, "element 50 of 'x', whose memory ends after 50 elements"):
            scale[1](x[50:], out, 51, check=True)
        with self.assertRaisesRegex(kiln.Error, "'x', which has 0 elements"): scale[1](zeros(0), out, 1, check=True)
        # Constants of all kinds, also those that the checked code has not met.
        for f, value in ((doubled, 6), (with_one, 4), (doubled, 6), (tl.exp, math.exp(3))):
            put_f[1](out, x, f, 0, None, check=True)
            self.assertAlmostEqual(float(out[0]), value, 3)
        add_all[2]((x, x), Rows(out, 100), BLOCK=64, check=True)
        self.assertEqual(out.tolist(), [6] * 100)
        with self.assertRaisesRegex(kiln.Error, "element 100 of 'inputs.1', which has 100 elements, in program 1"):
            add_all[2]((zeros(128), x), Rows(zeros(128), 128), BLOCK=64, check=True)
        with self.assertRaisesRegex(TypeError, "'n' got a str"): scale[1](x, out, "n", check=True)

        class Neither:

            def __bool__(self):
                raise ValueError("neither true nor false")

        with self.assertRaisesRegex(ValueError, "neither"): scale[1](x, out, 1, check=Neither())

    @unittest.skipUnless(np, "no numpy")
    def test_checked_launches_of_numpy(self):
        x, out = np.arange(100, dtype=np.float32), zeros(100)
        scale[1](x[::-1], out, 1, check=True)
        self.assertEqual(float(out[0]), 198)
        with self.assertRaisesRegex(kiln.Error, "element 1 of 'x', whose memory ends after 1 element"):
            scale[1](x[::-1], out, 2, check=True)
        # Views of other types.
        scale[1](np.zeros(404, np.uint8)[4:].view(np.float32), out, 100, check=True)
        with self.assertRaisesRegex(kiln.Error, "element 20 of 'x'"):
            scale[1](np.zeros(10, np.complex64).view(np.float32), out, 64, check=True)
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "may not be written to"): scale[1](x, out, 1, check=True)

    def test_launches_keep_their_grids(self):
        kernel, out = kiln.jit(count.fn), zeros(8)
        two, three = kernel[(2, )], kernel[(3, )]
        kernel[(4, )](out)
        for launch in (two, three, two): launch(out)
        # A launch is of use again when it is over, and not before: programs 2 and 3 ran less often.
        self.assertEqual(out.tolist(), [4, 4, 2, 1, 0, 0, 0, 0])
        del two, three

        class Launches:

            def __del__(self):
                kernel[(1, )](out)

        # What ends with the grid that is replaced launches too.
        with self.assertRaisesRegex(TypeError, "grid"): kernel[(Launches(), )](out)
        kernel[(2, )](out)
        self.assertEqual(out.tolist(), [6, 5, 2, 1, 0, 0, 0, 0])
        shared = (2, )
        before = sys.getrefcount(shared)
        for _ in range(100): kernel[shared](out)
        kernel[(1, )](out)
        self.assertEqual(sys.getrefcount(shared), before)

    def test_grid_may_launch(self):
        kernel, out, inner = kiln.jit(put.fn), zeros(1), zeros(1)

        # A launch within another one's grid function.
        def grid(meta):
            kernel[1](inner, 3.5)
            return 1

        kernel[grid](out, 5)
        self.assertEqual((out.tolist(), inner.tolist()), ([5], [3.5]))

    def test_wrong_arguments(self):
        x, out = zeros(64), zeros(64)
        for args, keywords, error, said in (
            ((x, out), {}, TypeError, "kernel 'scale': argument 'n' is missing"),
            ((x, out, 64), {"n": 64}, TypeError, "two values for argument 'n'"),
            ((x, out, 64, 1.0, 64, 1), {}, TypeError, "has 5 parameters, got 6 arguments"),
            ((x, out, 64), {"BLOK": 64}, TypeError, "no parameter and no option 'BLOK'; its parameters are x, "),
            (([1.0], out, 64), {}, TypeError, "argument 'x' got a list"),
            (("text", out, 64), {}, TypeError, "argument 'x' got a str"),
            ((x, out, 2**64), {}, OverflowError, "'n' does not fit into 64 bits"),
            ((x, out, 64), {"num_warps": 3}, kiln.Error, "num_warps"),
            ((x, out, 64), {"num_warps": "4"}, TypeError, "num_warps"),
            ((1, 2, 64), {}, TypeError, "no tensor"),
            ((x, out, 64), {"BLOCK": 100}, kiln.Error, "power of two"),
        ):
            with self.assertRaisesRegex(error, said): scale[1](*args, **keywords)
        # A global that is no constexpr might change without being noticed.
        with self.assertRaisesRegex(kiln.Error, "PLAIN is a global variable, .*only those that are constexpr"):
            reads_plain_global[1](out)

        def around(factor, add):

            @kiln.jit
            def reads_captured(out):
                tl.store(out, factor)

            return reads_captured

        with self.assertRaisesRegex(kiln.Error, "factor is a variable of the function around the kernel"):
            around(3, doubled)[1](out)
        with self.assertRaises(TypeError): kiln.jit(3)
        scope: dict = {}
        exec("def typed(out): pass", scope)
        with self.assertRaisesRegex(OSError, "'typed' has no source text"): kiln.jit(scope["typed"])[1](zeros(1))

    def test_globals_may_change(self):
        global TWO
        out, kernel = zeros(1), kiln.jit(reads_globals.fn)
        other = types.ModuleType("other")
        module, found = sys.modules[__name__], []
        other.add_some = doubled
        module.other = other

        def launch():
            kernel[1](out, 3.0)
            found.append(float(out[0]))

        try:
            launch()
            TWO = tl.constexpr(2)  # the same
            launch()
            self.assertEqual(kernel.variants, 1)
            TWO = tl.constexpr(5)
            launch()
            other.add_some = with_one
            launch()
            module.with_one, before = doubled, with_one  # what a function that is called calls
            launch()
        finally:
            TWO, module.with_one = tl.constexpr(2), before
        self.assertEqual(found, [14, 14, 26, 24, 34])
        del module.other
        with self.assertRaises(kiln.Error): launch()

    def test_variables_of_closures_may_change(self):

        def around():
            inner, factor = doubled, tl.constexpr(2)

            @kiln.jit
            def calls(v):
                return inner(v)

            @kiln.jit
            def kernel(out):
                tl.store(out, calls(3.0) * factor)

            def change(function, constant):
                nonlocal inner, factor
                inner, factor = function, constant

            def forget():
                nonlocal inner
                del inner

            return kernel, change, forget

        kernel, change, forget = around()
        out = zeros(1)
        for check in (False, True):
            found = []
            # A function that is called by one that is called, and a constant of the kernel's.
            for function, factor in ((doubled, 2), (doubled, 2), (with_one, 2), (with_one, 5)):
                change(function, tl.constexpr(factor))
                kernel[1](out, check=check)
                found.append(float(out[0]))
            self.assertEqual(found, [12, 12, 8, 20])
        self.assertEqual(kernel.variants, 6)
        forget()
        with self.assertRaises(kiln.Error): kernel[1](out)

    def test_copies_and_pickles_are_the_kernel(self):
        for again in (copy.copy(scale), copy.deepcopy({"k": [scale]})["k"][0], pickle.loads(pickle.dumps(scale))):
            self.assertIs(again, scale)

    @unittest.skipUnless(np, "no numpy")
    def test_scalars_of_numpy_are_constexprs(self):
        x, out = zeros(64) + 3, zeros(64)
        scale[1](x, out, np.int64(64), np.float32(2.0), BLOCK=np.int32(64))
        self.assertEqual(float(out[63]), 12)

    def test_keywords_need_not_be_interned(self):
        x, out = zeros(64), zeros(64)
        # Made at run time: no two of them are the same object as the name in the code.
        scale[1](x, out, **{"".join(["B", "LOCK"]): 64, "".join(["num_", "warps"]): 8, "n": 64})

    def test_errors_have_a_place(self):
        with self.assertRaises(kiln.Error) as caught: scale[1](zeros(4), zeros(4), 4, BLOCK=100)
        self.assertEqual(caught.exception.file, __file__)
        # The line of the file is the one that is wrong.
        with open(__file__) as f: self.assertIn("tl.arange(0, BLOCK)", f.read().splitlines()[caught.exception.line - 1])

    def test_keeps_nothing(self):
        kernel = kiln.jit(put.fn)
        out = zeros(4)
        before = sys.getrefcount(out)
        for _ in range(100): kernel[1](out, 2.0)
        for _ in range(100):
            with self.assertRaises(TypeError): kernel[1](out, [])
        # Neither a launch nor a failure may hold its arguments.
        self.assertEqual(sys.getrefcount(out), before)
        gone = weakref.ref(kernel)
        del kernel
        gc.collect()
        self.assertIsNone(gone())

    @unittest.skipUnless(np, "no numpy")
    def test_numpy(self):
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
                      "float64", "bool"):
            out = np.zeros(2, dtype)
            put[1](out, 1)
            self.assertEqual(out.tolist(), [1, 0], dtype)
        out = np.zeros(1)
        put[1](out, np.float32(1.5))
        self.assertEqual(out[0], 1.5)
        put[1](out, np.int64(7))
        self.assertEqual(out[0], 7)
        # No dtype of kernels: complex numbers, another byte order, texts.
        for wrong in (np.zeros(1, "complex64"), np.zeros(1, ">f4"), np.array(["a"])):
            with self.assertRaisesRegex(TypeError, "which kernels do not have"): put[1](wrong, 1)

    @unittest.skipUnless(np, "no numpy")
    def test_read_only_arrays_are_read_only(self):
        x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
        x.flags.writeable = False
        scale[1](x, out, 64)
        self.assertEqual(out.sum(), 128)
        with tempfile.TemporaryFile() as file:
            file.write(bytes(256))
            file.flush()
            for fixed in (x, np.memmap(file, np.float32, "r")):
                with self.assertRaisesRegex(ValueError, "'out' is an array that may not be written to"):
                    scale[1](out, fixed, 64)
        self.assertEqual(x.sum(), 64)

    @unittest.skipUnless(torch, "no torch")
    def test_torch(self):
        for dtype in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64):
            out = torch.zeros(2, dtype=dtype)
            put[1](out, 1)
            self.assertEqual(out.tolist(), [1, 0])
        fp8 = torch.zeros(2, dtype=torch.float8_e5m2)
        put[1](fp8, 1.0)
        self.assertEqual(fp8.float().tolist(), [1, 0])

        class Subclass(torch.Tensor):

            # A subclass may compute its address, and fail.
            def data_ptr(self):
                raise RuntimeError("no memory")

        with self.assertRaisesRegex(ValueError, "'out' is a tensor without memory.*: no memory"):
            put[1](torch.zeros(1).as_subclass(Subclass), 1)
        parameter = torch.nn.Parameter(torch.zeros(2))
        put[1](parameter, 2.5)
        self.assertEqual(parameter.tolist(), [2.5, 0])
        strided = torch.zeros(4, 4).t()[1:]
        put[1](strided, 1.0)  # a pointer: strides are the kernel's business
        self.assertEqual(strided[0, 0].item(), 1)
        with self.assertRaisesRegex(TypeError, "torch.complex64"): put[1](torch.zeros(1, dtype=torch.complex64), 1)
        with self.assertRaisesRegex(ValueError, "meta"): put[1](torch.zeros(1, device="meta"), 1)

    @unittest.skipUnless(torch, "no torch")
    def test_negated_tensors_of_torch(self):
        class Subclass(torch.Tensor): pass

        # Their memory has the opposite of their values.
        x, out = torch.ones(4), torch.zeros(4)
        for negated in (torch._neg_view(x), torch.complex(x, x).conj().imag, torch._neg_view(x).as_subclass(Subclass)):
            for check in (False, True):
                with self.assertRaisesRegex(ValueError, r"'x' has torch's negative bit.*resolve_neg\(\)"):
                    scale[1](negated, out, 4, check=check)
            scale[1](negated.resolve_neg(), out, 4)
            self.assertEqual(out.tolist(), [-2] * 4)
        with self.assertRaisesRegex(ValueError, "negative bit"): kiln.expr(x).eval(out=torch._neg_view(out))

    @unittest.skipUnless(torch and (*map(int, torch.__version__.split(".")[:2]), ) >= (2, 10), "no torch from 2.10")
    def test_launches_call_no_methods_of_tensors(self):
        # Each call costs as much as the rest of binding the tensor.
        x, out, called = torch.ones(4), torch.zeros(4), []
        kernel = kiln.jit(scale.fn)
        kernel[1](x, out, 4)
        for name in ("is_neg", "data_ptr", "get_device"):
            original = getattr(torch.Tensor, name)
            method = lambda self, name=name, original=original: called.append(name) or original(self)
            setattr(torch.Tensor, name, method)
            self.addCleanup(delattr, torch.Tensor, name)
        out.data_ptr()  # the test sees calls
        kernel[1](x, out, 4)
        self.assertEqual(called, ["data_ptr"])

    @unittest.skipUnless(torch, "no torch")
    def test_torch_tensors_may_change(self):
        # The same Python object each time, and neither the memory nor the dtype of the launch before.
        out, other = torch.zeros(2), torch.zeros(9, dtype=torch.int64)
        kernel = kiln.jit(put.fn)
        kernel[1](out, 2)
        before = out.clone()
        out.data = other[1:]
        kernel[1](out, 3)
        self.assertEqual((before.tolist(), other[:3].tolist(), kernel.variants), ([2, 0], [0, 3, 0], 2))
        out.set_(other.untyped_storage(), 2, (1, ))
        kernel[1](out, 4)
        # Aligned again.
        self.assertEqual((other[:4].tolist(), kernel.variants), ([0, 3, 4, 0], 3))

    @unittest.skipUnless(torch, "no torch")
    def test_dlpack(self):

        class Exporter:

            # Only DLPack: no attribute of torch or numpy is there.
            def __init__(self, of):
                self.of = of

            def __dlpack__(self, **keywords):
                return self.of.__dlpack__(**keywords)

            def __dlpack_device__(self):
                return self.of.__dlpack_device__()

        for dtype in (torch.float32, torch.bfloat16, torch.int8, torch.bool):
            out = torch.zeros(3, dtype=dtype)
            # Beginning within its memory: the offset counts.
            put[1](Exporter(out[1:]), 1)
            self.assertEqual(out.tolist(), [0, 1, 0])

    def test_devices_are_not_mixed(self):

        class OnGpu:
            # Claims to be on a GPU; its address is never read.
            __cuda_array_interface__ = {"data": (4096, False), "typestr": "<f4", "shape": (4, ), "version": 3}

        with self.assertRaisesRegex(ValueError, "'out' is on the CPU, and 'x' is on cuda:0"):
            scale[1](OnGpu(), zeros(4), 4)


@unittest.skipUnless(torch and torch.cuda.is_available(), "no GPU")
class Gpu(unittest.TestCase):

    def test_current_stream(self):
        x, out = torch.ones(1 << 20, device="cuda"), torch.zeros(1 << 20, device="cuda")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            # Long enough that another stream would read too early.
            for _ in range(50): x = x + 1
            scale[x.numel() // 64](x, out, x.numel())
        stream.synchronize()
        self.assertEqual(out.unique().tolist(), [102])

    def test_graph_capture(self):
        x, out = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
        # Compiling within a capture is not allowed by the driver.
        scale[1](x, out, 64)  # compiled before
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): scale[1](x, out, 64)
        x.fill_(5)
        graph.replay()
        self.assertEqual(out.tolist(), [10] * 64)

    def test_other_interfaces(self):

        class Exporter:

            def __init__(self, of):
                self.of = of

            @property
            def __cuda_array_interface__(self):
                return self.of.__cuda_array_interface__

        out = torch.zeros(4, device="cuda")
        put[1](Exporter(out), 2.5)
        self.assertEqual(out.tolist(), [2.5, 0, 0, 0])
        with self.assertRaisesRegex(ValueError, "'out' is on the CPU, and 'x' is on cuda:0"):
            scale[1](out, torch.zeros(4), 4)


@unittest.skipUnless(importlib.util.find_spec("triton") and torch, "no triton")
class Triton(unittest.TestCase):

    def test_names_of_triton(self):
        import triton
        import triton.language as ttl

        @triton.jit
        def helper(v):
            return ttl.maximum(v, 0.0)

        @kiln.jit
        def kernel(x, out, BLOCK: ttl.constexpr, dtype: ttl.constexpr):
            i = ttl.arange(0, BLOCK)
            ttl.store(out + i, helper(ttl.load(x + i)).to(dtype) + triton.cdiv(BLOCK, 64))

        x, out = torch.randn(64), torch.zeros(64)
        kernel[(1, )](x, out, 64, ttl.float32)
        self.assertTrue(torch.equal(out, x.relu() + 1))


    def test_functions_that_python_computes(self):
        import triton
        import triton.language as ttl

        table = {"small": 8, "large": 64}

        @triton.constexpr_function
        def size_of(name, widths):
            try:
                return table[name] * len(widths)
            except KeyError:
                return 1

        @triton.constexpr_function
        def accumulator(dtype):
            return ttl.float32 if dtype.primitive_bitwidth < 32 else dtype

        @kiln.jit
        def kernel(out, name: ttl.constexpr):
            i = ttl.arange(0, size_of(name, (1, 2)))
            ttl.store(out + i, i.to(accumulator(out.dtype.element_ty)))

        out = torch.zeros(16)
        kernel[(1, )](out, "small")
        self.assertTrue(torch.equal(out, torch.arange(16.0)))

    def test_functions_under_constexpr(self):
        import triton.language as ttl

        def is_whole(dtype):
            return dtype.is_int()

        @ttl.constexpr
        def accumulator(dtype):
            return ttl.int64 if is_whole(dtype) else ttl.float32

        @kiln.jit
        def kernel(x, out, BLOCK: ttl.constexpr):
            dtype: ttl.constexpr = accumulator(x.dtype.element_ty)
            i = ttl.arange(0, BLOCK)
            ttl.store(out + i, ttl.cumsum(ttl.load(x + i).to(dtype), 0))

        for dtype in (torch.int32, torch.float16):
            out = torch.zeros(8, dtype=torch.int64 if dtype == torch.int32 else torch.float32)
            kernel[(1, )](torch.full((8, ), 2**20 if dtype == torch.int32 else 0.5, dtype=dtype) * 2**10, out, 8)
            self.assertEqual(out[7].item(), 8 * 2**30 if dtype == torch.int32 else 8 * 512.0)


@unittest.skipUnless(np, "needs numpy")
class ScaledProducts(unittest.TestCase):

    def test_four_bits_with_scales(self):
        M, N, K = 32, 16, 64
        # The sixteen numbers of e2m1.
        values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
        generator = np.random.default_rng(3)
        a, b = generator.integers(0, 16, (M, K)), generator.integers(0, 16, (K, N))
        sa, sb = (generator.integers(124, 131, (rows, K // 32)).astype(np.uint8) for rows in (M, N))
        sa[5, 1], sb[7, 0] = 0, 255  # 2^-127, and NaN
        out = np.zeros((M, N), np.float32)
        # Two of them in a byte, the first in its low half.
        scaled_product[1]((a[:, ::2] | a[:, 1::2] << 4).astype(np.uint8), sa,
                          (b[::2] | b[1::2] << 4).astype(np.uint8), sb, out, M, N, K)
        # Scales are powers of two with a bias of 127; 255 is NaN.
        factor = [np.where(s == 255, np.nan, 2.0**(s.astype(float) - 127)).repeat(32, 1) for s in (sa, sb)]
        expected = (values[a] * factor[0]) @ (values[b] * factor[1].T) + 1
        np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-3)
        self.assertTrue(np.isnan(out[:, 7]).all() and not np.isnan(out[:, 6]).any())


if __name__ == "__main__":
    unittest.main()
