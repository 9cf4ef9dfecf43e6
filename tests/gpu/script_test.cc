// Scripts on a real GPU, with their own asserts.
#include "tests/gpu/gpu_script.h"

namespace kiln::runtime {
namespace {

TEST(GpuScript, PinnedCopiesKeepTheOrderInMemory) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
x = torch.arange(12, device="cpu").reshape(3, 4).float()
for view in (x, x.T, x[:, ::2]):
    pinned = view.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned()
    assert pinned.stride() == (view.stride() if view.numel() == 12 else (2, 1)), pinned.stride()
    assert torch.equal(pinned, view) and torch.equal(pinned.cuda().cpu(), view)
)");
}

// Against float64, whose quotients and roots rounded once more are those of float32.
TEST(GpuScript, DivisionAndRootsAreCorrectlyRounded) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def divide_all(wrong_ptr, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    # Every mantissa of a divisor, under numerators of every kind.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = (i | 0x3F800000).to(tl.float32, bitcast=True)
    wrong = tl.zeros([BLOCK], dtype=tl.int32)
    for k in range(COUNT):
        mantissa = ((i * -1640531535 + k * 40503) >> 7) & 0x7FFFFF
        mantissa = tl.where(k == 0, 0, tl.where(k == 1, 0x7FFFFF, tl.where(k == 2, i, tl.where(k == 3, i - 1, mantissa))))
        a = ((mantissa & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
        a = tl.where(k % 2 == 0, a, -a * 1048576.0)
        exact = (a.to(tl.float64) / b.to(tl.float64)).to(tl.float32)
        wrong += (libdevice.div_rn(a, b) != exact).to(tl.int32)
    tl.atomic_add(wrong_ptr, tl.sum(wrong, axis=0))


@triton.jit
def divide_checked(a, b, inside, wrong_ptr):
    exact = (a.to(tl.float64) / b.to(tl.float64)).to(tl.float32)
    q = libdevice.div_rn(a, b)
    same = (q.to(tl.int32, bitcast=True) == exact.to(tl.int32, bitcast=True)) | ((q != q) & (exact != exact))
    tl.atomic_add(wrong_ptr, tl.sum((inside & (same == 0)).to(tl.int32), axis=0))


@triton.jit
def divide_rare(a_ptr, b_ptr, wrong_ptr, n, BLOCK: tl.constexpr):
    # Zeros, infinities, NaN, denormals, the largest numbers: each by each.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n * n
    a = tl.load(a_ptr + i // n, mask=inside, other=1.0)
    b = tl.load(b_ptr + i % n, mask=inside, other=1.0)
    divide_checked(a, b, inside, wrong_ptr)


@triton.jit
def root_all(wrong_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = (i + 0x3F800000).to(tl.float32, bitcast=True)
    exact = libdevice.sqrt_rn(x.to(tl.float64)).to(tl.float32)
    tl.atomic_add(wrong_ptr, tl.sum((libdevice.sqrt_rn(x) != exact).to(tl.int32), axis=0))


@triton.jit
def divide_integers(a_ptr, b_ptr, wrong_ptr, rows, n, BLOCK: tl.constexpr):
    # Each integer by each number, and by one that all share.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < rows * n
    a = tl.load(a_ptr + i // n, mask=inside, other=1).to(tl.float32)
    divide_checked(a, tl.load(b_ptr + i % n, mask=inside, other=1.0), inside, wrong_ptr)
    divide_checked(a, tl.full([BLOCK], -0.3, tl.float32), inside, wrong_ptr)


@triton.jit
def divide_rare_by(a_ptr, b_ptr, wrong_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    divide_checked(tl.load(a_ptr + i // n), tl.load(b_ptr + i % n), i >= 0, wrong_ptr)


@triton.jit
def divide_rows(a_ptr, b_ptr, wrong_ptr, BLOCK: tl.constexpr):
    # By one number, whose reciprocal all share.
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    divide_checked(tl.load(a_ptr + i), tl.load(b_ptr + tl.program_id(0)), i >= 0, wrong_ptr)


wrong = torch.zeros(3, dtype=torch.int32)
divide_all[((1 << 23) // 1024,)](wrong, 64, BLOCK=1024)
inf = float("inf")
rare = torch.tensor([0.0, -0.0, 1.0, -1.0, 3.0, inf, -inf, float("nan"), 1e-45, -3e-45, 1e-40, 1.1754944e-38, 3.4028235e38,
                     -3.4028235e38, 8.6e-19, 8.7e-19, 1.1e18, 1.2e18, 1.9999999, 0.1])
n = rare.shape[0]
divide_rare[(1,)](rare, rare, wrong[1:], n, BLOCK=512)
for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32):
    last = torch.iinfo(dtype)
    a = torch.tensor([0, 1, 2, 3, 127, last.max, last.max - 1, last.min] + list(range(100)), dtype=dtype)
    for b in (rare, torch.randn(997), 255 * torch.rand(997)):
        grid = (triton.cdiv(a.shape[0] * b.shape[0], 1024),)
        divide_integers[grid](a, b, wrong[1:], a.shape[0], b.shape[0], BLOCK=1024)
# Any bits by any bits, and by numbers as far apart as quotients allow: elements of a matrix that sums normalize again and
# again are tiny, and their divisors are not.
torch.manual_seed(5)
for scale in (0, 40, 80, 98, 110):
    a = torch.randint(-2**31, 2**31 - 1, (4096,), dtype=torch.int32).view(torch.float32)
    b = torch.randint(-2**31, 2**31 - 1, (64,), dtype=torch.int32).view(torch.float32)
    if scale > 0:
        a, b = torch.randn(4096) * 2.0**-scale * torch.exp2(torch.randint(-12, 12, (4096,)).float()), torch.exp(16 * torch.randn(64))
    divide_rare_by[(a.shape[0] * b.shape[0] // 1024,)](a.cuda(), b.cuda(), wrong[1:], b.shape[0], BLOCK=1024)
    divide_rows[(b.shape[0], a.shape[0] // 1024)](a.cuda(), b.cuda(), wrong[1:], BLOCK=1024)
root_all[((1 << 24) // 1024,)](wrong[2:], BLOCK=1024)
assert wrong.tolist() == [0, 0, 0], wrong.tolist()
)");
}

// Integers truncate, the smallest one wraps, and by zero there is any value but no fault: with signs known and unknown.
TEST(GpuScript, IntegersDivideAsInC) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import triton
import triton.language as tl


@triton.jit
def divide(a_ptr, b_ptr, q_ptr, r_ptr, shared, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    # Each by each; by one that all share; numerators that cannot be negative, and 64-bit ones of 32 bits.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n * n
    a = tl.load(a_ptr + i // n, mask=inside, other=1)
    b = tl.load(b_ptr + i % n, mask=inside, other=1)
    if WIDE:
        a = a.to(tl.int64)
        b = b.to(tl.int64)
    tl.store(q_ptr + i, a // b, mask=inside)
    tl.store(r_ptr + i, a % b, mask=inside)
    shared = shared.to(a.dtype)
    i = i.to(a.dtype)
    tl.store(q_ptr + n * n + i, a // shared, mask=inside)
    tl.store(r_ptr + n * n + i, a % shared, mask=inside)
    tl.store(q_ptr + 2 * n * n + i, i // shared, mask=inside)
    tl.store(r_ptr + 2 * n * n + i, i % shared, mask=inside)


torch.manual_seed(13)
torch.set_default_device("cpu")
for dtype in (torch.int32, torch.uint32, torch.int64):
    low = 0 if dtype == torch.uint32 else -2**31
    high = 2**32 - 1 if dtype == torch.uint32 else 2**31 - 1
    rare = [0, 1, 2, 3, 7, 127, 128, 65535, 65536, high, high - 1, low, low + 1]
    rare += [] if low == 0 else [-1, -2, -3, -7, -128]
    wide = torch.cat([torch.tensor(rare, dtype=torch.int64), torch.randint(low, high, (40,), dtype=torch.int64),
                      torch.randint(low // 65536, 65536, (42,), dtype=torch.int64)])
    a, n = wide.to(dtype).cuda(), wide.shape[0]
    for shared in (5, 1, 640) + (() if low == 0 else (-3, -1)):
        for as_wide in (False, True):
            if as_wide and dtype != torch.int32:
                continue
            out = torch.int64 if as_wide else dtype
            q, r = torch.zeros((3, n, n), dtype=out, device="cuda"), torch.zeros((3, n, n), dtype=out, device="cuda")
            divide[(triton.cdiv(n * n, 256),)](a, a, q, r, shared, n, WIDE=as_wide, BLOCK=256)
            q, r = q.cpu().to(torch.int64), r.cpu().to(torch.int64)
            x, y = wide[:, None].expand(n, n), wide[None, :].expand(n, n)
            counts = torch.arange(n * n).reshape(n, n)
            divisors = torch.where(y == 0, 1, y)
            for k, (num, den, given) in enumerate(((x, divisors, y != 0), (x, torch.full_like(x, shared), x == x),
                                                   (counts, torch.full_like(x, shared), x == x))):
                want = torch.div(num, den, rounding_mode="trunc")
                rest = num - want * den
                if out == torch.int32:  # -2**31 // -1
                    want = want.to(torch.int32).to(torch.int64)
                assert torch.equal(torch.where(given, q[k], 0), torch.where(given, want, 0)), (dtype, shared, as_wide, k)
                assert torch.equal(torch.where(given, r[k], 0), torch.where(given, rest, 0)), (dtype, shared, as_wide, k)
)");
}

// Loops that wait for memory, with few programs and with many: lines are brought ahead up to the last iteration, and
// short branches are masks.
TEST(GpuScript, LoopsThatWaitForMemoryGiveTheSame) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import triton
import triton.language as tl


@triton.jit
def norms(x_ptr, scale_ptr, out_ptr, rows, n, stride, PER: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * PER
    cols = tl.arange(0, BLOCK)
    scale_ptr += first
    for row in range(first, tl.minimum(first + PER, rows)):
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + row, tl.sum(x * x, axis=0) * tl.load(scale_ptr))
        scale_ptr += 1


@triton.jit
def largest(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = float("-inf")
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.max(tl.load(x_ptr + row * n + cols, mask=cols < n, other=float("-inf")), axis=0))
    tl.store(out_ptr + row, best)


@triton.jit
def merge(x_ptr, used_ptr, out_ptr, n, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    used = tl.load(used_ptr + row)
    cols = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for split in range(0, SPLITS):
        if split < used:
            total = total * 0.5 + tl.load(x_ptr + (row * SPLITS + split) * n + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + row * n + cols, total, mask=cols < n)


torch.manual_seed(17)
torch.set_default_device("cpu")
for rows, n, per in ((1, 1, 4), (67, 1000, 7), (1000, 333, 2), (300, 2049, 40)):
    x, scale = torch.randn((rows, n), dtype=torch.bfloat16), torch.randn(rows)
    out = torch.full((rows,), float("nan"), device="cuda")
    norms[(triton.cdiv(rows, per),)](x.cuda(), scale.cuda(), out, rows, n, n, PER=per, BLOCK=triton.next_power_of_2(n))
    want = (x.double() * x.double()).sum(-1) * scale.double()
    assert torch.allclose(out.cpu().double(), want, rtol=1e-5, atol=1e-5), (rows, n, per)
for rows, n in ((3, 1), (5, 70001), (400, 5000), (263, 4097)):
    x = torch.randn((rows, n))
    out = torch.full((rows,), float("nan"), device="cuda")
    largest[(rows,)](x.cuda(), out, n, BLOCK=1024)
    assert torch.equal(out.cpu(), x.amax(dim=-1)), (rows, n)
for rows, n, splits in ((1, 5, 2), (300, 80, 8), (77, 512, 16)):
    x, used = torch.randn((rows, splits, n)), torch.randint(0, splits + 1, (rows,), dtype=torch.int32)
    out = torch.full((rows, n), float("nan"), device="cuda")
    merge[(rows,)](x.cuda(), used.cuda(), out, n, SPLITS=splits, BLOCK=triton.next_power_of_2(n))
    want = torch.zeros((rows, n), dtype=torch.float64)
    for s in range(splits):
        taken = (s < used)[:, None]
        want = torch.where(taken, want * 0.5 + x[:, s].double(), want)
    assert torch.allclose(out.cpu().double(), want, rtol=1e-5, atol=1e-5), (rows, n, splits)
)");
}

// Quotients by one divisor that are rounded once more come of two products where these agree: the same bits as of the
// quotient in float32, for numerators of every kind and those whose quotients are ties.
TEST(GpuScript, RoundedQuotientsAreThoseOfExactOnes) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def divide(a_ptr, b_ptr, out_ptr, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0.0)
    b = tl.load(b_ptr + row)
    q = libdevice.div_rn(a, tl.exp2(b) if KIND == 6 else b)
    if KIND == 1:
        q = q.to(out_ptr.dtype.element_ty)
    if KIND == 2:
        q = libdevice.rint(q)
    if KIND == 3:
        q = libdevice.floor(q)
    if KIND == 4:
        q = libdevice.ceil(q)
    if KIND == 5:
        q = libdevice.trunc(q)
    tl.store(out_ptr + row * n + i, q, mask=i < n)


torch.manual_seed(11)
inf = float("inf")
rare = torch.tensor([0.0, -0.0, 1.0, -1.0, 3.0, inf, -inf, float("nan"), 1e-45, -3e-45, 1e-40, 1.1754944e-38, 3.4028235e38,
                     -3.4028235e38, 8.6e-19, 8.7e-19, 1.1e18, 1.2e18, 1.9999999, 0.1, 65519.9, 65520.0, 6e-8, 2.98e-8])
ties = torch.cat([(1024 + torch.arange(256) + 0.5) / 1024 * 3, (128 + torch.arange(128) + 0.5) / 128 * 5,
                  (torch.arange(256) - 127.5) * 7])
any_bits = torch.randint(-2**31, 2**31 - 1, (20011,), dtype=torch.int32).view(torch.float32)
a = torch.cat([rare, ties, any_bits, 1000 * torch.randn(20000)]).cuda()
b = torch.cat([rare, torch.tensor([3.0, 5.0, 7.0, -7.0, 50.0, 1e-3]), torch.randn(64),
               torch.randint(-2**31, 2**31 - 1, (64,), dtype=torch.int32).view(torch.float32)]).cuda()
n = a.shape[0]


def quotients(kind, dtype, bits):
    out = torch.zeros((b.shape[0], n), dtype=dtype, device="cuda")
    divide[(triton.cdiv(n, 1024), b.shape[0])](a, b, out, n, KIND=kind, BLOCK=1024)
    return torch.where(torch.isnan(out), 77, out.view(bits))


exact = torch.zeros((b.shape[0], n), dtype=torch.float32, device="cuda")
divide[(triton.cdiv(n, 1024), b.shape[0])](a, b, exact, n, KIND=0, BLOCK=1024)
for dtype in (torch.float16, torch.bfloat16):
    want = exact.to(dtype)
    want = torch.where(torch.isnan(want), 77, want.view(torch.int16))
    assert torch.equal(quotients(1, dtype, torch.int16), want), dtype
for kind, of in ((2, torch.round), (3, torch.floor), (4, torch.ceil), (5, torch.trunc)):
    want = of(exact)
    want = torch.where(torch.isnan(want), 77, want.view(torch.int32))
    assert torch.equal(quotients(kind, torch.float32, torch.int32), want), kind

# By powers of two, down to those whose reciprocals are too large, and by what exp2 makes of other numbers.
b = torch.cat([torch.arange(-150, 130).to(torch.float32), torch.tensor([0.5, -3.7, inf, -inf, float("nan")])]).cuda()
by_powers = quotients(6, torch.float32, torch.int32)
b = torch.exp2(b)
assert torch.equal(by_powers, quotients(0, torch.float32, torch.int32))
)");
}

// Tensors end within the 16 bytes that a thread moves at a time; what lies behind them stays as it was.
TEST(GpuScript, MasksEndWithinVectors) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import triton
import triton.language as tl

@triton.jit
def move(x, out, all, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=3)
    tl.store(all + i, v)
    tl.store(out + i, v, mask=i < n)

@triton.jit
def add(x, sums, used, old, n, B: tl.constexpr, SEM: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(sums + i, v, mask=i < n, sem=SEM)
    tl.store(old + i, tl.atomic_add(used + i, v, mask=i < n, sem=SEM), mask=i < n)

for n in (1, 2, 3, 4, 5, 7, 8, 9, 15, 17, 31, 255, 256, 257, 1000, 1023, 1025, 2047, 2048):
    programs = (n + 1023) // 1024
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int64):
        x = torch.randint(-9, 9, (2048,)).to(dtype)
        out = torch.full((2048,), 77).to(dtype)
        all = torch.full((2048,), 77).to(dtype)
        move[(programs,)](x, out, all, n, B=1024)
        assert torch.equal(out[:n], x[:n]) and (out[n:] == 77).all(), (n, dtype)
        assert torch.equal(all[:n], x[:n]) and (all[n:programs * 1024] == 3).all(), (n, dtype)
        if dtype in (torch.int8, torch.int64):
            continue
        for sem in ("relaxed", "release", "acq_rel"):
            sums = torch.full((2048,), 5).to(dtype)
            used = torch.full((2048,), 5).to(dtype)
            old = torch.full((2048,), 77).to(dtype)
            add[(programs,)](x, sums, used, old, n, B=1024, SEM=sem)
            for got in (sums, used):
                assert torch.equal(got[:n], x[:n] + 5) and (got[n:] == 5).all(), (n, dtype, sem)
            assert (old[:n] == 5).all() and (old[n:] == 77).all(), (n, dtype, sem)
)");
}

// Triton moves no more elements than a mask is equal for, so that it runs what promises too much of rows of odd length.
TEST(GpuScript, WrongHintsDoNoHarmWhereAMaskEndsWithinAVector) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import triton
import triton.language as tl

@triton.jit
def move(x, out, D: tl.constexpr, B: tl.constexpr):
    column = tl.max_contiguous(tl.multiple_of(tl.arange(0, B), B), B)[None, :]
    row = tl.program_id(0) * 2 + tl.arange(0, 2)[:, None]
    inside = column < D
    v = tl.load(tl.multiple_of(x + row * D + column, (1, 16)), mask=inside, other=0)
    tl.store(tl.multiple_of(out + row * D + column, (1, 16)), v, mask=inside)

for dtype in (torch.float16, torch.float32):
    for d in (1001, 7186):
        x = torch.randn(6, d).to(dtype)
        out = torch.zeros_like(x)
        move[(3,)](x, out, D=d, B=triton.next_power_of_2(d))
        assert torch.equal(out, x), (d, dtype)
)");
}

// Rows in registers, rows that registers have no room for beside several programs, and rows whose lanes hold the same
// elements; each with fewer programs than rows, and some without a row.
TEST(GpuScript, RowsRunAhead) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    inside = cols < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * columns + cols, mask=inside, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + cols, e / tl.sum(e, axis=0), mask=inside)

for dtype, rows, columns, warps, stages in (
    (torch.float32, 1823, 784, 8, 4),
    (torch.float32, 1000, 64, 8, 3),
    (torch.float32, 700, 8320, 8, 4),
    (torch.float32, 700, 16384, 8, 4),
    (torch.float32, 100, 32768, 16, 2),
    (torch.bfloat16, 999, 8192, 4, 2),
    (torch.bfloat16, 999, 12160, 8, 3),
):
    x = torch.randn(rows, columns, dtype=dtype)
    want = torch.softmax(x.double(), dim=-1)
    for programs in (7, 132, 500, 2000):
        out = torch.full_like(x, float("nan"))
        softmax_kernel[(programs,)](
            x, out, rows, columns, BLOCK=triton.next_power_of_2(columns), STAGES=stages, num_warps=warps)
        assert torch.allclose(out.double(), want, rtol=1e-5 if dtype == torch.float32 else 1e-2, atol=1e-7), (
            dtype, rows, columns, programs)
)");
}

// The additions count how often it ran.
TEST(GpuScript, AssemblyWithEffectsRunsOnceForEachElement) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import triton
import triton.language as tl


@triton.jit
def add_one(count, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    old = tl.inline_asm_elementwise("atom.global.add.u32 $0, [$1], 1;", "=r,l", [count + i], dtype=tl.int32,
                                    is_pure=False, pack=1)
    tl.store(out + i, old)


@triton.jit
def add_unread(count, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for _ in range(n):
        tl.inline_asm_elementwise("red.global.add.u32 [$1], 1; mov.u32 $0, 0;", "=r,l", [count + i], dtype=tl.int32,
                                  is_pure=False, pack=1)
        tl.inline_asm_elementwise("bar.sync 0; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)


count = torch.zeros(1024, dtype=torch.int32)
old = torch.full((1024,), 77, dtype=torch.int32)
add_one[(7,)](count, old, BLOCK=1024)
assert (count == 7).all() and (old >= 0).all() and (old < 7).all()
add_unread[(2,)](count, 9, BLOCK=1024)
assert (count == 25).all(), count
)");
}

TEST(GpuScript, CopiesKeepAllBits) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
for n in (16, 400):
    for floats, ints in ((torch.bfloat16, torch.int16), (torch.float16, torch.int16), (torch.float32, torch.int32),
                         (torch.float8_e5m2, torch.int8), (torch.float8_e4m3fn, torch.int8)):
        bits = (torch.arange(n * n).reshape(n, n) * (16777259 if ints == torch.int32 else 257)).to(ints)
        kept = bits.view(floats).T.contiguous().view(ints)
        assert torch.equal(kept, bits.T), (n, floats)
)");
}

// tests/unit/repl/modules/torch_attention.py at the sizes of models, which the CPU would take long for.
TEST(GpuScript, AttentionIsOneKernelWithTheValuesOfItsScores) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import torch.nn.functional as F
from torch import _attention
q, k, v = [torch.randn(40, 1000, 64) for _ in range(3)]
assert not F.scaled_dot_product_attention(q, k, v).is_lazy()
assert F.scaled_dot_product_attention(q[:2], k[:2], v[:2]).is_lazy()
for d, causal, heads, group, n, keys in ((64, True, 4, 2, 1000, 1000), (128, False, 3, 1, 257, 2000),
                                         (256, True, 2, 4, 700, 300),
                                         (96, True, 40, 1, 1024, 1024), (16, False, 5, 1, 1, 77),
                                         (80, True, 8, 1, 500, 500), (80, False, 20, 1, 1024, 1024),
                                         (160, False, 3, 2, 300, 700), (24, True, 3, 1, 400, 400)):
    for dtype in [torch.float16, torch.bfloat16] + [torch.float32] * (d <= 128):
        q, k = torch.randn(2, heads * group, n, d).to(dtype), torch.randn(2, heads, keys, d).to(dtype)
        v = torch.randn(2, keys, heads, d).to(dtype).transpose(1, 2)
        got = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        assert got.dtype is dtype and (dtype is torch.float32 or not got.is_lazy())
        if dtype is torch.float32:  # the kernel also where the scores are faster
            got = _attention.attention(q, k, v, d**-0.5, causal)
        want = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal, enable_gqa=True)
        off = (got.double() - want).abs().max().item()
        assert off <= {torch.float16: 8e-3, torch.bfloat16: 6e-2, torch.float32: 2e-5}[dtype], (off, d, causal, n, keys, dtype)
)");
}

TEST(GpuScript, GradientsOfAttentionAreThoseOfItsScores) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import torch.nn.functional as F
for d, causal, heads, group, n, keys in ((64, True, 4, 2, 1000, 1000), (128, False, 3, 1, 257, 2000), (96, True, 9, 4, 1024, 1024),
                                         (128, True, 40, 1, 1024, 1024), (16, False, 5, 1, 1, 77), (80, True, 4, 2, 500, 500),
                                         (40, False, 3, 1, 300, 200), (256, True, 2, 1, 200, 200)):
    for dtype in (torch.float16, torch.bfloat16):
        q, k = torch.randn(2, heads * group, n, d).to(dtype), torch.randn(2, heads, keys, d).to(dtype)
        v, g = torch.randn(2, keys, heads, d).to(dtype).transpose(1, 2), torch.randn(2, heads * group, n, d).to(dtype)
        f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        got = torch.func.vjp(f, q, k, v)[1](g)
        want = torch.func.vjp(f, q.float(), k.float(), v.float())[1](g.float())
        for name, a, b in zip("qkv", got, want):
            off, most = (a.float() - b).abs().max().item(), b.abs().max().item()
            assert a.dtype is dtype and off <= (4e-3 if dtype is torch.float16 else 2.5e-2) * max(1.0, most), (off, most, name, d, causal, n, keys, dtype)
        torch.use_deterministic_algorithms(True)
        ordered = torch.func.vjp(f, q, k, v)[1](g)
        again = torch.func.vjp(f, q, k, v)[1](g)
        torch.use_deterministic_algorithms(False)
        for a, b, c in zip(ordered, again, want):
            assert torch.equal(a, b) and (a.float() - c).abs().max() <= 2.5e-2 * max(1.0, c.abs().max().item()), (d, causal, n, keys)
)");
}

TEST(GpuScript, MasksOfAttentionAreReadByItsKernel) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import torch.nn.functional as F
for d, batch, heads, n, keys in ((128, 2, 16, 1024, 1024), (64, 3, 20, 500, 500), (80, 1, 4, 777, 1030),
                                 (256, 2, 3, 130, 256), (64, 4, 8, 1, 2000)):
    q, k, v = torch.randn(batch, heads, n, d), torch.randn(batch, heads, keys, d), torch.randn(batch, heads, keys, d)
    rows = torch.randn(batch, 1, n, keys)
    for mask in (rows > 0, torch.randn(batch, 1, 1, keys) > 0, torch.randn(batch, heads, n, keys) > 2.5,
                 torch.where(rows > 1, float("-inf"), rows), rows.bfloat16(), rows.mT.contiguous().mT):
        a = (q.bfloat16(), k.bfloat16(), v.bfloat16())
        got = F.scaled_dot_product_attention(*a, attn_mask=mask)
        assert not got.is_lazy() and got.dtype is torch.bfloat16
        wide = mask if mask.dtype is torch.bool else mask.float()
        want = F.scaled_dot_product_attention(*[x.float() for x in a], attn_mask=wide)
        off = (got.float() - want).abs().max().item()
        assert off <= 6e-2, (off, d, n, keys, mask.dtype, mask.shape)
)");
}

/// Tensors that the kernel finds in memory come by TMA, whose maps the kernel makes: sizes that are no multiple of a
/// tile, padded rows, sums of nothing, and several streams at once.
TEST(GpuScript, TensorsFoundInMemoryAreMultiplied) {
  GPU_OR_SKIP(device);
  if (device.info().target != "sm_90a") GTEST_SKIP() << "needs a GPU of target sm_90a, not " << device.info().target;
  run_script(device, R"(
import random
import torch
import triton
import triton.language as tl


@triton.jit
def grouped(a_ptrs, b_ptrs, c_ptrs, sizes, strides, groups, PROGRAMS: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr, BK: tl.constexpr, TYPE: tl.constexpr, RESULT: tl.constexpr, ALONG_N: tl.constexpr):
    tile = tl.program_id(0)
    last = 0
    for g in range(groups):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        tiles_n = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * tiles_n
        if tile >= last and tile < last + tiles:
            a = tl.make_tensor_descriptor(tl.load(a_ptrs + g).to(tl.pointer_type(TYPE)), shape=[m, k],
                                          strides=[tl.load(strides + g * 3), 1], block_shape=[BM, BK])
            b_ptr = tl.load(b_ptrs + g).to(tl.pointer_type(TYPE))
            ldb = tl.load(strides + g * 3 + 1)
            if ALONG_N:
                b = tl.make_tensor_descriptor(b_ptr, shape=[k, n], strides=[ldb, 1], block_shape=[BK, BN])
            else:
                b = tl.make_tensor_descriptor(b_ptr, shape=[n, k], strides=[ldb, 1], block_shape=[BN, BK])
            c = tl.make_tensor_descriptor(tl.load(c_ptrs + g).to(tl.pointer_type(RESULT)), shape=[m, n],
                                          strides=[tl.load(strides + g * 3 + 2), 1], block_shape=[BM, BN])
            while tile >= last and tile < last + tiles:
                row, col = (tile - last) // tiles_n * BM, (tile - last) % tiles_n * BN
                acc = tl.zeros((BM, BN), dtype=tl.float32)
                for i in range(0, tl.cdiv(k, BK)):
                    x = a.load([row, i * BK])
                    if ALONG_N:
                        acc = tl.dot(x, b.load([i * BK, col]), acc)
                    else:
                        acc = tl.dot(x, b.load([col, i * BK]).T, acc)
                c.store([row, col], acc.to(RESULT))
                tile += PROGRAMS
        last = last + tiles


def padded(rows, columns, dtype):
    unit = 16 // dtype.itemsize
    whole = (torch.randn(max(rows, 1), (max(columns, 1) + unit - 1) // unit * unit) * 0.5).to(dtype)
    return whole, whole[:rows, :columns]


def ints(values, dtype):
    return torch.tensor(values, dtype=dtype)


CASES = [(torch.float16, tl.float16, False), (torch.float16, tl.float16, True), (torch.bfloat16, tl.bfloat16, False),
         (torch.bfloat16, tl.bfloat16, True), (torch.float32, tl.float32, False),
         (torch.float8_e4m3fn, tl.float8e4nv, False)]
seed = random.randrange(1 << 30)
random.seed(seed)
for trial in range(18):
    dtype, kind, along_n = CASES[trial % len(CASES)]
    half = dtype.itemsize == 2
    bm, bn = random.choice([64, 128]), random.choice([64, 128])
    bk = 64 if half else 128 // dtype.itemsize
    a, b, c, sizes, strides = [], [], [], [], []
    for _ in range(random.randint(1, 4)):
        m, n = random.choice([1, 7, 64, 100, 300]), random.choice([8, 17, 64, 130, 256])
        k = random.choice([0, 1, 16, 31, 64, 65, 128, 200, 512])
        a.append(padded(m, k, dtype))
        b.append(padded(k, n, dtype) if along_n else padded(n, k, dtype))
        c.append(torch.full((m, (n + 7) // 8 * 8 + 8), 77.0).to(dtype if half else torch.float32))
        sizes += [m, n, k]
        strides += [a[-1][0].stride(0), b[-1][0].stride(0), c[-1].stride(0)]
    programs = random.choice([1, 3, 132])
    grouped[(programs,)](ints([x.data_ptr() for x, _ in a], torch.int64), ints([x.data_ptr() for x, _ in b], torch.int64),
                         ints([x.data_ptr() for x in c], torch.int64), ints(sizes, torch.int32),
                         ints(strides, torch.int32), len(c), programs, bm, bn, bk, kind,
                         kind if half else tl.float32, along_n, num_warps=random.choice([4, 8]),
                         num_stages=random.choice([2, 3, 4]))
    for i in range(len(c)):
        m, n, k = sizes[3 * i:3 * i + 3]
        where = "seed %d, trial %d: %s" % (seed, trial, (dtype, along_n, m, n, k, bm, bn, programs))
        x, y = a[i][1].float().cpu().double(), b[i][1].float().cpu().double()
        exact = x @ (y if along_n else y.T) if k > 0 else torch.zeros(m, n, dtype=torch.float64, device="cpu")
        got = c[i].float().cpu().double()
        bound = (1e-2 if half else 3e-3) * max(1.0, exact.abs().max().item())
        assert (got[:, :n] - exact).abs().max().item() <= bound, where
        assert torch.all(got[:, n:] == 77).item(), where

streams = [torch.cuda.Stream() for _ in range(4)]
x = [torch.randn(1024, 512).to(torch.float16) for _ in streams]
y = [torch.randn(768, 512).to(torch.float16) for _ in streams]
z = [torch.zeros(1024, 768, dtype=torch.float16) for _ in streams]
args = [(ints([x[i].data_ptr()], torch.int64), ints([y[i].data_ptr()], torch.int64),
         ints([z[i].data_ptr()], torch.int64), ints([1024, 768, 512], torch.int32), ints([512, 512, 768], torch.int32))
        for i in range(4)]
torch.cuda.synchronize()
for _ in range(20):
    for i in range(4):
        with torch.cuda.stream(streams[i]):
            grouped[(48,)](*args[i], 1, 48, 128, 128, 64, tl.float16, tl.float16, False, num_warps=4, num_stages=4)
torch.cuda.synchronize()
for i in range(4):
    assert (z[i].float() - x[i].float() @ y[i].float().T).abs().max().item() < 0.2, i
)");
}

/// A tile that products sum over along both of its dimensions, as chunks of linear attention do: float32, int8 and fp8
/// have to lie along the sum, halves need not. Of small whole numbers each product is exact.
TEST(GpuScript, TilesAreSummedOverBothDimensions) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import random
import torch
import triton
import triton.language as tl


@triton.jit
def once(x, u, w_ptr, out, steps, TYPE: tl.constexpr, T: tl.constexpr, K: tl.constexpr, SU: tl.constexpr,
         SK: tl.constexpr):
    t = tl.arange(0, T)
    k = tl.arange(0, K)
    a = tl.load(x + t[:, None] * T + t[None, :])
    b = tl.load(u + t[:, None] * SU + k[None, :] * SK).to(TYPE)
    w = tl.dot(a, b)
    tl.store(w_ptr + t[:, None] * K + k[None, :], w.to(tl.float32))
    tl.store(out + t[:, None] * T + t[None, :], tl.dot(w.to(TYPE), tl.trans(b)).to(tl.float32))


@triton.jit
def looped(x, u, w_ptr, out, steps, TYPE: tl.constexpr, T: tl.constexpr, K: tl.constexpr, SU: tl.constexpr,
           SK: tl.constexpr):
    t = tl.arange(0, T)
    k = tl.arange(0, K)
    sums = tl.zeros((T, K), tl.float32)
    acc = tl.zeros((T, T), tl.float32)
    for i in range(steps):
        a = tl.load(x + i * T * T + t[:, None] * T + t[None, :])
        b = tl.load(u + i * T * K + t[:, None] * SU + k[None, :] * SK).to(TYPE)
        w = tl.dot(a, b)
        sums += w.to(tl.float32)
        acc += tl.dot(w.to(TYPE), tl.trans(b)).to(tl.float32)
    tl.store(w_ptr + t[:, None] * K + k[None, :], sums)
    tl.store(out + t[:, None] * T + t[None, :], acc)


@triton.jit
def ahead(x, u, w_ptr, out, steps, TYPE: tl.constexpr, T: tl.constexpr, K: tl.constexpr, SU: tl.constexpr,
          SK: tl.constexpr):
    t = tl.arange(0, T)
    k = tl.arange(0, K)
    b = tl.load(u + t[:, None] * SU + k[None, :] * SK).to(TYPE)
    sums = tl.zeros((T, K), tl.float32)
    acc = tl.zeros((T, T), tl.float32)
    for i in range(steps):
        w = tl.dot(tl.load(x + i * T * T + t[:, None] * T + t[None, :]), b)
        sums += w.to(tl.float32)
        acc += tl.dot(w.to(TYPE), tl.trans(b)).to(tl.float32)
    tl.store(w_ptr + t[:, None] * K + k[None, :], sums)
    tl.store(out + t[:, None] * T + t[None, :], acc)


CASES = [(torch.float32, torch.float16, tl.float32), (torch.float32, torch.float32, tl.float32),
         (torch.float16, torch.int8, tl.float16), (torch.bfloat16, torch.bfloat16, tl.bfloat16),
         (torch.int8, torch.int8, tl.int8), (torch.int8, torch.int32, tl.int8),
         (torch.float8_e4m3fn, torch.float16, tl.float8e4nv), (torch.float8_e4m3fn, torch.float8_e4m3fn, tl.float8e4nv)]
seed = random.randrange(1 << 30)
random.seed(seed)
torch.manual_seed(seed)
for kernel in (once, looped, ahead):
    for dtype, stored, kind in CASES:
        for along_k in (True, False):
            t, k, steps = random.choice([64, 128]), random.choice([32, 64]), random.choice([1, 2, 5])
            if kernel is once:
                steps = 1
            warps = random.choice([4, 8])
            where = "seed %d: %s" % (seed, (kernel, dtype, stored, along_k, t, k, steps, warps))
            x = torch.randint(-1, 2, (steps, t, t)).float().to(dtype)
            u = torch.randint(-1, 2, (steps, t, k) if along_k else (steps, k, t)).float().to(stored)
            w, out = torch.zeros(t, k), torch.zeros(t, t)
            kernel[(1,)](x, u, w, out, steps, kind, t, k, k if along_k else 1, 1 if along_k else t, num_warps=warps,
                         num_stages=random.choice([1, 2, 3]))
            a, b = x.float().cpu().double(), u.float().cpu().double()
            sums = torch.zeros(t, k, dtype=torch.float64, device="cpu")
            acc = torch.zeros(t, t, dtype=torch.float64, device="cpu")
            for i in range(steps):
                c = b[0 if kernel is ahead else i]
                c = c if along_k else c.T
                product = a[i] @ c
                sums += product
                acc += product.float().to(dtype).float().double() @ c.T
            assert torch.equal(w.cpu().double(), sums), where
            assert torch.equal(out.cpu().double(), acc), where
)");
}

// Rows of whole 16 bytes are stored by TMA, which writes no less; others by threads. Nothing beyond a row may change.
TEST(GpuScript, BlocksOfHostDescriptorsEndWithTheirTensor) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import random
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr):
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0)):
        m, n = tile // columns * BM, tile % columns * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, acc)
        if HALVES:
            left, right = acc.reshape(BM, 2, BN // 2).permute(0, 2, 1).split()
            c.store([m, n], left.to(tl.float16))
            c.store([m, n + BN // 2], right.to(tl.float16))
        else:
            c.store([m, n], acc.to(tl.float16))


seed = random.randrange(1 << 30)
random.seed(seed)
torch.manual_seed(seed)
for i in range(24):
    m, k = random.randrange(1, 700), random.randrange(1, 40) * 8
    n = random.randrange(1, 600)
    n = n if i % 2 else (n + 7) // 8 * 8
    bn, halves, warps = random.choice([(64, False, 4), (128, False, 8), (128, True, 4), (256, True, 8)])
    room = (n + 7) // 8 * 8 + 8
    a = torch.randint(-2, 3, (m, k)).half()
    b = torch.randint(-2, 3, (n, k)).half()
    kept = torch.full((m + 1, room), 7777.0, dtype=torch.float16)
    c = TensorDescriptor(kept, [m, n], [room, 1], [128, bn // 2 if halves else bn])
    product[(random.choice([1, 7, 132]),)](TensorDescriptor.from_tensor(a, [128, 64]), TensorDescriptor.from_tensor(b, [bn, 64]),
                                           c, m, n, k, 128, bn, 64, halves, num_warps=warps, num_stages=3)
    where = "seed %d: %s" % (seed, (m, n, k, bn, halves, warps))
    assert torch.equal(kept[:m, :n].float(), a.float() @ b.float().T), where
    assert (kept[:m, n:] == 7777).all() and (kept[m] == 7777).all(), where
)");
}

}  // namespace
}  // namespace kiln::runtime
