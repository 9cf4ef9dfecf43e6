"""Arguments that kernels and expressions refuse, since they would take them for something else."""
import importlib.util
import sys
import unittest
import warnings

import kiln
import kiln.language as tl

np = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None
torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
if not np and not torch:
    print("skipped: this Python has neither numpy nor torch (KILN_TEST_PYTHON names another one)")
    sys.exit(0)


@kiln.jit
def plus_one(x, out, n, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@kiln.jit
def put(out, v):
    tl.store(out, v)


@kiln.jit
def put_real(out, v: tl.float32):
    tl.store(out, v)


@kiln.jit
def put_wide(out, v: tl.int64):
    tl.store(out, v)


@unittest.skipUnless(np, "no numpy")
class Numpy(unittest.TestCase):

    def test_masked_arrays(self):
        masked, out = np.ma.masked_greater(np.arange(4, dtype=np.float32), 2), np.zeros(4, np.float32)
        for check in (False, True):
            for args in ((masked, out, 4), (out, masked, 4)):
                with self.assertRaisesRegex(TypeError, r"'plus_one': argument '(x|out)' is a masked array.*\.filled\("):
                    plus_one[1](*args, check=check)
        with self.assertRaisesRegex(TypeError, r"a masked array.*\.filled\("): kiln.expr(masked)
        with self.assertRaisesRegex(TypeError, r"a masked array.*\.filled\("): kiln.expr(out) + masked
        with self.assertRaisesRegex(TypeError, r"a masked array.*\.filled\("): kiln.expr(out).eval(out=masked)
        plus_one[1](masked.filled(7), out, 4)
        self.assertEqual(out.tolist(), [1, 2, 3, 8])

    def test_complex_numbers(self):
        out = np.zeros(1, np.float32)
        for value in (1j, np.complex64(1 + 2j), np.complex128(1)):
            with self.assertRaisesRegex(TypeError, "'put': argument 'v' got a complex"): put[1](out, value)
            with self.assertRaisesRegex(TypeError, "'put_real': argument 'v' is annotated f32 and got a complex"):
                put_real[1](out, value)
        with self.assertRaisesRegex(TypeError, "complex"): kiln.expr(out) + np.complex64(1j)
        for value in (np.datetime64("2020-01-01"), np.timedelta64(1), np.str_("a"), np.void(b"abcd")):
            with self.assertRaisesRegex(TypeError, "'put': argument 'v' got a (datetime64|timedelta64|str_|void);"):
                put[1](out, value)
        put[1](out, np.float64(2))
        self.assertEqual(out[0], 2)


    def test_bools(self):
        out = np.zeros(1, np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of numpy, where one of its bools is asked for its __index__
            for kernel in (put, put_real, put_wide):
                for value in (np.True_, np.False_):
                    for check in (False, True):
                        kernel[1](out, value, check=check)
                        self.assertEqual(out[0], value)

    def test_capsules(self):

        class Exporter:

            def __init__(self, capsule):
                self.capsule = capsule

            def __dlpack__(self, **_):
                return self.capsule

            def __dlpack_device__(self):
                return 1, 0

        out = np.zeros(1, np.float32)
        used = out.__dlpack__()
        np.from_dlpack(Exporter(used))
        for capsule in (used, 5):
            with self.assertRaisesRegex(TypeError, "'put': argument 'out' has a __dlpack__"):
                put[1](Exporter(capsule), 1)
            with self.assertRaisesRegex(TypeError, "Exporter whose __dlpack__"): kiln.expr(Exporter(capsule))


@unittest.skipUnless(torch, "no torch")
class Torch(unittest.TestCase):

    def test_layouts_without_strides(self):
        out = torch.zeros(4)
        for layout in (torch.sparse_coo, torch.sparse_csr):
            sparse = torch.eye(2).to_sparse(layout=layout)
            for check in (False, True):
                with self.assertRaisesRegex(ValueError, f"'plus_one': argument 'x' is a tensor of the layout {layout}"):
                    plus_one[1](sparse, out, 4, check=check)
            with self.assertRaisesRegex(ValueError, f"a tensor of the layout {layout}"): kiln.expr(sparse)

    def test_tensors_without_memory(self):
        out = torch.zeros(4)

        def batched(x):
            plus_one[1](x, out, 4)
            return x

        with self.assertRaisesRegex(ValueError, "'plus_one': argument 'x' is a tensor without memory"):
            torch.vmap(batched)(torch.ones(2, 4))
        with self.assertRaisesRegex(ValueError, "a tensor without memory"):
            torch.vmap(lambda x: (kiln.expr(x), x)[1])(torch.ones(2, 4))
        nested = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)])
        with self.assertRaisesRegex(ValueError, "a nested tensor"): kiln.expr(nested)
        nested = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)], layout=torch.jagged)
        for call in (lambda: plus_one[1](nested, out, 4), lambda: kiln.expr(nested)):
            with self.assertRaisesRegex(ValueError, "torch.jagged"): call()

    def test_storages(self):
        out = torch.zeros(4)
        for storage in (out.untyped_storage(), torch.storage.TypedStorage(wrap_storage=out.untyped_storage(),
                                                                          dtype=out.dtype, _internal=True)):
            for call in (lambda: plus_one[1](storage, out, 4), lambda: kiln.expr(storage)):
                with self.assertRaisesRegex(TypeError, "a (Unt|T)ypedStorage"): call()


class Launches(unittest.TestCase):

    def setUp(self):
        self.out = torch.zeros(4) if torch else np.zeros(4, np.float32)

    def test_options_that_do_not_fit(self):
        # In 32 bits this would be 4.
        for warps in (2**32 + 4, -2**32 + 4, 10**30):
            with self.assertRaisesRegex(OverflowError, f"the option num_warps must be from 1 to 32, got {warps}"):
                put[1](self.out, 2.0, num_warps=warps)

    def test_grids_that_do_not_fit(self):
        for grid in (10**30, (1, -10**30), lambda meta: 2**64):
            with self.assertRaisesRegex(OverflowError, "'put': a grid has at most 2147483647 programs along an axis"):
                put[grid](self.out, 2.0)

    def test_what_is_not_specialized(self):
        for chosen in ("v", 1):
            with self.assertRaisesRegex(TypeError, f"'put': do_not_specialize is a list .*, got {chosen!r}"):
                kiln.jit(put.fn, do_not_specialize=chosen)
        for chosen in ("V", 2, -1):
            with self.assertRaisesRegex(ValueError, f"no parameter by {chosen!r}; the parameters are out, v"):
                kiln.jit(put.fn, do_not_specialize=[chosen])
        kernel = kiln.jit(put.fn, do_not_specialize=["v", 0])
        kernel[1](self.out, 3)
        self.assertEqual(float(self.out[0]), 3)


if __name__ == "__main__":
    unittest.main()
