// What a GPU computes in another way for the sake of its memory, against the host, at odd sizes.
#include "tests/gpu/gpu_script.h"

namespace kiln::runtime {
namespace {

void run_beside_host(const Device& device, const std::string& text) {
  const std::string head = "import torch\ntorch.set_default_device(\"cpu\")\ntorch.manual_seed(7)\n";
  run_script(device, head + text);
}

// Casts to float8: every half and bfloat16, and floats around where they round up to what there is not.
TEST(GpuBesideHost, CastsToFloat8) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
bits = torch.arange(-32768, 32768).to(torch.int16)
near = torch.cat([torch.linspace(440, 490, 2001), torch.linspace(56000, 66000, 2001), torch.linspace(0, 0.01, 2001)])
special = torch.tensor([float("inf"), float("nan"), 1e30, -1e-30])
for x in (bits.view(torch.float16), bits.view(torch.bfloat16), torch.cat([near, -near, special])):
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        for make in (lambda t: t.to(dtype), lambda t: (t.float() * 1.0).to(dtype)):
            a, b = make(x).float(), make(x.cuda()).cpu().float()
            assert torch.equal(a.nan_to_num(12345.0), b.nan_to_num(12345.0)), (x.dtype, dtype)
large = torch.full((5001,), 1000.0).cuda()
for sign, byte in ((1.0, 127), (-1.0, 255)):
    assert ((large * sign).to(torch.float8_e4m3fn).view(torch.uint8) == byte).all(), "a NaN keeps the sign"
)");
}

// Variances of many columns, which are taken in parts of the rows.
TEST(GpuBesideHost, VariancesOfManyColumns) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
for m, n in ((2639, 12624), (1021, 16384), (2053, 9001), (5000, 3001)):
    x = torch.randn(m, n) * 2 + 100
    x[5, 3], x[m - 1, 7], x[0, n - 1] = float("nan"), float("inf"), float("-inf")
    assert torch.allclose(x.double().var(0), x.cuda().var(0).cpu().double(), 2e-3, 1e-4, True), (m, n)
)");
}

// Transforms of odd lengths, and of even ones without a fast way.
TEST(GpuBesideHost, TransformsOfOddLengths) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
for n in (1, 3, 17, 331, 1061, 2062, 997, 6131):
    for m in (1, 70):
        x = torch.randn(m, n)
        want, got = torch.fft.rfft(x.double()), torch.fft.rfft(x.cuda()).cpu()
        assert got.shape == want.shape, (m, n)
        assert (want - got).abs().max().item() < 1e-5 * max(want.abs().max().item(), 1.0), (m, n)
        assert torch.allclose(torch.fft.irfft(torch.fft.rfft(x.cuda()), n).cpu(), x, 1e-4, 1e-4), (m, n)
)");
}

// Real rows that are transformed in pairs: neither sees the other's rounding, nor its NaN.
TEST(GpuBesideHost, TransformsOfManyOddRows) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
for m, n in ((1039, 1015), (1200, 1001), (67, 16055), (66, 16033), (34000, 31)):
    x = torch.randn(m, n)
    x[0], x[2], x[3], x[m - 1, 5] = x[0] * 1e-15, x[2] * 1e15, 0, float("nan")
    want, got = torch.fft.rfft(x.double()), torch.fft.rfft(x.cuda()).cpu()
    norm = want.abs().square().sum(1, keepdim=True).sqrt()
    error = (want - got).abs() / torch.where(norm == 0, 1.0, norm)
    assert bool(error[:-1].max() < 1e-6), (m, n, error[:-1].max())
    assert bool(got.real[-1].isnan().all() & got.imag[-1].isnan().all()), (m, n)
)");
}

