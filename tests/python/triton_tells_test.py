"""kiln.triton: what users of Triton hear of their kernels, and launches with descriptors that are padded with NaN."""
import contextlib
import ctypes
import glob
import importlib.util
import io
import os
import sys
import tempfile
import types
import unittest
import uuid
import warnings
from unittest import mock

if importlib.util.find_spec("triton") is None:
    print("skipped: this Python has no triton (KILN_TEST_PYTHON names another one)")
    sys.exit(0)
# Before triton is imported, which reads it once.
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="kiln_triton_")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns where it is not set

import triton
import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import kiln
import kiln.triton
from kiln import _kiln
from kiln.triton import _compile, _driver

HOPPER = GPUTarget("cuda", 90, 32)


def compile(fn, signature, constexprs={}, target=HOPPER, **options):
    return triton.compile(ASTSource(fn=fn, signature=signature, constexprs=constexprs), target=target, options=options)


@triton.jit
def plain(x):
    tl.store(x + tl.arange(0, 64), 1.0)


@triton.jit
def selects(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.where(i, 1.0, 2.0))


@triton.jit
def joins(x):
    i = tl.arange(0, 64)
    tl.store(x + i, 1.0, mask=(i > 3) and (i < 9))


@triton.jit
def shifts(x):
    i = tl.arange(0, 64)
    tl.store(x + i, i << 40)


@triton.jit
def views(x):
    tl.store(x + tl.arange(0, 64), tl.view(tl.full((8, 8), 1.0, tl.float32), (64, )))


@triton.jit
def asks_a_tile(x):
    if tl.load(x + tl.arange(0, 1)) > 0: tl.store(x, 1.0)


@triton.jit
def multiplies_e4b15(x):
    a = tl.full((32, 32), 1.0, tl.float8e4b15)
    i = tl.arange(0, 32)
    tl.store(x + i[:, None] * 32 + i[None, :], tl.dot(a, a))


@triton.jit
def asserts(x, N: tl.constexpr):
    tl.static_assert(N == 64, "not this one")


@triton.jit(noinline=True)
def twice(v):
    return v * 2


@triton.jit
def calls_with_a_tile(x):
    tl.store(x + tl.arange(0, 64), twice(tl.load(x + tl.arange(0, 64))))


@triton.jit
def calls_with_a_scalar(x):
    tl.store(x, twice(tl.load(x)))


@triton.must_use_result("Its result is all of it.")
@triton.jit
def cube(v):
    return v * v * v


@triton.jit
def uses_a_cube(x):
    tl.store(x, cube(tl.load(x)))


@triton.jit
def drops_a_cube(x):
    cube(tl.load(x))


@triton.jit(do_not_specialize=["N"])
def listed(x, N: tl.constexpr):
    tl.store(x, N)


@triton.jit
def least(d, x):
    d.atomic_min([0, 0], tl.load(x + tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]))


@triton.jit
def prints(x, WORD: tl.constexpr, N: tl.constexpr):
    tl.static_print(WORD, N, sep="-", end="!\n", flush=True)
    tl.static_assert(N == 64)
    tl.store(x + tl.arange(0, N), 1.0)


@triton.jit
def copies(d, e, x, pair):
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(x + i, d.load([0, 0]) + e.load([32, 0]) + pair[1].load([0, 0]))


def fresh_cache():
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="kiln_triton_")


