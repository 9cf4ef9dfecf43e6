"""kiln._kiln: what the package's own code stands on."""
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
import uuid

import kiln
from kiln import _kiln

ADD = """def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
"""
POINTERS = [("type", "*fp32:16")] * 3


def table(text, **names):
    functions = _kiln.FunctionTable()
    number = functions.add(text, "file.py", 5)
    functions.bind(number, "tl", ("module", "triton.language"))
    for name, value in names.items(): functions.bind(number, name, value)
    return functions, number


class FunctionTable(unittest.TestCase):

    def test_compiles(self):
        functions, add = table(ADD)
        self.assertEqual(functions.names(add), ["tl", "tl.arange", "tl.load", "tl.program_id", "tl.store"])
        image = functions.compile(add, [*POINTERS, ("type", "i32"), ("value", 1024)], "sm_90a", {"num_warps": 8}, "")
        self.assertEqual((image.name, image.symbol), ("add", "add"))
        self.assertEqual((image.target, image.num_warps, image.num_ctas, image.tensor_maps), ("sm_90a", 8, 1, 0))
        self.assertEqual(image.params, [("x", "*f32"), ("y", "*f32"), ("out", "*f32"), ("n", "i32")])
        self.assertIn(".visible .entry add(", image.ptx)

    def test_plan_is_an_image_without_code(self):
        functions, add = table(ADD)
        image = functions.compile(add, [*POINTERS, ("type", "i32"), ("value", 1024)], "sm_90a", {}, "")
        again = _kiln.Image.from_plan(image.plan())
        self.assertEqual((again.params, again.num_warps, again.ptx), (image.params, image.num_warps, ""))
        with self.assertRaises(kiln.Error): _kiln.Image.from_plan(b"something else")

    def test_errors_have_a_place(self):
        functions, add = table(ADD)
        with self.assertRaises(kiln.Error) as caught:
            functions.compile(add, [*POINTERS, ("type", "i32"), ("value", 1000)], "sm_90a", {}, "")
        e = caught.exception
        self.assertEqual((e.kind, e.file, e.line), ("value", "file.py", 6))
        self.assertIn("power of two", e.message)
        self.assertIn("^^^", str(e))
        with self.assertRaises(kiln.Error): functions.add("def f(:", "file.py", 1)

    def test_errors_say_what_a_block_has_too_little_of(self):
        functions, product = table("""def product(a, b, c, K, M: tl.constexpr, DEPTH: tl.constexpr):
    acc = tl.zeros((M, M), tl.float32)
    for k in range(0, K, DEPTH):
        acc = tl.dot(a.load([0, k]), b.load([0, k]).T, acc)
    c.store([0, 0], acc.to(tl.float16))
""")

        def image(depth, **options):
            blocks = [("type", f"tensordesc<fp16[128, {n}]>") for n in (depth, depth, 128)]
            return functions.compile(product, [*blocks, ("type", "i32"), ("value", 128), ("value", depth)], "sm_90a", options, "")

        def shortage(depth, **options):
            with self.assertRaises(kiln.Error) as caught: image(depth, **options)
            self.assertEqual(caught.exception.kind, "memory")
            return caught.exception.shortage

        what, needed, available = shortage(512)
        self.assertEqual((what, needed > available, available), ("shared memory", True, 232448))
        if image(64).cubin: self.assertEqual(shortage(64, maxnreg=32), ("registers", 0, 0))
        with self.assertRaises(kiln.Error) as caught: functions.add("def f(:", "file.py", 1)
        self.assertIsNone(caught.exception.shortage)

    def test_static_prints_go_where_python_prints(self):
        for text, fails in ((ADD, False), (ADD + "    tl.static_assert(False)\n", True)):
            word = uuid.uuid4().hex  # code from a cache prints nothing
            text = text.replace("    tl.store", f"    tl.static_print('{word}', BLOCK, '%s')\n    tl.store")
            functions, add = table(text)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                try:
                    functions.compile(add, [*POINTERS, ("type", "i32"), ("value", 64)], "sm_90a", {}, "")
                except kiln.Error:
                    self.assertTrue(fails)
            self.assertEqual(out.getvalue(), f"{word} 64 %s\n")

    def test_python_computes_constexpr_functions(self):
        seen = []

        def block(args, named):
            seen.append((args, named))
            return 2 * args[0]

        text = ADD.replace("* BLOCK", "* block(BLOCK, kind=tl.float16)").replace("(0, BLOCK)", "(0, block(BLOCK, kind=(1, 2)))")
        functions, add = table(text)
        functions.bind(add, "block", ("function", functions.add_evaluated("block", self.id(), block)))
        arguments = [*POINTERS, ("type", "i32"), ("value", 512)]
        image = functions.compile(add, arguments, "sm_90a", {}, "")
        if not image.from_cache:
            self.assertEqual(seen, [([512], {"kind": ("dtype", "float16")}), ([512], {"kind": ("tuple", [1, 2], None)})])

        def fails(args, named):
            raise ValueError("no block today")

        functions, add = table(text)
        functions.bind(add, "block", ("function", functions.add_evaluated("block", self.id() + "2", fails)))
        with self.assertRaises(kiln.Error) as caught: functions.compile(add, arguments, "sm_90a", {}, "")
        self.assertEqual(caught.exception.message, "block: no block today")

    def test_refuses_what_means_nothing(self):
        functions, add = table(ADD)
        for wrong in ((), ("value", ), ("no tag", 1), [1], object(), 2**64, ("dtype", "float7")):
            with self.assertRaises((TypeError, ValueError, OverflowError)): functions.bind(add, "x", wrong)
        with self.assertRaises(KeyError): functions.compile(add, POINTERS, "sm_90a", {"warps": 1}, "")
        with self.assertRaises(kiln.Error): functions.compile(add, POINTERS, "sm_90a", {}, "")
        with self.assertRaises(kiln.Error):
            functions.compile(add, [*POINTERS, ("type", "i33"), ("value", 1024)], "sm_90a", {}, "")

    def test_names_its_compiler(self):
        self.assertIn(kiln.__version__, _kiln.fingerprint("sm_90a"))
        self.assertTrue(_kiln.FunctionTable.knows("triton.language.load"))
        self.assertFalse(_kiln.FunctionTable.knows("triton.language.nothing"))


