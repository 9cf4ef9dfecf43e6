// Sorts of which one half is read, and takes that become views, on a real GPU beside the host.
#include "tests/gpu/gpu_script.h"

namespace kiln::runtime {
namespace {

/// After a few functions that all of these scripts use.
void run_sorts(const Device& device, const std::string& text) {
  const std::string common = R"(
import random
import torch

seed = random.randrange(1 << 30)
random.seed(seed)
torch.manual_seed(seed)
HERE = torch.zeros(1).device


def poison(bytes):
    """Memory that is given back full of what is no result, for the next that is as large."""
    for n in (bytes, 2 * bytes, 8 * bytes):
        torch.full((max(1, n),), 0x55, dtype=torch.uint8)
    torch.cuda.synchronize()


def same(got, want, where, signs=False):
    got = got.cpu()
    assert got.dtype == want.dtype and got.shape == want.shape, where + " %s %s" % (got.shape, want.shape)
    if got.is_floating_point():
        got, want = got.double(), want.double()
        if signs:
            assert torch.equal(got.signbit() & ~got.isnan(), want.signbit() & ~want.isnan()), where
        assert torch.equal(got.isnan(), want.isnan()), where
        got, want = got.nan_to_num(7.5, 1e300, -1e300), want.nan_to_num(7.5, 1e300, -1e300)
    assert torch.equal(got, want), where


def drawn(shape, dtype):
    if not dtype.is_floating_point:
        span = random.choice([3, 100, 100, 2**40 if dtype is torch.int64 else 100])
        return torch.randint(0 if dtype is torch.uint8 else -span, span, shape, device="cpu").to(dtype)
    x = torch.randn(shape, device="cpu").mul(random.choice([1, 50]))
    if random.random() < 0.5:
        x = x.round()
    flat = x.reshape(-1)
    for k, value in enumerate((float("nan"), 0.0, -0.0, float("inf"), -float("inf"))):
        flat[k::23] = value
    return flat.reshape(shape).to(dtype)

)";
  run_script(device, common + text);
}

TEST(GpuSort, HalvesAreThoseOfTheHost) {
  GPU_OR_SKIP(device);
  run_sorts(device, R"(
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.int16, torch.uint8)
WIDTHS = (1, 2, 4, 5, 8, 9, 31, 33, 63, 64, 65, 127, 200, 255, 256, 257, 300, 511, 512, 513, 700, 1000, 1024, 1025, 2047,
          8192, 8193, 20000)
for i, width in enumerate(random.sample(WIDTHS, 9)):  # each is some five kernels to compile
    for dtype in (torch.float32, DTYPES[(seed + i) % len(DTYPES)]):
        rows = random.choice([1, 3, 37, 300]) if width < 2000 else random.choice([1, 5])
        beside = random.choice([1, 1, 3, 16])
        shape = (rows, width) if beside == 1 else (random.choice([1, 3]), width, beside)
        x, down = drawn(shape, dtype), random.random() < 0.5
        where = "seed %d: %s of %s, descending=%s" % (seed, shape, dtype, down)
        values, places = x.sort(1, down, stable=True)
        on = x.to(HERE)
        size = x.numel() * x.element_size()
        for stable in (False, True):
            for again in range(2):
                poison(size)
                same(on.sort(1, down, stable=stable)[0], values, where + " values alone", stable)
                poison(size)
                same(on.sort(1, down, stable=stable)[1], places, where + " places alone")
            both = on.sort(1, down, stable=stable)
            same(both[1], places, where + " places of both")
            same(both[0], values, where + " values of both", True)
        k = random.choice([1, width // 2, width]) or 1
        values, places = x.topk(k, 1, down)
        same(on.topk(k, 1, down)[0], values, where + " topk alone %d" % k)
        same(on.topk(k, 1, down, sorted=False)[1], places, where + " topk's places alone %d" % k)
        k = random.randrange(width) + 1
        values, places = x.kthvalue(k, 1)
        same(on.kthvalue(k, 1)[0], values, where + " kthvalue %d" % k)
        same(on.kthvalue(k, 1)[1], places, where + " kthvalue's place %d" % k)
        values, places = x.median(1)
        same(on.median(1)[0], values, where + " median")
        same(on.median(1)[1], places, where + " median's place")
)");
}

TEST(GpuSort, LateHalvesAreOfWhatWasSorted) {
  GPU_OR_SKIP(device);
  run_sorts(device, R"(
for shape in ((7, 33), (300, 64), (129, 255), (5, 1000), (3, 3000), (2, 9001)):
    cpu = drawn(shape, random.choice([torch.float32, torch.int64, torch.float16]))
    values, places = cpu.sort(-1, stable=True)
    where = "seed %d: %s of %s" % (seed, shape, cpu.dtype)
    x = cpu.to(HERE)
    v, i = x.sort(-1)
    same(i, places, where)
    x.zero_()
    same(v, values, where)
    for change in (lambda x: x.zero_(), lambda x: x.add_(1), lambda x: x.copy_(x.flip(-1)), lambda x: x[0].fill_(3),
                   lambda x: x.view(-1)[5:].mul_(2)):
        x = cpu.to(HERE)
        v, i = x.sort(-1)
        change(x)
        same(v, values, where)
        same(i, places, where)
        x = cpu.to(HERE)
        v = x.sort(-1)[0]
        change(x)
        same(v, values, where)
        x = cpu.to(HERE)
        i = x.argsort(-1)
        change(x)
        same(i, places, where)
    # Halves that change are not those of the other, nor the input.
    x = cpu.to(HERE)
    v, i = x.sort(-1)
    v += 1
    same(i, places, where)
    same(v, values + 1, where)
    same(x, cpu, where)
    v, i = x.sort(-1)
    v.zero_()
    same(i, places, where)
    x[:] = x.sort(-1)[0]
    same(x, values, where)
    # Of a view, in another order in memory, of what is pending, on another stream.
    x = torch.cat([cpu, cpu], 1).to(HERE)
    v = x[:, shape[1] :].sort(-1)[0]
    x.zero_()
    same(v, values, where)
    x = cpu.T.contiguous().to(HERE).T
    v, i = x.sort(-1)
    same(v, values, where)
    same(i, places, where)
    x = cpu.to(HERE)
    many = [x.sort(-1) for _ in range(40)]
    same(many[39][0], values, where)
    x.zero_()
    for v, i in many[::7]:
        same(i, places, where)
        same(v, values, where)
    x = cpu.to(HERE)
    with torch.cuda.stream(torch.cuda.Stream()):
        v, i = x.sort(-1)
    torch.cuda.synchronize()
    x.zero_()
    same(v, values, where)
    same(i, places, where)
)");
}

TEST(GpuSort, TakesThatBecomeViewsReadWhatTheyTook) {
  GPU_OR_SKIP(device);
  run_sorts(device, R"(
def windows(x, length, hop, begin):
    count = (x.shape[-1] - length - begin) // hop + 1
    at = begin + torch.arange(count, device=x.device)[:, None] * hop + torch.arange(length, device=x.device)
    return x[..., at]


def energy(x, length, hop, begin):
    return (windows(x, length, hop, begin) ** 2).mean(-1)


def greatest(x, length, hop, begin):
    return windows(x, length, hop, begin).amax(-1) + 1


def rolled(x, length, hop, begin):
    rows, width = x.shape[0] // length * length, x.shape[1] // hop * hop
    y = x[:rows, :width].reshape(rows // length, length, width // hop, hop).transpose(1, 2)
    y = (y * 2).transpose(1, 2).reshape(rows, width)
    return torch.roll(y, (begin, begin), (0, 1))


def boxes(x, length, hop, begin):
    i = torch.arange(x.shape[0], device=x.device)
    low = (i * 7 // (length + 1) - begin).clamp(0, x.shape[1])
    high = (low + hop + i % 5).clamp(0, x.shape[1])
    j = torch.arange(x.shape[1], device=x.device)
    inside = (j >= low[:, None]) & (j < high[:, None])
    share = 1 - (high - low).to(x.dtype) / x.shape[1]
    return torch.where(inside, x.flip(0), x), share[:, None] * x


for f in (energy, greatest, rolled, boxes):
    for _ in range(12):
        shape = (random.randrange(1, 300), random.randrange(40, 700))
        cpu = torch.randint(-9, 10, shape, device="cpu").float()
        length, hop, begin = random.randrange(1, 20), random.randrange(1, 12), random.randrange(0, 9)
        where = "seed %d: %s of %s" % (seed, f, (shape, length, hop, begin))
        if f is rolled and (shape[0] < length or shape[1] < hop):
            continue
        want, x = f(cpu, length, hop, begin), cpu.to(HERE)
        want = want if isinstance(want, tuple) else (want,)
        for again in range(2):
            poison(4 * want[0].numel())
            got = f(x, length, hop, begin)
            got = got if isinstance(got, tuple) else (got,)
            for a, b in zip(got, want):
                assert a.shape == b.shape and (a.cpu() - b).abs().max() <= 1e-4 * max(1, b.abs().max()), where
        # What was taken lazily is of the elements from before a change.
        got = f(x, length, hop, begin)
        x.zero_()
        got = got if isinstance(got, tuple) else (got,)
        for a, b in zip(got, want):
            assert (a.cpu() - b).abs().max() <= 1e-4 * max(1, b.abs().max()), where
)");
}

// The places of a sort are an order, and its own order is put instead of sorted.
TEST(GpuSort, OrdersOfOrdersAreTheirInverse) {
  GPU_OR_SKIP(device);
  run_sorts(device, R"(
for shape in ((7, 33), (300, 64), (129, 255), (5, 1000), (3, 3000), (2, 9001), (4, 70, 3)):
    cpu = drawn(shape, random.choice([torch.float32, torch.int64, torch.float16]))
    dim = random.randrange(len(shape))
    where = "seed %d: %s of %s along %d" % (seed, shape, cpu.dtype, dim)
    want = cpu.argsort(dim, stable=True).argsort(dim)
    x = cpu.to(HERE)
    same(x.argsort(dim, stable=True).argsort(dim), want, where)
    poison(8 * cpu.numel())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ranks = x.argsort(dim, stable=True).argsort(dim).float() / 7
    x.copy_(cpu.flip(dim))
    graph.replay()
    same(ranks, cpu.flip(dim).argsort(dim, stable=True).argsort(dim).float() / 7, where)
)");
}

// Constants of a graph, and rows at a place that it computes.
TEST(GpuSort, GraphsTakeConstantsAndComputedPlaces) {
  GPU_OR_SKIP(device);
  run_sorts(device, R"(
def f(x, y):
    here = x.device
    signs = torch.tensor([1.0, -1.0, 0.1], device=here)[:, None] * torch.tensor([[3, -2**40], [5, 7]], device=here)[0, 0]
    best = x[:, 0].argmax()
    return x[best] * 2, y[best, 1:], (x[:3] * signs), y[:, best % y.shape[1]], best


for rows, columns in ((3, 5), (37, 129), (1000, 33), (5, 5003)):
    a, b = torch.randn(rows, columns, device="cpu"), torch.randn(rows, columns, 3, device="cpu")
    x, y = a.to(HERE), b.to(HERE)
    for g, w in zip(f(x, y), f(a, b)):
        same(g, w, "seed %d: %s" % (seed, (rows, columns)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = f(x, y)
    for _ in range(2):
        a, b = a.flip(0) + 1, b.flip(1) - 1
        x.copy_(a)
        y.copy_(b)
        graph.replay()
        for g, w in zip(got, f(a, b)):
            same(g, w, "seed %d: %s" % (seed, (rows, columns)))
)");
}

// Tables of positions, of which parts are put before they are read.
TEST(GpuSort, PartsOfTablesAreThoseInMemory) {
  GPU_OR_SKIP(device);
  run_sorts(device, R"(
def table(n, e, where):
    at = torch.arange(n, dtype=torch.float32, device=where)[:, None]
    steps = torch.arange(0, 2 * e, 2, dtype=torch.float32, device=where)
    t = torch.zeros(n, 2 * e, device=where)
    t[:, 0::2] = at * steps
    t[:, 1::2] = at - steps
    t[0] *= 0.5
    t[1:, -1] += 3
    return t


for n, e in ((5, 3), (129, 33), (1000, 64)):
    x = drawn((n, 2 * e), torch.float32)
    same(x.to(HERE) + table(n, e, HERE), x + table(n, e, "cpu"), "seed %d: %s" % (seed, (n, e)))
)");
}

}  // namespace
}  // namespace kiln::runtime