class Told(unittest.TestCase):

    def setUp(self):
        kiln.triton.enable(strict=True)
        kiln.triton.clear_report()
        self.addCleanup(kiln.triton.disable)

    def warned(self, fn, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compile(fn, {"x": "*fp32"}, **options)
        self.assertTrue(all(w.category is UserWarning for w in caught), caught)
        return sorted({str(w.message) for w in caught}), caught

    def test_warnings_are_tritons(self):
        cases = {
            selects: "tl.where with a non-boolean condition is deprecated and will error out in a future triton release. "
                     "Got int32",
            joins: "Logical operators 'and' and 'or' are deprecated for non-scalar tensors; please use '&' or '|' instead",
            shifts: "Value 40 exceeds the maximum bitwidth (32) for type 'int32'. This may result in undefined behavior.",
            views: "view is deprecated, please use reshape with can_reorder being true.",
            asks_a_tile: "If conditional called with multidimensional Tensor instead of scalar; please use "
                         "\"if (tl.load(x + tl.arange(0, 1)) > 0).item()\" instead",
            multiplies_e4b15: "the use of fp8e4b15 is deprecated on Hopper and later architectures and can cause "
                              "significant slow down. It will be removed in a future triton release"
        }
        for fn, text in cases.items():
            fresh_cache()
            said, caught = self.warned(fn)
            self.assertEqual(said, [text])
            self.assertEqual(caught[0].filename, __file__)
        self.assertEqual(self.warned(plain)[0], [])
        self.assertEqual(self.warned(multiplies_e4b15, target=GPUTarget("cuda", 80, 32))[0], [])

    def test_each_compilation_warns_and_triton_s_cache_does_not(self):
        for _ in range(2):  # also where Kiln's own cache might have the code
            fresh_cache()
            self.assertEqual(len(self.warned(selects)[0]), 1)
            self.assertEqual(self.warned(selects)[0], [])

    def test_a_warning_may_be_an_error(self):
        fresh_cache()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(UserWarning, "tl.where"): compile(selects, {"x": "*fp32"})

    def prints(self, word, n):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                compile(prints, {"x": "*fp32", "WORD": "constexpr", "N": "constexpr"}, {(1, ): word, (2, ): n})
            except Exception as e:
                return out.getvalue(), e
        return out.getvalue(), None

    def test_what_is_printed_is_printed_once(self):
        for strict in (True, False):
            kiln.triton.enable(strict)
            word = uuid.uuid4().hex
            for _ in range(2):
                fresh_cache()
                self.assertEqual(self.prints(word, 64), (f"{word}-64!\n", None))
            # Of what Kiln refuses, Triton says it.
            text, error = self.prints(word, 32)
            self.assertEqual(text, f"{word}-32!\n")
            self.assertIsNotNone(error)

    def test_triton_s_error_comes_without_a_warning_of_kiln_s(self):
        kiln.triton.enable()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(Exception, "not this one"):
                compile(asserts, {"x": "*fp32", "N": "constexpr"}, {(1, ): 32})
        self.assertEqual(kiln.triton.report().fallbacks, 1)

    def test_what_triton_refuses(self):
        with self.assertRaisesRegex(kiln.triton.Unsupported, r"twice is under jit\(noinline=True\), and its argument v is"):
            compile(calls_with_a_tile, {"x": "*fp32"})
        compile(calls_with_a_scalar, {"x": "*fp32"})
        with self.assertRaisesRegex(kiln.triton.Unsupported, "the result of cube is not used"):
            compile(drops_a_cube, {"x": "*fp32"})
        compile(uses_a_cube, {"x": "*fp32"})
        with self.assertRaisesRegex(kiln.triton.Unsupported, "N is a constexpr and is listed in do_not_specialize"):
            compile(listed, {"x": "*fp32", "N": "constexpr"}, {(1, ): 4})
        if not hasattr(tl, "tensor_descriptor"): return
        with self.assertRaisesRegex(kiln.triton.Unsupported, "atomic_min of a descriptor of float32"):
            compile(least, {"d": "tensordesc<fp32[32, 32]>", "x": "*fp32"})
        compile(least, {"d": "tensordesc<fp16[32, 32]>", "x": "*fp16"})

    def test_lines_can_be_left_out(self):
        self.assertIn(".loc", compile(plain, {"x": "*fp32"}).asm["ptx"])
        with mock.patch.dict(os.environ, TRITON_DISABLE_LINE_INFO="1"):
            without = compile(plain, {"x": "*fp32"})
        self.assertNotIn(".loc", without.asm["ptx"])
        self.assertNotIn(b"debug_line", without.asm["cubin"])
        self.assertIn(b"debug_line", compile(plain, {"x": "*fp32"}).asm["cubin"])

    def refused(self, reason, **options):
        with self.assertRaisesRegex(kiln.triton.Unsupported, reason): compile(plain, {"x": "*fp32"}, **options)

    def test_knobs_that_kiln_does_not_have(self):
        for name in ("MLIR_ENABLE_DIAGNOSTICS", "DISABLE_LLVM_OPT", "LLVM_PASS_PLUGIN_PATH", "MLIR_ENABLE_TIMING"):
            with mock.patch.dict(os.environ, {name: "1"}): self.refused(f"the variable {name}")
        for name in ("dump_ptxas_log", "disable_ptxas_opt", "dump_nvptx"):
            if not hasattr(knobs.nvidia, name): continue
            with knobs.nvidia.scope():
                setattr(knobs.nvidia, name, True)
                self.refused(f"the knob nvidia.{name}")
        if hasattr(knobs.runtime, "override_arch"):
            with knobs.runtime.scope():
                knobs.runtime.override_arch = "sm80"
                self.refused("the option arch='sm80'")
        self.refused("the option maxnreg=0", maxnreg=0)
        if hasattr(plain, "src"): compile(plain, {"x": "*fp32"}, maxnreg=64)

    def test_options_of_ptxas_are_triton_s_also_where_they_are_usual(self):
        backend = _compile.triton_compiler.make_backend(HOPPER)
        if not hasattr(backend.parse_options({}), "ptx_options"): return
        usual = backend.parse_options({"ptx_options": "-O1"})
        with self.assertRaisesRegex(kiln.triton._functions.Refused, "ptx_options='-O1'"):
            _compile.code_options(HOPPER, usual, usual)


FAKE = glob.glob(os.path.join(os.path.dirname(kiln.__file__), "../../tests/unit/runtime/cuda/libcuda_fake.so"))


@unittest.skipUnless(FAKE and _driver.is_known(), "no fake driver was built, or Triton's driver is another one")
class PaddedWithNan(unittest.TestCase):

    def setUp(self):
        for change in (mock.patch.dict(os.environ, KILN_CUDA_LIBRARY=FAKE[0]), mock.patch.object(_driver.Utils, "_made", None)):
            change.start()
            self.addCleanup(change.stop)
        kiln.triton.enable(strict=True)
        self.addCleanup(kiln.triton.disable)
        kiln.triton.clear_report()
        utils = _driver.Utils()
        utils._take_context(0)
        self.stream = ctypes.c_void_p()
        utils._call("cuStreamCreate", ctypes.byref(self.stream), 1)
        # The fake driver's code has no most threads.
        here = types.SimpleNamespace(load_binary=lambda *a: (*utils.load_binary(*a)[:4], 1024),
                                     get_device_properties=utils.get_device_properties, unload_module=lambda _: None)
        driver = types.SimpleNamespace(utils=here, launcher_cls=_compile._Launcher, get_current_device=lambda: 0,
                                       get_current_target=lambda: HOPPER)
        active = triton.runtime.driver
        self.addCleanup(setattr, active, "_active", active._active)
        active.set_active(driver)

    def test_launches_have_code_of_their_own(self):
        kind = "tensordesc<fp32[32, 32]>"
        kernel = compile(copies, {"d": kind, "e": kind, "x": "*fp32", "pair": ("i32", kind)})
        made, inner = [], _compile.compile
        record = lambda *args, **keywords: made.append(inner(*args, **keywords)) or made[-1]
        hooks = []

        def launch(*padding):
            d, e, f = (types.SimpleNamespace(base=4096, shape=[48, 48], strides=[48, 1], padding=p) for p in padding)
            run = kernel.run
            with mock.patch.object(_compile, "compile", record):
                run(1, 1, 1, self.stream.value, kernel.function, kernel.packed_metadata, None,
                    lambda _: hooks.append("enter"), lambda _: hooks.append("exit"), d, e, 4096, (1, f))

        launch("zero", "zero", "zero")
        self.assertEqual(made, [])
        launch("nan", "zero", "zero")
        launch("nan", "zero", "nan")
        self.assertEqual(len(made), 2)
        launch("nan", "zero", "zero")
        launch("zero", "zero", "zero")
        self.assertEqual(len(made), 2)
        self.assertEqual(hooks, ["enter", "exit"] * 5)
        nan = "0f7FC00000", "2143289344", "0x7FC00000"  # as ptx writes it
        counts = [sum(k.asm["ptx"].count(n) for n in nan) for k in (kernel, *made)]
        self.assertEqual(counts[0], 0)
        self.assertGreater(counts[1], 0)

    def test_what_kiln_refuses_is_launched_as_triton_s(self):
        kind = "tensordesc<fp32[32, 32]>"
        kernel = compile(copies, {"d": kind, "e": kind, "x": "*fp32", "pair": ("i32", kind)})
        calls = []
        theirs = types.SimpleNamespace(run=lambda *a: calls.append(a), function=7, packed_metadata="theirs")
        d, e = (types.SimpleNamespace(base=4096, shape=[48, 48], strides=[48, 1], padding=p) for p in ("nan", "zero"))
        run = kernel.run
        leave = lambda _: None
        with mock.patch.object(_compile, "compile", lambda *a, **k: theirs):
            run(2, 3, 4, self.stream.value, kernel.function, kernel.packed_metadata, "told", lambda _: None, leave,
                d, e, 4096, (1, e))
        self.assertEqual(calls, [(2, 3, 4, self.stream.value, 7, "theirs", "told", None, leave, d, e, 4096, (1, e))])

    def test_integers_have_no_nan(self):
        functions = _kiln.FunctionTable()
        number = functions.add("def f(d, x):\n    tl.store(x, 1)\n", "f.py", 1)
        with self.assertRaisesRegex(kiln.Error, "padded with NaN is of floats"):
            functions.compile(number, [("type", "tensordesc<i32[32, 32]>:nan"), ("type", "*i32")], "sm_90a", {}, "")


if __name__ == "__main__":
    unittest.main()