class Package(unittest.TestCase):

    def test_packages_are_there_without_an_import(self):
        code = """import kiln, sys
assert not {"torch", "triton", "kiln.dynamo", "kiln.triton"} & {*sys.modules}
for name, needs in ("dynamo", "torch"), ("triton", "triton"):
    assert name in dir(kiln)
    try:
        print(getattr(kiln, name).report())
    except AttributeError as e:
        assert f"No module named '{needs}'" in str(e), e
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(dir(kiln), sorted(dir(kiln)))
        for name in dir(kiln):
            if name not in ("dynamo", "triton"): getattr(kiln, name)
        with self.assertRaisesRegex(AttributeError, "no attribute 'dynamos'"): kiln.dynamos


TYPED = """
from typing import assert_type  # since 3.11
import kiln
import kiln.language as tl

@kiln.jit
def fill(out: object, n: int, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    tl.store(out + i, 1.0, mask=i < n)

fill[lambda meta: -(-4 // meta["BLOCK"])]([], 4, BLOCK=4)
e = kiln.expr([1.0])
assert_type((e + 1).softmax(-1), kiln.Expr)
assert_type(kiln.bench("e.sum()", budget=1), kiln.Table)
assert_type(kiln.Session(device="cpu"), kiln.Session)
rows: list[dict[str, object]] = kiln.sweep(lambda n: n, {"n": [1, 2]})
kiln.bench(3)  # wrong
kiln.benhc("x")  # wrong
"""


@unittest.skipUnless(importlib.util.find_spec("mypy") and sys.version_info >= (3, 11), "needs mypy")
class Types(unittest.TestCase):

    def test_programs_are_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program.py")
            with open(program, "w") as f: f.write(TYPED)
            package = os.path.dirname(os.path.dirname(os.path.abspath(kiln.__file__)))
            done = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", folder, program],
                                  capture_output=True, text=True, env=os.environ | {"MYPYPATH": package})
        line = TYPED.splitlines().index("kiln.bench(3)  # wrong") + 1
        self.assertRegex(done.stdout, rf"^{program}:{line}: error: Argument 1 to \"bench\"[^\n]*\n"
                         rf"{program}:{line + 1}: error: Module has no attribute \"benhc\"[^\n]*\n([^\n]*note:[^\n]*\n)?"
                         "Found 2 errors", done.stderr)


if __name__ == "__main__":
    unittest.main()
