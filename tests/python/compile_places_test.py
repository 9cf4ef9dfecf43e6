"""kiln.compile of what puts elements at places, of windows, and of operations that are alone, beside eager PyTorch."""
import importlib.util
import sys
import unittest

import kiln

if not importlib.util.find_spec("torch"):
    print("skipped: this Python has no torch (KILN_TEST_PYTHON names another one)")
    sys.exit(0)

import torch
import torch.nn.functional as F

import kiln.dynamo
from kiln.dynamo import _build, _ops


def put(x, index, values):
    x = x * 1
    x[index] = values
    return x


# x and y are random matrices, i integers.
PLACES = {
    "index_add": lambda x, y, i: torch.zeros_like(x).index_add(0, i[:, 0] % 8, y * 2),
    "index_add along rows": lambda x, y, i: x.index_add(1, i[0] % 32, y.relu(), alpha=3),
    "index_add to what is needed again": lambda x, y, i: (lambda t: (t.index_add(0, i[:, 0] % 8, y), t))(x.sort()[0]),
    "index_add to other strides": lambda x, y, i: x.T.index_add(0, i[0] % 32, y.T * 2),
    "scatter_add": lambda x, y, i: torch.zeros(8, 32, dtype=x.dtype).scatter_add(1, i % 32, y * y),
    "scatter_add to a part": lambda x, y, i: x.scatter_add(0, i[:3, :5] % 8, y),
    "scatter of a number": lambda x, y, i: x.scatter(1, i[:, :2] * 0 + torch.arange(2), 7.5),
    "scatter": lambda x, y, i: x.scatter(1, torch.arange(4).expand(8, 4), y),
    "index_copy": lambda x, y, i: x.index_copy(1, torch.arange(3, 20, 5), y[:, :4] * 2),
    "places from the end": lambda x, y, i: put(x, torch.arange(4) - 4, y[:4] + 1),
    "places in two dimensions": lambda x, y, i: put(x, (torch.arange(4)[:, None], torch.arange(3) - 2), y[:4, :3]),
    "in the middle": lambda x, y, i: put(x.reshape(2, 4, 4, 8), (slice(None), torch.arange(2), torch.tensor([1, 3])),
                                         y[0, :8] * 2),
    "apart": lambda x, y, i: put(x.reshape(2, 4, 4, 8), (torch.arange(2), slice(None), torch.tensor([1, 3])),
                                 y[:2].reshape(2, 4, 8)),
    "sums": lambda x, y, i: x.index_put((i[0] % 8, i[1] % 32), y[0] * 2, accumulate=True),
    "sums of one element": lambda x, y, i: x.index_put((i[0] % 8, ), y[0, :1], accumulate=True),
    "of itself": lambda x, y, i: (lambda m: m.scatter(1, torch.argsort(x, stable=True), m))(x > 0),
    "sums of itself": lambda x, y, i: (lambda t: t.index_add(0, i[:, 0] % 8, t + 1))(x.sort().values),
    "counts": lambda x, y, i: torch.zeros(32, dtype=torch.int64).scatter_add(0, (i % 32).flatten(),
                                                                             torch.ones(256, dtype=torch.int64)),
    "histograms": lambda x, y, i: x.float().histc(10, -1, 2) + y.double().histc(10) + torch.ones(3).histc(10),
    "bools": lambda x, y, i: torch.zeros(8, 32, dtype=torch.bool).scatter(1, i[:, :4] % 32, True),
    "bytes": lambda x, y, i: torch.zeros(8, 32, dtype=torch.uint8).scatter(1, torch.arange(4).expand(8, 4),
                                                                           (i % 7).to(torch.uint8)),
}


def inputs(dtype=torch.float32):
    g = torch.Generator().manual_seed(1)
    return (torch.randn(8, 32, generator=g).to(dtype), torch.randn(8, 32, generator=g).to(dtype),
            torch.randint(0, 1000, (8, 32), generator=g))


def compiled(f, **options):
    torch._dynamo.reset()
    kiln.dynamo.clear_report()
    return kiln.compile(f, **options)


class Case(unittest.TestCase):

    def setUp(self):
        self.addCleanup(setattr, _ops, "cpus_are_gpus", False)
        _ops.cpus_are_gpus = True

    def check(self, f, *args, **tolerance):
        want, got = f(*args), compiled(f)(*args)
        torch.testing.assert_close(got, want, **tolerance)
        self.assertEqual([t.stride() for t in torch.utils._pytree.tree_leaves(got)],
                         [t.stride() for t in torch.utils._pytree.tree_leaves(want)])
        self.assertEqual([p.reason for p in kiln.dynamo.report().pieces if p.reason], [])


