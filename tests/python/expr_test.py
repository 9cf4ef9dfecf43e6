"""kiln.expr on the CPU, with whatever arrays this Python has."""
import gc
import importlib.util
import inspect
import re
import sys
import threading
import unittest
import weakref

import kiln
from kiln import _kiln

np = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None
torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None


class Surface(unittest.TestCase):

    def test_every_operation_has_a_method(self):
        # Operations whose method has another name, or none.
        methods = {"cast": "to", "take": "gather", "iota": None, "input": None, "scalar": None, "call": None}
        methods["slice"] = "__getitem__"
        # What gradients, random numbers and tensors that are written in place are made of.
        methods |= dict.fromkeys(["scatter_add", "random_word", "full", "put"])
        for name, _, _ in _kiln.expr_ops():
            method = methods.get(name, name)
            if method: self.assertTrue(callable(getattr(kiln.Expr, method, None)), name)

    def test_checkers_see_every_method(self):
        # From the stub-like source that type checkers read.
        said = set(re.findall(r"^ {4,8}def (\w+)", inspect.getsource(sys.modules["kiln._expr"]), re.MULTILINE))
        has = {n for n, v in vars(kiln.Expr).items() if inspect.isfunction(v)}
        self.assertLessEqual(has - {"__eq__", "__ne__", "view"}, said)

    def test_docstrings(self):
        for name in ("softmax", "add", "sum", "layer_norm", "eval", "plan", "where"):
            self.assertTrue(getattr(kiln.Expr, name).__doc__, name)
        for of in (kiln, kiln.Expr, kiln.Kernel, kiln.Plan, kiln.Plot, kiln.Session, kiln.Table):
            for name, value in inspect.getmembers(of, lambda v: inspect.isroutine(v) or inspect.isclass(v)):
                if not name.startswith("_"): self.assertTrue(inspect.getdoc(value), f"{of.__name__}.{name}")

    def test_a_placeholder_has_a_number_of_bytes(self):
        for shape in ([2**62, 2], [2**31, 2**31, 4], [-1, 3], [2**32, 2**32]):
            with self.assertRaisesRegex(ValueError, "number of bytes"): _kiln.Expr.placeholder("float32", shape, -1)


