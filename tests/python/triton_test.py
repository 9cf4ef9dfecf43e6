"""kiln.triton without a GPU: Triton's sources in, compiled kernels out. Skipped where triton is not installed."""
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import NamedTuple
from unittest import mock

if importlib.util.find_spec("triton") is None:
    print("skipped: this Python has no triton (KILN_TEST_PYTHON names another one)")
    sys.exit(0)
# Before triton is imported, which reads it once.
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="kiln_triton_")

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language import exp as e_to_the
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.cache import FileCacheManager
from triton.runtime.errors import OutOfResources, PTXASError

import kiln.triton

HOPPER = GPUTarget("cuda", 90, 32)
SCALE = tl.constexpr(2.0)
PLAIN = 3
ALIASES = tl  # a module under another name


@triton.jit
def helper(v, by: tl.constexpr = SCALE):
    return e_to_the(v) * by


def make_kernel(bias, helper):
    """Of another `helper` than this file's, and with variables of a closure."""
    BIAS = tl.constexpr(bias)

    @triton.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = ALIASES.program_id(0) * BLOCK + ALIASES.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n)
        tl.store(out + i, helper(v) + BIAS, mask=i < n)

    return kernel


@triton.jit
def other(v):
    return v * v + helper(v, by=0.5)


with_exp, with_square = make_kernel(1.0, helper), make_kernel(2.0, other)


@getattr(triton, "constexpr_function", lambda f: f)  # since Triton 3.5
def computed(kind):
    return {"root": math.sqrt(16), "name": len(kind)}[kind]


@triton.jit
def constexprs(out, kind: tl.constexpr, f: tl.constexpr, dtype: tl.constexpr, limit: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(out + i, f(i.to(dtype), computed(kind)).to(tl.float32) + limit)


@triton.jit
def times(a, b):
    return a * b


class Pair(NamedTuple):
    x: object
    step: object


@triton.jit
def named(pair, out, n):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(pair.x + i * pair.step, mask=i < n))


def aggregate(cls):
    """Triton's own, since 3.5."""
    return getattr(triton.language.core, "_aggregate", lambda c: c)(cls)


@aggregate
class Block:
    offsets: tl.tensor
    size: tl.constexpr

    @getattr(triton, "constexpr_function", lambda f: f)
    def __init__(self, offsets, size):
        self.offsets = offsets
        self.size = tl.constexpr(size)

    @triton.jit
    def load(self, x):
        return tl.load(x + self.offsets)

    @triton.jit
    def next(self):
        return Block(self.offsets + self.size, self.size)


@triton.jit
def sums_blocks(x, out, SIZE: tl.constexpr):
    block = Block(tl.arange(0, SIZE), SIZE)
    total = tl.zeros((SIZE, ), tl.float32)
    for i in range(3):
        total += block.load(x)
        block = block.next()
    tl.store(out + tl.arange(0, SIZE), total)


class Strided(NamedTuple):
    x: object
    step: object = 5


@triton.jit
def makes_named(x, out, n):
    i = tl.arange(0, 64)
    pair = Strided(x=x)
    tl.store(out + i, tl.load(pair.x + i * pair.step, mask=i < n))


@triton.jit
def binds_a_global_late(out):
    s = SCALE
    SCALE = 3.0  # noqa: F841
    tl.store(out, s)


@triton.jit
def variadic(out, *xs):
    i = tl.arange(0, 64)
    sum = tl.zeros((64, ), tl.float32)
    for k in tl.static_range(len(xs)):
        sum += tl.load(xs[k] + i)
    tl.store(out + i, sum)


@triton.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(a.load([m * BM, k * BK]), b.load([n * BN, k * BK]).T, acc)
    c.store([m * BM, n * BN], acc.to(tl.float16))


@triton.jit
def demands(out, N: tl.constexpr):
    tl.static_assert(N < 64, "too many")
    tl.store(out, N)


@triton.jit
def square(x, out, precision: tl.constexpr, allow: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.dot(v, v, input_precision=precision, allow_tf32=allow))