class Places(Case):

    def test_places(self):
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
            half = {"rtol": 2e-2, "atol": 5e-2} if dtype in (torch.bfloat16, torch.float16) else {}
            for name, f in PLACES.items():
                with self.subTest(name=name, dtype=dtype):
                    self.check(f, *inputs(dtype), **half)
                    left = {n for n, _ in kiln.dynamo.report().left}
                    self.assertFalse([n for n in left if "scatter" in n or "index" in n])

    def test_what_is_put_is_computed_on_the_way(self):
        x, y, i = inputs()
        for f in (lambda: torch.zeros(8, 32).index_add(0, i[:, 0] % 8, y * x[:, :1]),
                  lambda: torch.zeros(32).scatter_add(0, i[0] % 32, (y[0] - 1).relu())):
            self.check(f)
            self.assertEqual(kiln.dynamo.report().kernels, 1)

    def test_many_to_one_place(self):
        """By way of several copies."""
        n = 70000
        i, y = torch.randint(0, 5, (n, )), torch.randn(n, 3, dtype=torch.float64)
        for f in (lambda: torch.zeros(5, dtype=torch.int64).scatter_add(0, i, torch.ones(n, dtype=torch.int64)),
                  lambda: torch.ones(5, 3, dtype=torch.float64).index_add(0, i, y * 2),
                  lambda: torch.zeros(7, 2, dtype=torch.float64).index_put((i - 5, i % 2), y[:, 0], accumulate=True),
                  lambda: torch.zeros(5, dtype=torch.int32).scatter_add(0, i, (y[:, 0] > 0).int())):
            self.check(f)
            self.assertEqual(kiln.dynamo.report().fallbacks, 0)
            self.assertEqual({n for n, _ in kiln.dynamo.report().left}, set())

    def test_into_an_argument(self):
        """As a cache of keys: nothing else of it is touched, and what is put is computed by the kernel that puts it."""
        cache = torch.zeros(2, 4, 64, 16)

        def f(cache, at, k):
            cache[:, :, at] = k * 2
            return cache[:, :, 3:5].sum()

        k, at = torch.randn(2, 4, 3, 16), torch.tensor([3, 60, -1])
        want, wanted = cache.clone(), f(cache.clone(), at, k)
        f(want, at, k)
        g = compiled(f)
        with torch.no_grad(): got = g(cache, at, k)
        torch.testing.assert_close(cache, want)
        torch.testing.assert_close(got, wanted)
        self.assertEqual(kiln.dynamo.report().kernels, 2)
        # Part of a larger tensor, at an address that kernels do not take.
        large = torch.zeros(2 * 4 * 64 * 16 + 1)
        with torch.no_grad(): g(large[1:].view(2, 4, 64, 16), at, k)
        torch.testing.assert_close(large[1:].view(2, 4, 64, 16), want)

    def test_gradients(self):
        x, y, i = inputs()
        w = torch.randn(100, 32, requires_grad=True)
        for f in (lambda w: F.embedding(i % 100, w).tanh().sum(), lambda w: w.index_select(0, i[0] % 100).exp().sum(),
                  lambda w: w[i[0] % 100, i[1] % 32].square().sum(), lambda w: w.gather(0, i % 100).sin().sum()):
            want, = torch.autograd.grad(f(w), w)
            got, = torch.autograd.grad(compiled(f)(w), w)
            torch.testing.assert_close(got, want)
            self.assertFalse([n for n, _ in kiln.dynamo.report().left if "backward" in n or "index" in n])

    def test_bags_of_embeddings(self):
        w, i, shares = torch.randn(50, 8), torch.randint(0, 50, (6, 4)), torch.rand(6, 4)
        for options in ({"mode": "sum"}, {"mode": "mean"}, {"mode": "max"},
                        {"mode": "sum", "per_sample_weights": shares}):
            self.check(lambda: F.embedding_bag(i, w, **options))
            self.assertEqual((kiln.dynamo.report().kernels, dict(kiln.dynamo.report().left)), (1, {}))
        # Bags of other sizes, and gradients, are PyTorch's.
        at = torch.tensor([0, 3, 11])
        self.check(lambda: F.embedding_bag(i.flatten(), w, at) * 2)
        w.requires_grad_()
        f = lambda w: F.embedding_bag(i, w, mode="sum").sin().sum()
        torch.testing.assert_close(torch.autograd.grad(compiled(f)(w), w), torch.autograd.grad(f(w), w))

    def test_no_places(self):
        x, y, i = inputs()
        self.check(lambda: x.index_add(0, i[0, :0], y[:0]) * 2)
        self.check(lambda: torch.zeros(0, 4).index_put((i[0, :0], ), y[:1, :4]) * 2)

    def test_shapes_change(self):
        g = compiled(lambda n, i, y: torch.zeros(n, 8).index_add_(0, i, y * 2), dynamic=True)
        for n, m in ((4, 5), (9, 3), (17, 40)):
            i, y = torch.randint(0, n, (m, )), torch.randn(m, 8)
            torch.testing.assert_close(g(n, i, y), torch.zeros(n, 8).index_add_(0, i, y * 2))


