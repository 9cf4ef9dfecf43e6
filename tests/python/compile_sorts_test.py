"""Sorts of kiln.compile, whose kernels run on GPUs, on the CPU."""
import importlib.util
import sys
import unittest

import kiln

if not importlib.util.find_spec("torch"):
    print("skipped: this Python has no torch (KILN_TEST_PYTHON names another one)")
    sys.exit(0)

import torch

import kiln.dynamo
from kiln.dynamo import _ops, _sorts

SHAPES = ((5, ), (7, 33), (2, 3, 257), (3, 700), (2, 1025), (4, 1), (100, 8), (3, 3000), (2, 20000))


def drawn(shape, dtype):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))) * 20
    x = (x.abs() if dtype == torch.uint8 else x).to(dtype)
    if dtype.is_floating_point:
        special = (float("nan"), 0.0, -0.0, float("inf"), -float("inf"))
        for k, value in enumerate(special): x.view(-1)[k::11] = value
    return x


class Sorts(unittest.TestCase):

    def setUp(self):
        self.addCleanup(setattr, _ops, "cpus_are_gpus", False)
        _ops.cpus_are_gpus = True

    def test_rows(self):
        """NaN is the largest, -0 and 0 are equal and keep their signs."""
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int8,
                      torch.uint8):
            for shape in SHAPES:
                x = drawn(shape, dtype)
                for descending in (False, True):
                    want, places = x.sort(dim=-1, descending=descending, stable=True)
                    got, found = _sorts.sort(x, stable=True, descending=descending)
                    torch.testing.assert_close(found, places)
                    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
                    torch.testing.assert_close(got.double().signbit(), want.double().signbit())
                    k = min(3, shape[-1])
                    top, at = _sorts.topk(x, k, -1, descending)
                    torch.testing.assert_close(top, want[..., :k], rtol=0, atol=0, equal_nan=True)
                    if dtype not in (torch.float32, torch.float16, torch.int64): continue
                    # Halves of the pairs: of values that need not be stable, -0 and 0 may change places.
                    for stable in (False, True):
                        half = _sorts.half_of_sort(x, -1, descending, stable, 0)
                        self.assertIsNone(half[1])
                        torch.testing.assert_close(half[0], want, rtol=0, atol=0, equal_nan=True)
                        if stable: torch.testing.assert_close(half[0].double().signbit(), want.double().signbit())
                        half = _sorts.half_of_sort(x, -1, descending, stable, 1)
                        self.assertIsNone(half[0])
                        torch.testing.assert_close(half[1], places)
                    torch.testing.assert_close(_sorts.half_of_topk(x, k, -1, descending, 0)[0], want[..., :k], rtol=0,
                                               atol=0, equal_nan=True)
                    torch.testing.assert_close(_sorts.half_of_topk(x, k, -1, descending, 1)[1], at)

    def test_elements_of_a_rank(self):
        for shape in ((5, 300), (40, 9000), (4, 20), (300, 5)):
            x = torch.randn(shape)
            x[1, 3] = float("nan")
            for dim in (0, 1):
                for keepdim in (False, True):
                    torch.testing.assert_close(_sorts.median(x, dim, keepdim), tuple(x.median(dim, keepdim)),
                                               equal_nan=True)
                    torch.testing.assert_close(_sorts.kthvalue(x, 2, dim, keepdim), tuple(x.kthvalue(2, dim, keepdim)),
                                               equal_nan=True)

    def test_running_logarithms_of_sums(self):
        for shape in ((5, 300), (40, 9000), (4, 3, 20), (70, )):
            x = drawn(shape, torch.float32).nan_to_num(nan=-1)
            for dim in range(len(shape)):
                torch._dynamo.reset()
                kiln.dynamo.clear_report()
                f = lambda x: x.logcumsumexp(dim)
                torch.testing.assert_close(kiln.compile(f)(x), f(x))
                self.assertEqual(set(kiln.dynamo.report().left), set())

    def test_histograms_in_known_bins(self):
        for shape in ((5, 300), (70000, ), (1, )):
            x = drawn(shape, torch.float32)
            for f in (lambda x: x.histc(10, -3, 3), lambda x: (x * 2).histc(256, -1, 40.5) + 1,
                      lambda x: x[..., ::2].histc(1024, -20, 20), lambda x: x.histc(7, 100, 101)):
                torch._dynamo.reset()
                kiln.dynamo.clear_report()
                torch.testing.assert_close(kiln.compile(f, dynamic=False)(x), f(x), rtol=0, atol=0)
                self.assertEqual({n for n, _ in kiln.dynamo.report().left if "add" not in n and "mul" not in n}, set())

    def test_in_functions(self):
        x = drawn((6, 400), torch.float32)
        for f in (lambda x: (x * 2).sort(stable=True), lambda x: x.sort(dim=0, stable=True), lambda x: x.sort()[0] + 1,
                  lambda x: x.argsort(stable=True, descending=True) + 1,
                  lambda x: x.sort(dim=1, descending=True)[0] + 1, lambda x: x.T.contiguous().topk(3, 0)[0] * 2,
                  # Which of equal elements are taken is not said: what is at the places.
                  lambda x: x.T.gather(0, x.T.contiguous().topk(3, 0, False)[1]),
                  lambda x: x.gather(1, x.topk(5, 1, sorted=False)[1]), lambda x: x.sort(0, descending=True)[0] * 2,
                  lambda x: x[:, ::3].sort()[0] + 1, lambda x: (x * 2).sort()[0].add_(x),
                  lambda x: x.nan_to_num().median(-1)[0] * 2, lambda x: x.kthvalue(7, keepdim=True)[0] * 2,
                  lambda x: x.nan_to_num().quantile(0.3, 1)):
            torch._dynamo.reset()
            kiln.dynamo.clear_report()
            want, got = f(x), kiln.compile(f)(x)
            torch.testing.assert_close(got, want, equal_nan=True)
            self.assertEqual({n for n, _ in kiln.dynamo.report().left if "add" not in n and "mul" not in n}, set())

    def test_no_elements_and_one(self):
        x = drawn((6, 400), torch.float32)
        for f in (lambda x: (x[:, :0].sort()[0] + 1, x[:0].sort()[1] + 1), lambda x: x[:, :1].sort()[0] + 1,
                  lambda x: x[:, :1].sort()[1] + 1, lambda x: x[:0].topk(3)[0] + 1, lambda x: x.topk(0)[1] + 1):
            torch._dynamo.reset()
            torch.testing.assert_close(kiln.compile(f)(x), f(x), equal_nan=True)

    def test_halves_of_any_size(self):
        x = drawn((6, 400), torch.float32)
        for f in (lambda x: x.sort()[0] * 2, lambda x: x.sort(descending=True)[0] * 2,
                  lambda x: x.gather(-1, x.argsort()) * 2, lambda x: x.topk(3, sorted=False)[0] * 2,
                  lambda x: x.gather(-1, x.topk(3)[1]) * 2):
            torch._dynamo.reset()
            g = kiln.compile(f, dynamic=True)
            for given in (x, x[:, :17], x.T.contiguous().T[:3], x[:, 5:].T, x[:, :5], x.repeat(1, 3)):
                torch.testing.assert_close(g(given), f(given), equal_nan=True)

    def test_sizes_and_strides_that_are_pytorchs(self):
        x = drawn((6, 400), torch.float32)
        g = kiln.compile(lambda x: x.sort(dim=-1, stable=True).values * 2 + 1, dynamic=True)
        for given in (x, x[:, :17], x.T, x[:0]):
            want = given.sort(dim=-1, stable=True).values * 2 + 1
            got = g(given)
            torch.testing.assert_close(got, want, equal_nan=True)
            self.assertEqual(got.stride(), want.stride())


if __name__ == "__main__":
    unittest.main()