@triton.jit
def uses_plain_global(out):
    tl.store(out, PLAIN)


@triton.jit
def multiply_add(x, out):
    tl.store(out, tl.load(x) * tl.load(x + 1) + tl.load(x + 2))


@triton.jit
def asserts(x):
    tl.device_assert(tl.load(x) > 0, "positive")


@triton.jit
def counts(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.atomic_add(x + i, 1) + 1)


@triton.jit
def adds(x):
    v = tl.load(x)
    tl.store(x, v + v)


@triton.jit(repr=lambda of: f"kernel_{of.signature['x'][1:]}_{of.constants['N']}")
def named_by_repr(x, N: tl.constexpr):
    tl.store(x, N)


@triton.jit
def reads_clock(out, clock: tl.constexpr):
    tl.store(out, clock())


def compile(kernel, signature, constants=None, attrs=None, **options):
    source = ASTSource(kernel, signature, constants or {}, attrs)
    return triton.compile(source, target=HOPPER, options=options)


class Bridge(unittest.TestCase):

    def setUp(self):
        kiln.triton.enable(strict=True)
        kiln.triton.clear_report()

    def tearDown(self):
        kiln.triton.disable()

    def elementwise(self, kernel, **options):
        return compile(kernel, {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {(3, ): 256},
                       {(0, ): [["tt.divisibility", 16]]}, **options)

    def test_gives_a_compiled_kernel(self):
        kernel = self.elementwise(with_exp, num_warps=8)
        self.assertIsInstance(kernel, triton.compiler.CompiledKernel)
        # The metadata that Triton's launcher reads.
        self.assertEqual((kernel.name, kernel.metadata.num_warps, kernel.metadata.target), ("kernel", 8, HOPPER))
        self.assertIn(".visible .entry kernel(", kernel.asm["ptx"])
        self.assertEqual(kernel.asm["cubin"][:4], b"\x7fELF")
        row, = kiln.triton.report().kernels
        self.assertEqual((row.name, row.file, row.reason, row.cached), ("kernel", __file__, "", False))

    def test_keeps_kernels_in_tritons_cache(self):
        self.elementwise(with_exp, num_warps=2)
        again = self.elementwise(with_exp, num_warps=2)
        # The second comes from the cache on the disk.
        self.assertEqual([k.cached for k in kiln.triton.report().kernels], [False, True])
        self.assertEqual(again.asm["cubin"][:4], b"\x7fELF")

    def test_writes_no_more_than_the_files_of_a_kernel(self):
        kernel = self.elementwise(with_square, num_warps=2)
        folder = triton.runtime.cache.get_cache_manager(kernel.hash.removeprefix("kiln-")).cache_dir
        self.assertEqual(sorted(os.listdir(folder)),
                         ["__grp__kernel.json", "kernel.cubin", "kernel.json", "kernel.ptx"])

    def test_writes_through_caches_of_others(self):
        put = []

        class Cache(FileCacheManager):

            def put(self, data, filename, binary=True):
                put.append(filename)
                return super().put(data, filename, binary)

        with triton.knobs.cache.scope():
            triton.knobs.cache.manager_class = Cache
            self.elementwise(with_square, num_warps=1)
        self.assertEqual(put, ["kernel.ptx", "kernel.cubin", "kernel.json", "__grp__kernel.json"])

    def test_names_are_those_of_python(self):
        # Two kernels of one name and one text, in which `helper` means different functions.
        a, b = self.elementwise(with_exp), self.elementwise(with_square)
        self.assertIn("ex2.approx", a.asm["ptx"])
        self.assertNotEqual(a.asm["ptx"], b.asm["ptx"])

    @unittest.skipUnless(hasattr(triton, "constexpr_function"), "needs Triton 3.5")
    def test_constexprs(self):
        signature = {"out": "*fp32"} | dict.fromkeys(("kind", "f", "dtype", "limit"), "constexpr")
        # An infinity, a negative number and one beyond 32 bits.
        for kind, limit in (("root", math.inf), ("name", -1), ("root", 2**40)):
            compile(constexprs, signature, {(1, ): kind, (2, ): times, (3, ): tl.float16, (4, ): limit})
        self.assertEqual(kiln.triton.report().compiled, 3)

    def test_tuples(self):
        compile(named, {"pair": Pair("*fp32", "constexpr"), "out": "*fp32", "n": "i32"}, {(0, 1): 3})
        kernel = compile(variadic, {"out": "*fp32", "xs": ("*fp32", "*fp32")})
        # Three pointers: a tuple is passed by its elements.
        self.assertEqual(kernel.asm["ptx"].count(".param .u64"), 3)

    def test_named_tuples_are_made(self):
        kernel = compile(makes_named, {"x": "*fp32", "out": "*fp32", "n": "i32"})
        self.assertRegex(kernel.asm["ptx"], r"mul.lo.s32 .*, 5;")

    @unittest.skipUnless(hasattr(triton.language.core, "_aggregate"), "needs Triton 3.5")
    def test_objects_of_aggregates(self):
        kernel = compile(sums_blocks, {"x": "*fp32", "out": "*fp32", "SIZE": "constexpr"}, {(2, ): 256})
        self.assertIn("ld.global", kernel.asm["ptx"])
        self.assertEqual(kiln.triton.report().compiled, 1)

    def test_a_name_is_the_global_one_until_it_is_bound(self):
        # The bits of 2.0, and not of the 3.0 that is bound behind it.
        self.assertIn("1073741824", compile(binds_a_global_late, {"out": "*fp32"}).asm["ptx"])  # 2.0

    def test_descriptors_need_kilns_launcher(self):
        kernel = compile(product, {"a": "tensordesc<fp16[128, 64]>", "b": "tensordesc<fp16[128, 64]>",
                                   "c": "tensordesc<fp16[128, 128]>", "K": "i32"} | dict.fromkeys(("BM", "BN", "BK"), "constexpr"),
                         {(4, ): 128, (5, ): 128, (6, ): 64}, num_warps=8)
        # Three descriptors of two dimensions and a number, which only Kiln's launcher knows to pass.
        self.assertEqual(kernel.metadata.kiln["steps"], [2, 2, 2, "i32", None, None, None])
        self.assertGreaterEqual(kernel.metadata.num_warps, 8)  # with the producer of loads
        self.assertTrue(kernel.hash.startswith("kiln-"))

    def test_options(self):
        signature = {"x": "*fp32", "out": "*fp32"}
        self.assertIn("fma.rn.f32", compile(multiply_add, signature).asm["ptx"])
        self.assertNotIn("fma.rn.f32", compile(multiply_add, signature, enable_fp_fusion=False).asm["ptx"])
        self.assertIn(".maxnreg 40", compile(multiply_add, signature, maxnreg=40).asm["ptx"])
        self.assertNotIn("__assertfail", compile(asserts, {"x": "*i32"}).asm["ptx"])
        self.assertIn("__assertfail", compile(asserts, {"x": "*i32"}, debug=True, sanitize_overflow=False).asm["ptx"])
        # Without debug= nothing is checked; with it the sums of integers are.
        self.assertNotIn("overflow", compile(adds, {"x": "*i32"}).asm["ptx"])
        self.assertNotIn("overflow", compile(adds, {"x": "*i32"}, debug=True, sanitize_overflow=False).asm["ptx"])
        ptx = compile(adds, {"x": "*i32"}, debug=True).asm["ptx"]
        self.assertIn("__assertfail", ptx)
        message = ", ".join(str(b) for b in b"int32 overflow detected for operation add")
        self.assertIn(message, ptx)
        # Triton names its own library in each compilation.
        compile(multiply_add, signature, extern_libs={"libdevice": "/a/path"})
        with self.assertRaises(kiln.triton.Unsupported): compile(multiply_add, signature, extern_libs={"mine": "/a/path"})
        with self.assertRaisesRegex(OutOfResources, "threads, Required: 2048"):
            compile(multiply_add, signature, num_warps=64)

    def test_precision_of_floats_is_tritons_knob(self):

        def products(precision=None, allow=None):
            """How f32 is multiplied, by the words of the PTX."""
            kernel = compile(square, {"x": "*fp32", "out": "*fp32", "precision": "constexpr", "allow": "constexpr"},
                             {(2, ): precision, (3, ): allow})
            return [w for w in ("tf32", "bf16", "fma.rn.f32") if w in kernel.asm["ptx"]]

        with triton.knobs.language.scope():
            triton.knobs.language.fp32_default = None
            self.assertEqual((products(), products(allow=False)), (["tf32"], ["fma.rn.f32"]))
            # In any case, and before allow_tf32. Not what the cache keeps of other knobs.
            triton.knobs.language.fp32_default = "IEEE"
            self.assertEqual((products(), products(allow=True)), (["fma.rn.f32"], ["fma.rn.f32"]))
            self.assertEqual(products("tf32"), ["tf32"])
            triton.knobs.language.fp32_default = "bf16x3"
            self.assertEqual(products(allow=False), ["bf16"])
            triton.knobs.language.fp32_default = "fp19"
            with self.assertRaisesRegex(kiln.triton.Unsupported, "TRITON_F32_DEFAULT.* must be .*'bf16x6', got 'fp19'"):
                products()
            self.assertEqual(products("ieee"), ["fma.rn.f32"])

    def test_variables_that_show_tritons_passes_need_triton(self):
        signature = {"x": "*fp32", "out": "*fp32"}
        for name, value in (("TRITON_REPRODUCER_PATH", "/a/path"), ("MLIR_ENABLE_DUMP", "multiply_add"),
                            ("LLVM_IR_ENABLE_DUMP", "1")):
            with mock.patch.dict(os.environ, {name: value}):
                with self.assertRaisesRegex(kiln.triton.Unsupported, name): compile(multiply_add, signature)
        with mock.patch.dict(os.environ, MLIR_ENABLE_DUMP="0", LLVM_IR_ENABLE_DUMP="", TRITON_REPRODUCER_PATH=""):
            compile(multiply_add, signature)

    def test_names_of_kernels_are_of_their_repr(self):
        kernel = compile(named_by_repr, {"x": "*fp32", "N": "constexpr"}, {(1, ): 3})
        self.assertEqual(kernel.name, "kernel_fp32_3")
        self.assertIn(".visible .entry kernel_fp32_3(", kernel.asm["ptx"])

    def test_names_that_packages_take_from_their_modules(self):
        kernel = compile(reads_clock, {"out": "*i64", "clock": "constexpr"}, {(1, ): tl.extra.cuda.globaltimer})
        self.assertIn("globaltimer", kernel.asm["ptx"])

    def test_listeners_hear_times(self):
        told = []
        triton.knobs.compilation.listener = lambda **what: told.append((what["cache_hit"], what["times"]))
        try:
            for _ in range(2): self.elementwise(with_exp, num_warps=1)
        finally:
            triton.knobs.compilation.listener = None
        # A listener hears of both, and of the cache what it took.
        self.assertEqual([hit for hit, _ in told], [False, True])
        self.assertTrue(all(t > 0 for t in (told[0][1].ir_initialization, told[0][1].total_lowering,
                                            told[0][1].store_results, told[1][1].total)))
        self.assertEqual(told[1][1].total_lowering, 0)

    # A kernel that does not share loads has nothing to gain from a cluster.
    def test_programs_that_no_cluster_shares_run_in_one_cta(self):
        kernel = compile(counts, {"x": "*i32"}, num_ctas=2)
        self.assertEqual(kernel.metadata.num_ctas, 1)
        self.assertNotIn("cluster", kernel.asm["ptx"])
        again = compile(counts, {"x": "*i32"}, num_ctas=2)
        self.assertEqual(again.metadata.num_ctas, 1)
        report = kiln.triton.report()
        self.assertEqual((report.compiled, report.fallbacks), (2, 0))
        self.assertIn("2 x counts: one CTA in place of 2: num_ctas = 2: ", str(report))
        with self.assertRaisesRegex(kiln.triton.Unsupported, "PLAIN is not defined"):
            compile(uses_plain_global, {"out": "*fp32"}, num_ctas=2)

    def test_strict_raises(self):
        # Options whose meaning Kiln does not have.
        for options in ({"ptx_version": 83}, {"default_dot_input_precision": "ieee"}):
            with self.assertRaises(kiln.triton.Unsupported): compile(multiply_add, {"x": "*fp32", "out": "*fp32"}, **options)
        with self.assertRaisesRegex(kiln.triton.Unsupported, "PLAIN is not defined"):
            compile(uses_plain_global, {"out": "*fp32"})

    def product(self, rows, depth, **options):
        """Of blocks of fp16, with two stages of them in shared memory."""
        blocks = {"a": (rows, depth), "b": (rows, depth), "c": (rows, rows)}
        signature = {name: f"tensordesc<fp16[{m}, {n}]>" for name, (m, n) in blocks.items()} | {"K": "i32"}
        signature |= dict.fromkeys(("BM", "BN", "BK"), "constexpr")
        return compile(product, signature, {(4, ): rows, (5, ): rows, (6, ): depth}, num_stages=2, **options)

    # Triton's autotuner goes on to the next configuration then.
    def test_strict_raises_what_autotuners_skip(self):
        with self.assertRaisesRegex(OutOfResources, "shared memory, Required: [0-9]{6}, Hardware limit: 232448") as caught:
            self.product(256, 256)
        self.assertGreater(caught.exception.required, caught.exception.limit)
        self.assertEqual(caught.exception.__cause__.kind, "memory")
        with self.assertRaisesRegex(PTXASError, "kernel product .*Insufficient registers"):
            self.product(128, 64, maxnreg=32)
        with self.assertRaisesRegex(CompileTimeAssertionFailure, "too many"):
            compile(demands, {"out": "*i32", "N": "constexpr"}, {(1, ): 64})
        report = kiln.triton.report()
        self.assertEqual((report.compiled, report.fallbacks), (0, 3))

    def test_what_does_not_fit_is_for_triton_to_try(self):
        kiln.triton.enable()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertIn("ttir", self.product(256, 256).asm)
        self.assertRegex(str(caught[-1].message), "since Kiln does not: .* bytes of shared memory")

    def test_falls_back_with_one_warning(self):
        kiln.triton.enable()
        with warnings.catch_warnings(record=True) as caught:
            # All of them, so that "one" is not Python's doing.
            warnings.simplefilter("always")
            for _ in range(2):
                kernel = compile(multiply_add, {"x": "*fp32", "out": "*fp32"}, ptx_version=83)
                self.assertIn("ttir", kernel.asm)
        said = [str(w.message) for w in caught if "Kiln" in str(w.message)]
        self.assertEqual(len(said), 1, said)
        self.assertIn("multiply_add", said[0])
        report = kiln.triton.report()
        self.assertEqual((report.compiled, report.fallbacks), (0, 2))
        self.assertIn("2 x multiply_add: the option ptx_version=83", str(report))
        with self.assertRaisesRegex(Exception, "Cannot access global variable PLAIN"):  # as Triton says it
            compile(uses_plain_global, {"out": "*fp32"})

    def test_disable(self):
        kiln.triton.disable()
        self.assertIn("ttir", compile(multiply_add, {"x": "*fp32", "out": "*fp32"}).asm)
        # Nothing was counted, since Kiln was not asked.
        self.assertEqual(kiln.triton.report().kernels, [])

    def test_environment_enables(self):
        hook = os.path.join(os.path.dirname(__file__), "..", "..", "python")
        code = "import _kiln_autoload, sys; assert 'kiln' not in sys.modules; import triton, kiln.triton as k; " \
               "assert triton.compile is k._compile.compile"
        path = os.pathsep.join([*sys.path[1:], hook])
        # The hook must not import kiln before triton is there.
        subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"KILN_TRITON": "1", "PYTHONPATH": path})


if __name__ == "__main__":
    unittest.main()