@unittest.skipUnless(np, "needs numpy")
class Numpy(unittest.TestCase):

    def setUp(self):
        self.x = np.random.default_rng(1).standard_normal((6, 8))

    def test_arrays_in_and_out(self):
        e = (kiln.expr(self.x) * 2 + self.x).sum(1)
        # An array of the kind that came in.
        got = e.eval()
        self.assertIsInstance(got, np.ndarray)
        np.testing.assert_allclose(got, (self.x * 3).sum(1))

    def test_memory_that_is_read_backwards_is_seen(self):
        x = np.zeros(68, np.float32)
        x = x[-x.ctypes.data % 16 // 4:][:64]
        out = x[:32]
        self.assertFalse(_kiln.is_apart(out, [x[40::-1]]))
        self.assertFalse(_kiln.is_apart(out, [x.reshape(8, 8)[::-1, 1:]]))
        self.assertTrue(_kiln.is_apart(out, [x[63:31:-1], x[32:], x[40:40:-1]]))

    def test_an_array_on_the_left(self):
        # numpy must leave the operation to the expression.
        got = self.x + kiln.expr(self.x)
        self.assertIsInstance(got, kiln.Expr)
        np.testing.assert_allclose(got.eval(), self.x * 2)
        np.testing.assert_allclose((self.x @ kiln.expr(self.x.T)).eval(), self.x @ self.x.T)

    def test_scalars_are_numbers(self):
        e = kiln.expr(self.x.astype(np.float32))
        # numpy's scalars do not widen, as Python's numbers do not.
        for got in (e * np.float64(2), np.float32(2) * e, e * np.int64(2), e / np.float16(0.5), e - np.int8(-1) * e):
            self.assertEqual(got.dtype, "float32")
            np.testing.assert_allclose(got.eval(), self.x.astype(np.float32) * 2)

    def test_strides(self):
        for a in (self.x.T, self.x[::2, 1::3], np.broadcast_to(self.x[0], (4, 8)), self.x[2], self.x[:, None, 3]):
            np.testing.assert_allclose((kiln.expr(a) + 1).eval(), a + 1)
        # Tensors have no negative strides.
        with self.assertRaisesRegex(ValueError, "negative strides"): kiln.expr(self.x[::-1])

    def test_memory_is_kept_and_let_go(self):
        a = np.ones(5000)
        kept = weakref.ref(a)
        e = kiln.expr(a) + 1
        del a
        gc.collect()
        # The expression holds the array.
        self.assertIsNotNone(kept())
        self.assertEqual(e.eval().sum(), 10000)
        del e
        gc.collect()
        self.assertIsNone(kept())

    def test_what_eval_reads(self):
        a = np.ones(3)
        # Read when it is computed, not when it is written down.
        e = kiln.expr(a) * 2
        a[0] = 5
        self.assertEqual(e.eval().tolist(), [10, 2, 2])
        a[0] = 7
        self.assertEqual(e.eval().tolist(), [14, 2, 2])

    def test_out_may_be_written_to(self):
        fixed = np.zeros_like(self.x)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "may not be written to"): (kiln.expr(self.x) * 2).eval(out=fixed)
        self.assertEqual(fixed.sum(), 0)

    def test_out(self):
        out = np.zeros((6, 8))
        self.assertIs((kiln.expr(self.x) * 2).eval(out=out), out)
        np.testing.assert_allclose(out, self.x * 2)
        square = self.x[:6, :6].copy()
        # Read and written: the result must not be seen halfway.
        (kiln.expr(square).T + square).eval(out=square)  # which it reads elsewhere than it writes
        np.testing.assert_allclose(square, self.x[:6, :6] + self.x[:6, :6].T)
        # A result of other strides is filled in its own order.
        wide = np.zeros((8, 6)).T
        (kiln.expr(self.x) * 2).eval(out=wide)
        np.testing.assert_allclose(wide, self.x * 2)
        with self.assertRaisesRegex(ValueError, r"float64\[6, 8\] on cpu got float32\[6, 8\]"):
            (kiln.expr(self.x) * 2).eval(out=np.zeros((6, 8), np.float32))

    def test_no_elements(self):
        e = kiln.expr(np.zeros((0, 4)))
        self.assertEqual((e + 1).eval().shape, (0, 4))
        # The smallest of nothing does not exist.
        with self.assertRaisesRegex(kiln.Error, "without elements"): e.sum().eval()

    def test_what_is_no_tensor(self):
        for value in ([1.0], "text", None, object()):
            with self.assertRaisesRegex(TypeError, "is no tensor"): kiln.expr(value)
        with self.assertRaisesRegex(TypeError, "complex128"): kiln.expr(np.zeros(3, complex))
        with self.assertRaisesRegex(TypeError, "datetime64"): kiln.expr(np.zeros(3, "datetime64[s]"))
        with self.assertRaises(TypeError): kiln.expr(self.x) + "text"
        # As numpy: an array of comparisons is neither true nor false.
        with self.assertRaisesRegex(TypeError, "no truth value"): bool(kiln.expr(self.x) > 0)
        with self.assertRaises(TypeError): kiln.Expr(self.x)

    def test_errors_name_operation_and_shapes(self):
        e = kiln.expr(self.x)
        with self.assertRaisesRegex(kiln.Error, r"matmul of \[6, 8\] and \[6, 8\]: the inner dimensions"): e @ e
        with self.assertRaisesRegex(kiln.Error, r"add: the shapes \[6, 8\] and \[8, 6\] do not broadcast"): e + e.T
        with self.assertRaisesRegex(kiln.Error, r"reshape: \[6, 8\] has 48 elements"): e.reshape(7, 7)
        with self.assertRaisesRegex(kiln.Error, "dimension 2 of a tensor that has 2"): e.sum(2)
        with self.assertRaisesRegex(IndexError, "index 6"): e[6]
        with self.assertRaisesRegex(IndexError, "3 indices"): e[0, 0, 0]
        # True is no 1, and would be an array's first row.
        for index in (True, np.bool_(False), 1.0):
            with self.assertRaisesRegex(IndexError, "is no index of an expression"): e[index]
        with self.assertRaisesRegex(IndexError, "one ... at most"): e[..., ...]
        self.assertEqual(e[np.int64(1)].shape, e[1].shape)
        with self.assertRaisesRegex(TypeError, "eval\\(\\) gives one"): np.asarray(e)
        with self.assertRaisesRegex(TypeError, "takes 2 operands"): e.maximum()

    def test_threads(self):
        wrong = []

        def work(k):
            for _ in range(30):
                if not np.array_equal((kiln.expr(self.x) * k + 1).eval(), self.x * k + 1): wrong.append(k)

        threads = [threading.Thread(target=work, args=(k, )) for k in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        self.assertFalse(wrong)

    def test_looks(self):
        e = (kiln.expr(self.x) @ self.x.T + 1).relu()
        self.assertEqual(repr(e), "kiln.Expr(float64[6, 6] cpu, 3 operations)")
        self.assertEqual(repr(kiln.expr(self.x)), "kiln.Expr(float64[6, 8] cpu, a tensor)")
        plan = e.plan()
        self.assertRegex(str(plan), r"^fused: 1 launch")
        self.assertIn("@triton.jit", plan.kernels[0][1])
        self.assertIn("<svg", plan.svg)
        self.assertGreater(len(e.plan("unfused").kernels), 1)
        # An expression is as long as its first dimension.
        self.assertEqual(len(list(kiln.expr(self.x))), 6)


@unittest.skipUnless(torch, "needs torch")
class Torch(unittest.TestCase):

    def setUp(self):
        g = torch.Generator().manual_seed(1)
        self.x, self.y = torch.randn(8, 32, generator=g), torch.randn(8, 32, generator=g)
        self.i = torch.randint(0, 8, (8, 4), generator=g)

    def check(self, f, **tolerance):
        """f of torch and of expressions: both have these operations by the same names."""
        got = f(kiln.expr(self.x), kiln.expr(self.y), kiln.expr(self.i))
        self.assertIsInstance(got, kiln.Expr)
        want = f(self.x, self.y, self.i)
        torch.testing.assert_close(got.eval(), want, **tolerance)
        # Shape and dtype are known without computing.
        self.assertEqual((got.shape, f"torch.{got.dtype}"), (tuple(want.shape), str(want.dtype)))

    def test_operators(self):
        self.check(lambda x, y, i: (x + y) * 2 - y / (3 - x) + -x.abs() + 1 / (x * x + 1))
        self.check(lambda x, y, i: x**2 + 2**x + x // 0.7 + x % 0.7 + abs(y))
        self.check(lambda x, y, i: ((i & 3) | (i ^ 1)) + (i << 2) + (i >> 1) + ~i + i // 3 + i % 3 + 7 // (i + 1))
        self.check(lambda x, y, i: (x > y) | (x <= 0.5) & (y != x) ^ (x == 0))
        self.check(lambda x, y, i: i * x[:, :4] + i / 2)
        self.check(lambda x, y, i: x @ y.T)

    def test_tensors_beside_expressions(self):
        e = kiln.expr(self.x)
        # torch on the left must leave the operation to the expression too.
        for got in (e + self.y, self.y + e, self.y.add(0) + e): torch.testing.assert_close(got.eval(), self.x + self.y)
        torch.testing.assert_close((self.y @ e.T).eval(), self.y @ self.x.T)
        torch.testing.assert_close((self.y > e).eval(), self.y > self.x)

    def test_reductions(self):
        self.check(lambda x, y, i: x.sum() + x.sum(0) + x.sum(-1, keepdim=True) + x.mean((0, 1)))
        self.check(lambda x, y, i: x.var(1, keepdim=True) + x.var())
        self.check(lambda x, y, i: x.argmax(1) + i.sum(1))
        self.check(lambda x, y, i: x.std(0, correction=0) + x.cumsum(1))
        self.check(lambda x, y, i: x.softmax(-1) + x.log_softmax(0))
        self.check(lambda x, y, i: x.amax(1) + x.amin((0, 1)) + x.amax(-1, True) + x.amin())
        self.check(lambda x, y, i: x.clamp(min=0) + x.clamp(max=y) + x.clamp(-1, 1) + y.clamp(max=0.5, min=0))
        e = kiln.expr(self.x)
        with self.assertRaisesRegex(TypeError, "min, max or both"): e.clamp()
        torch.testing.assert_close(e.max(1).eval(), self.x.amax(1))
        for f in ("layer_norm", "rms_norm"):
            torch.testing.assert_close(getattr(e, f)(self.y[0], eps=1e-6).eval(),
                                       getattr(torch.nn.functional, f)(self.x, (32, ), self.y[0], eps=1e-6))

    def test_dimensions_that_are_not_there(self):
        e = kiln.expr(self.x)
        for call in (lambda: e.transpose(0, 2), lambda: e.transpose(-3, 0), lambda: e.size(2), lambda: e.flatten(2)):
            with self.assertRaisesRegex(IndexError, "dimension -?[23] of an expression that has 2"): call()

    def test_views(self):
        self.check(lambda x, y, i: x.T.reshape(4, -1) + 1)
        self.check(lambda x, y, i: x.unsqueeze(1).expand(8, 3, 32).permute(2, 0, 1).flatten(1) * 2)
        self.check(lambda x, y, i: x[1:, None, ::2][..., 3] + x[0, 0] + x[-1, -1])
        self.check(lambda x, y, i: x.unsqueeze(-1).squeeze(-1).transpose(0, 1).mT + y)
        # A view alone gives memory of its own.
        for f in (lambda x, y, i: x.T, lambda x, y, i: x[2:4, ::2], lambda x, y, i: x):  # nothing but views
            self.check(f)
            self.assertNotEqual(f(kiln.expr(self.x), None, None).eval().data_ptr(), self.x.data_ptr())

    def test_places(self):
        self.check(lambda x, y, i: x[i])
        self.check(lambda x, y, i: x[:, i] * 2)
        self.check(lambda x, y, i: x[i[:, 0], i[:, 1]])
        self.check(lambda x, y, i: x[2:6][i % 4, 1:5])
        self.check(lambda x, y, i: x.gather(1, i) + x.gather(0, i))
        self.check(lambda x, y, i: x.index_select(1, i[0]) + x.flip(0, 1)[:, :4])
        e = kiln.expr(self.x)
        for join in ("cat", "stack"):
            got = getattr(kiln.Expr, join)([e, self.y, e + 1], 1).eval()
            torch.testing.assert_close(got, getattr(torch, join)([self.x, self.y, self.x + 1], 1))

    def test_dtypes(self):
        for dtype in ("float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "bool"):
            t = self.x.to(getattr(torch, dtype))
            got = (kiln.expr(t) * 2).eval()
            torch.testing.assert_close(got, t * 2)
            # As torch promotes.
            self.assertEqual(got.dtype, (t * 2).dtype)
        self.check(lambda x, y, i: (x.to(torch.bfloat16) @ y.to(torch.bfloat16).T).float(), rtol=2e-2, atol=1e-2)
        self.assertEqual(kiln.expr(self.x).to("float16").eval().dtype, torch.float16)

    def test_torch_wins_over_numpy(self):
        if not np: self.skipTest("needs numpy")
        # Where both are there, the result is a tensor.
        self.assertIsInstance((kiln.expr(self.x.numpy()) + self.y).eval(), torch.Tensor)

    def test_parameters_and_subclasses(self):
        p = torch.nn.Parameter(self.x.clone())
        got = (kiln.expr(p) + 1).eval()
        # Without a history: gradients are not taken through expressions.
        self.assertFalse(got.requires_grad)
        torch.testing.assert_close(got, self.x + 1)
        kind = type("Kind", (torch.Tensor, ), {})
        torch.testing.assert_close((kiln.expr(self.x.as_subclass(kind)) + 1).eval(), self.x + 1)
        # Negated lazily: what is read is not what stands in memory.
        negated = torch.complex(self.x, self.y).conj().imag
        torch.testing.assert_close((kiln.expr(negated) + 1).eval(), 1 - self.y)
        with self.assertRaisesRegex(ValueError, "on meta"): kiln.expr(torch.zeros(3, device="meta"))


if __name__ == "__main__":
    unittest.main()
