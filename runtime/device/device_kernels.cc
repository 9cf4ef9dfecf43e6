#include "runtime/device/device_kernels.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "kiln/kernel.h"
#include "runtime/device/device.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln::runtime {
namespace {

constexpr const char* kSource = R"(
import triton
import triton.language as tl


@triton.jit
def random_word(key, i):
    z = key + i.to(tl.uint64) * 0x9e3779b97f4a7c15
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb
    return z ^ (z >> 31)


# Sums of products are fma, so that nothing is left for the compiler to fuse.
@triton.jit
def normal(bits):
    first = (bits >> 32).to(tl.uint32)
    second = bits.to(tl.uint32).to(tl.int32, bitcast=True)
    x = first.to(tl.float32) + 1.0
    image = x.to(tl.int32, bitcast=True)
    exponent = (image - 0x3f3504f3) >> 23
    f = (image - (exponent << 23)).to(tl.float32, bitcast=True) - 1.0
    p = tl.fma(f, -0.07902743770650658, 0.1262231984760401)
    p = tl.fma(p, f, -0.1299818376351811)
    p = tl.fma(p, f, 0.14214495924166146)
    p = tl.fma(p, f, -0.1664128146314411)
    p = tl.fma(p, f, 0.20001045094153708)
    p = tl.fma(p, f, -0.2500030642256876)
    p = tl.fma(p, f, 0.33333330728190674)
    square = f * f
    p = p * f * square
    log_f = f + tl.fma(square, -0.5, p)
    log_x = tl.fma((exponent - 32).to(tl.float32), 0.6931471805599453, log_f)
    t = -2.0 * log_x
    radius = tl.sqrt_rn(tl.where(t > 0.0, t, 0.0))
    w = 0.25 - tl.abs(second.to(tl.float32) * 2.3283064365386963e-10)
    w2 = w * w
    s = tl.fma(w2, 39.75982708575151, -76.58117264431282)
    s = tl.fma(s, w2, 81.60247636892599)
    s = tl.fma(s, w2, -41.341680613346526)
    s = tl.fma(s, w2, 6.283185280154406)
    return radius * (s * w)


@triton.jit(do_not_specialize=["key"])
def random_normal(out, n, key: tl.uint64, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    z = normal(random_word(key, i))
    tl.store(out + i, z.to(out.dtype.element_ty), mask=i < n)


@triton.jit(do_not_specialize=["key"])
def random_uniform(out, n, key: tl.uint64, BITS: tl.constexpr, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    top = random_word(key, i) >> (64 - BITS)
    if BITS > 32:
        u = top.to(tl.float64) * SCALE
    else:
        u = top.to(tl.uint32).to(tl.float32) * SCALE
    tl.store(out + i, u.to(out.dtype.element_ty), mask=i < n)


@triton.jit(do_not_specialize=["key", "low", "range"])
def random_integer(out, n, key: tl.uint64, low: tl.int64, range: tl.uint64, LARGE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    w = random_word(key, i)
    if LARGE:
        offset = w % range
    else:
        offset = ((w >> 32) * range) >> 32
    v = offset.to(tl.int64) + low
    element: tl.constexpr = out.dtype.element_ty
    if element.is_floating() and element.primitive_bitwidth < 32:
        v = v.to(tl.float32)
    tl.store(out + i, v.to(out.dtype.element_ty), mask=i < n)


@triton.jit
def convert(out, x, n, VIA: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if VIA is not None:
        v = v.to(VIA)
    tl.store(out + i, v.to(out.dtype.element_ty), mask=i < n)


# n elements of a shape [*, s1, s2, s3, s4] with strides a (of out) and b (of x).
@triton.jit
def copy_strided(out, x, rows, cols, out_row, out_col, x_row, x_col, s1, s2, a0: tl.int64, a1: tl.int64, a2: tl.int64,
                 b0: tl.int64, b1: tl.int64, b2: tl.int64, ROWS: tl.constexpr, COLS: tl.constexpr):
    # Tiles of the two dimensions along which the tensors lie closest; up to three others.
    across = tl.cdiv(cols, COLS)
    tiles = tl.cdiv(rows, ROWS) * across
    tile = tl.program_id(0) % tiles
    rest = tl.program_id(0) // tiles
    i2 = rest % s2
    rest = rest // s2
    i1 = rest % s1
    i0 = rest // s1
    r = tile // across * ROWS + tl.arange(0, ROWS)
    c = tile % across * COLS + tl.arange(0, COLS)
    mask = (r < rows)[:, None] & (c < cols)[None, :]
    x += i0 * b0 + i1 * b1 + i2 * b2
    out += i0 * a0 + i1 * a1 + i2 * a2
    r = r.to(tl.int64)
    c = c.to(tl.int64)
    v = tl.load(x + ((r * x_row)[:, None] + (c * x_col)[None, :]), mask=mask)
    tl.store(out + ((r * out_row)[:, None] + (c * out_col)[None, :]), v, mask=mask)
)";

constexpr int64_t kBlock = 1024;
constexpr size_t kMaxRank = 5;  // of one launch of copy_strided

// Kernels are made at the first use and kept by the device: their specialisations are the value of having them.
class DeviceKernels : public Companion {
 public:
  static Result<std::unique_ptr<Companion>> make(DeviceImpl&) {
    return std::unique_ptr<Companion>(std::make_unique<DeviceKernels>());
  }
  Result<Kernel> kernel(const char* name) {
    std::lock_guard lock(mutex_);
    for (const auto& [known, k] : kernels_)
      if (known == name) return k;
    KILN_TRY(Kernel made, Kernel::from_source(kSource, "<kiln runtime>", name));
    kernels_.emplace_back(name, made);
    return made;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, Kernel>> kernels_;
};

Result<Kernel> kernel(const Tensor& target, const char* name) {
  KILN_TRY(Companion * companion, target.storage()->device->companion("kernels", DeviceKernels::make));
  return static_cast<DeviceKernels*>(companion)->kernel(name);
}

Status launch(const Tensor& target, const char* name, int64_t n, std::vector<std::optional<Arg>> args) {
  KILN_TRY(Kernel k, kernel(target, name));
  args.emplace_back(kBlock);
  return k.launch({(n + kBlock - 1) / kBlock, 1, 1}, args);
}

int64_t power_of_two(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }

}  // namespace

const char* device_kernel_source() { return kSource; }

bool has_random_kernel(const RandomSpec& spec) {
  if (spec.kind != RandomKind::kInteger || !is_fp8(spec.dtype)) return true;
  const auto most = static_cast<int64_t>(float_from_bits(spec.dtype, max_finite_bits(spec.dtype)));
  return spec.low >= -most && spec.low <= most && spec.range <= static_cast<uint64_t>(most - spec.low) + 1;
}

bool has_convert_kernel(DType to) { return !is_fp8(to); }

Status random_on_device(const Tensor& target, const RandomSpec& spec) {
  int64_t n = target.numel();
  uint64_t key = random_key(spec.seed);
  switch (spec.kind) {
    case RandomKind::kNormal:
      return launch(target, "random_normal", n, {target, n, key});
    case RandomKind::kUniform: {
      int64_t precision = uniform_bits(spec.dtype);
      // 2^-precision: an integer of so many bits becomes a float in [0, 1).
      double scale = 1;
      for (int64_t i = 0; i < precision; ++i) scale /= 2;
      return launch(target, "random_uniform", n, {target, n, key, precision, scale});
    }
    case RandomKind::kInteger:
      // A product with 32 random bits replaces the remainder where the range has at most 32 bits itself.
      return launch(target, "random_integer", n,
                    {target, n, key, spec.low, spec.range, spec.range > (uint64_t{1} << 32)});
  }
  KILN_UNREACHABLE("random kind {}", static_cast<int>(spec.kind));
}

Status convert_on_device(const Tensor& target, const Tensor& source) {
  const DType from = source.dtype(), to = target.dtype();
  // As convert_elements() does: to halves by way of float32, and to narrow unsigned integers so that negative values
  // wrap.
  Arg via;
  if (is_float(to) && size_of(to) < size_of(DType::kF32) && (from == DType::kF64 || is_int(from))) via = DType::kF32;
  if (is_float(from) && is_int(to) && !is_signed(to) && to != DType::kI1 && bits(to) < 64) via = DType::kI64;
  return launch(target, "convert", target.numel(), {target, source, target.numel(), via});
}

Status copy_on_device(const Tensor& target, const Tensor& source) {
  // Dimensions of size 1 say nothing, and neighbours that both tensors walk through in one stride are one dimension.
  std::vector<int64_t> sizes, a, b;
  for (size_t d = 0; d < target.shape().size(); ++d) {
    int64_t size = target.shape()[d], to = target.strides()[d], from = source.strides()[d];
    if (size == 1) continue;
    if (!sizes.empty() && a.back() == size * to && b.back() == size * from) {
      sizes.back() *= size;
      a.back() = to, b.back() = from;
    } else {
      sizes.push_back(size), a.push_back(to), b.push_back(from);
    }
  }
  const int64_t n = target.numel();
  if (n == 0) return {};
  if (sizes.size() > kMaxRank) {
    const auto least = static_cast<size_t>(std::min_element(sizes.begin(), sizes.end()) - sizes.begin());
    const int64_t count = sizes[least], to = a[least], from = b[least];
    for (std::vector<int64_t>* v : {&sizes, &a, &b}) v->erase(v->begin() + static_cast<std::ptrdiff_t>(least));
    for (int64_t i = 0; i < count; ++i) {
      KILN_TRY(const Tensor part, target.as_strided(sizes, a, target.offset() + i * to));
      KILN_TRY(const Tensor source_part, source.as_strided(sizes, b, source.offset() + i * from));
      KILN_CHECK_OK(copy_on_device(part, source_part));
    }
    return {};
  }
  // Neighbouring lanes write neighbours, and read neighbours along the other dimension: the compiler turns the tile
  // around through shared memory. Where one dimension is both, the other one only makes tiles larger.
  auto closest = [&](const std::vector<int64_t>& strides, size_t but) {
    size_t best = sizes.size();
    for (size_t d = 0; d < sizes.size(); ++d)
      if (d != but && (best == sizes.size() || strides[d] < strides[best])) best = d;
    return best;
  };
  const size_t none = sizes.size(), column = closest(a, none), row = closest(b, column);
  const bool is_turned = row < none && b[row] < b[column];
  auto at = [none](const std::vector<int64_t>& v, size_t d, int64_t otherwise) { return d < none ? v[d] : otherwise; };
  const int64_t rows = at(sizes, row, 1), columns = at(sizes, column, 1);
  // Small tensors need every processor. Turned tiles of 64 columns have up to 128 rows, which cost half as much as 64
  // where rows begin at odd addresses (187 x 13168 halves on an H200: 7.8 and 15.6 us).
  int64_t elements = n < (int64_t{1} << 20) ? 1024 : 4096;
  if (is_turned && n >= int64_t{1} << 18) elements = n < (int64_t{1} << 20) ? 64 * 64 : 64 * 128;
  const int64_t side = is_turned ? (elements == 1024 ? 32 : 64) : elements;
  const int64_t tile_columns = std::min(power_of_two(columns), side);
  const int64_t tile_rows = std::min(power_of_two(rows), elements / tile_columns);
  std::vector<int64_t> s, to, from;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d != row && d != column) s.push_back(sizes[d]), to.push_back(a[d]), from.push_back(b[d]);
  // Dimensions that the tensors lack are outer ones, of size 1 and step 0.
  const size_t missing = kMaxRank - 2 - s.size();
  s.insert(s.begin(), missing, 1), to.insert(to.begin(), missing, 0), from.insert(from.begin(), missing, 0);
  std::vector<std::optional<Arg>> args = {target, source, rows, columns};
  for (const auto* strides : {&a, &b}) {
    args.emplace_back(at(*strides, row, 0));
    args.emplace_back(at(*strides, column, 0));
  }
  args.insert(args.end(), {s[1], s[2]});
  for (const auto* strides : {&to, &from}) args.insert(args.end(), strides->begin(), strides->end());
  args.insert(args.end(), {tile_rows, tile_columns});
  KILN_TRY(Kernel k, kernel(target, "copy_strided"));
  auto tiles = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile; };
  LaunchOptions options;
  options.num_warps = tile_rows * tile_columns > 4096 ? 8 : 4;
  return k.launch({tiles(rows, tile_rows) * tiles(columns, tile_columns) * s[0] * s[1] * s[2], 1, 1}, args, options);
}

}  // namespace kiln::runtime