class Windows(Case):

    def test_convolutions_of_channels_that_stay_apart(self):
        for x, w, options in (((2, 16, 14, 14), (16, 1, 7, 7), {"padding": 3}),
                              ((2, 8, 9, 10), (8, 1, 3, 3), {"padding": 1, "stride": 2}),
                              ((1, 4, 9, 10), (4, 1, 3, 2), {"dilation": 2}), ((2, 12, 9), (12, 1, 4), {"padding": 3}),
                              ((1, 2, 4, 5, 6), (2, 1, 3, 3, 3), {"padding": 1})):
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(x=x, w=w, dtype=dtype):
                    conv = (F.conv1d, F.conv2d, F.conv3d)[len(x) - 3]
                    f = lambda x, w, b: conv(x, w, b, groups=w.shape[0], **options).relu()
                    args = [torch.randn(x, dtype=dtype), torch.randn(w, dtype=dtype), torch.randn(w[0], dtype=dtype)]
                    self.check(f, *args, **({} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 5e-2}))
                    self.assertEqual(kiln.dynamo.report().kernels, 1)
                    if len(x) != 4: continue
                    args[0] = args[0].contiguous(memory_format=torch.channels_last)
                    self.check(f, *args, **({} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 5e-2}))


    def test_a_bias_shares_a_kernel(self):
        x, w, b = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4)
        for f, args in ((lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(), (x, w, b)),
                        (lambda x, w, b: F.conv_transpose2d(x, w, b).relu(), (x, w.transpose(0, 1).contiguous(), b)),
                        (lambda x, w, b: F.conv2d(x, w, b).relu(), (x.to(memory_format=torch.channels_last), w, b))):
            self.check(f, *args)
            report = kiln.dynamo.report()
            self.assertEqual((report.kernels, [n for n, _ in report.left]), (1, ["aten.convolution.default"]))
        w.requires_grad_(), b.requires_grad_()
        f = lambda w, b: F.conv2d(x, w, b).sigmoid().sum()
        torch.testing.assert_close(torch.autograd.grad(compiled(f)(w, b), (w, b)), torch.autograd.grad(f(w, b), (w, b)))


class Alone(Case):

    def test_operands_that_do_not_lie_as_the_result(self):
        x, y, i = inputs()
        for f in (lambda: x.unfold(1, 5, 3) * y[0, :5], lambda: x + y[0], lambda: x * y.double(),
                  lambda: x.reshape(16, 16) + y.reshape(16, 16).T, lambda: x[i[:, 0] % 8], lambda: F.pad(x, (1, 2)),
                  lambda: x.roll(3, 1)):
            self.check(f)
            self.assertEqual(kiln.dynamo.report().left, {})
        for f in (lambda: x + y, lambda: x.T * y.T, lambda: x * 2):
            self.check(f)
            self.assertEqual(kiln.dynamo.report().covered, 0)


class Fulls(Case):

    def test_what_is_made_for_its_shape_alone(self):
        x = inputs()[0]
        self.check(lambda: torch.zeros_like(x.sort().values) + (x * 2).relu())
        self.assertEqual(kiln.dynamo.report().left, {})

    def test_pieces_that_pytorch_computes(self):
        """A tensor of one number is there too."""

        def fails(self, arguments):
            raise _build.Unsupported("nothing today")

        x = inputs()[0]
        self.addCleanup(setattr, _build.Builder, "_recipe", _build.Builder._recipe)
        _build.Builder._recipe = fails
        for f in (lambda x: torch.zeros_like((x * 2).exp()) + x.relu(), lambda x: (x.T * 2) * torch.ones_like(x.T)):
            with self.assertWarnsRegex(RuntimeWarning, "nothing today"): got = compiled(f)(x)
            torch.testing.assert_close(got, f(x))


if __name__ == "__main__":
    unittest.main()