// Tensors whose rows begin anywhere beside the large tiles of a product.
TEST(GpuBesideHost, OddRowsBesideAProduct) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
for m, n, k in ((7020, 429, 429), (5001, 1061, 77), (1999, 431, 40)):
    for dtype, error in ((torch.float16, 0.005), (torch.bfloat16, 0.03)):
        x, w, b = torch.randn(m, k).to(dtype), (torch.randn(n, k) / k ** 0.5).to(dtype), torch.randn(n).to(dtype)
        y, z = torch.randn(m, n).to(dtype), torch.randn(m, n).to(dtype)
        f = lambda x, w, b, y, z: y * torch.nn.functional.linear(x, w, b) + z
        want = f(*[t.double() for t in (x, w, b, y, z)])
        got = f(*[t.cuda() for t in (x, w, b, y, z)]).cpu().double()
        assert (want - got).abs().max().item() < error * want.abs().max().item(), (m, n, k, dtype)
)");
}

// Values that are added at few places: by sums of each program, or one by one.
TEST(GpuBesideHost, FewPlacesOfManyValues) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
for places in (1, 33, 331, 1024):
    for each in (1, 17, 79, 80, 333):
        count = places * each - each // 2
        at, x = torch.randint(0, places, (count,)), torch.randint(-9, 10, (count,)).float()
        want, got = (torch.zeros(places, device=d).scatter_add(0, at.to(d), x.to(d)).cpu() for d in ("cpu", "cuda"))
        assert torch.equal(want, got), (places, each)
)");
}

// Running sums of columns at odd addresses, alone and between other dimensions.
TEST(GpuBesideHost, RunningSumsOfColumns) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
for shape, dim in (((3000, 7001), 0), ((2501, 1301), 0), ((2, 1500, 2333), 1), ((3000, 7001), 1)):
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        x = torch.randint(-2, 3, shape).to(dtype)
        want, got = x.double().cumsum(dim), x.cuda().cumsum(dim).cpu().double()
        assert torch.allclose(want, got, 1e-2 if dtype is torch.bfloat16 else 0, 0), (shape, dim, dtype)
)");
}

// Running logarithms of sums of exponentials, along rows, down columns, and between other dimensions.
TEST(GpuBesideHost, RunningLogarithmsOfSums) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
for shape, dim in (((4096, 2000), 0), ((3001, 701), 0), ((700, 3), 0), ((3, 900, 33), 1), ((2, 1, 40), 1),
                   ((200001,), 0), ((5, 9001), 1), ((2100001,), 0), ((9, 240001), 1), ((2, 1100, 1001), 1)):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = (torch.randn(shape) * (40 if len(shape) == 1 else 3)).to(dtype).flatten()
        x[7], x[x.numel() // 2] = float("-inf"), float("nan")
        x = x.view(shape)
        want, got = torch.logcumsumexp(x.double(), dim), torch.logcumsumexp(x.cuda(), dim).cpu().double()
        assert torch.allclose(want, got, 1e-2 if dtype is torch.bfloat16 else 1e-5, 1e-5, True), (shape, dim, dtype)
)");
}

// Images with the channels first, whose rows are whole tiles and not.
TEST(GpuBesideHost, ImagesWithTheChannelsFirst) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
for b, s in ((9, 224), (3, 113), (1, 32), (2, 64)):
    image = torch.randint(0, 256, (b, s, s, 3)).to(torch.uint8)
    mean, std = torch.rand(3), torch.rand(3) + 0.5
    f = lambda i, m, d: ((i.float() / 255 - m) / d).permute(0, 3, 1, 2).contiguous()
    assert torch.equal(f(image, mean, std), f(image.cuda(), mean.cuda(), std.cuda()).cpu()), (b, s)
)");
}

// Little that is looked up several times.
TEST(GpuBesideHost, LittleThatIsLookedUpOften) {
  GPU_OR_SKIP(device);
  run_beside_host(device, R"(
n, e = 331, 5683
src, dst, w = torch.randint(0, n, (e,)), torch.randint(0, n, (e,)), torch.rand(e)
def weights(src, dst, w):
    found = torch.zeros(n, device=w.device).index_put((dst % 17,), torch.ones((), device=w.device)).pow(-0.5)
    found = found.masked_fill(found == float("inf"), 0)
    return found[src] * w * found[dst]
assert torch.equal(weights(src, dst, w), weights(src.cuda(), dst.cuda(), w.cuda()).cpu())
)");
}

}  // namespace
}  // namespace kiln::runtime
