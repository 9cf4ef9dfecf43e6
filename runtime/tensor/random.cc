#include "runtime/tensor/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kiln/runtime.h"
#include "kiln/tensor.h"
#include "runtime/device/device.h"
#include "runtime/device/device_kernels.h"
#include "runtime/device/native.h"
#include "runtime/tensor/convert.h"
#include "support/diag.h"

namespace kiln {
namespace runtime {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014) with the element's index as its counter: any element can be made by itself, so
// the numbers do not depend on how many threads, programs or devices make them.
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

inline uint64_t mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

inline uint64_t word(uint64_t key, int64_t i) { return mix64(key + static_cast<uint64_t>(i) * kGolden); }

// (ln(1 + f) - f + f²/2) / f³ on [√½ - 1, √2 - 1], relative error of ln 2.1e-8; sin(2πw) / w in w² on [0, 1/4], 6.7e-9.
// Both are Chebyshev interpolants.
constexpr float kLog[] = {0.33333330728190674f, -0.2500030642256876f, 0.20001045094153708f, -0.1664128146314411f,
                          0.14214495924166146f, -0.1299818376351811f, 0.1262231984760401f,  -0.07902743770650658f};
constexpr float kSin[] = {6.283185280154406f, -41.341680613346526f, 81.60247636892599f, -76.58117264431282f,
                          39.75982708575151f};

// The kernel of runtime/device/device_kernels.cc does the same steps: a test compares them bit for bit. Sums of
// products are written as fma because the compiler fuses them in kernels; products with powers of two are exact, so
// their sums need none.
inline __attribute__((always_inline)) float normal(uint64_t bits) {
  auto first = static_cast<uint32_t>(bits >> 32);
  auto second = static_cast<int32_t>(bits);
  float x = static_cast<float>(first) + 1.0f;  // in [1, 2^32]; the uniform is x / 2^32
  auto image = std::bit_cast<int32_t>(x);
  int32_t exponent = (image - 0x3f3504f3) >> 23;
  float f = std::bit_cast<float>(image - (exponent << 23)) - 1.0f;
  float p = kLog[7];
  for (int i = 6; i >= 0; --i) p = __builtin_fmaf(p, f, kLog[i]);
  float square = f * f;
  p = p * f * square;
  float log_f = f + __builtin_fmaf(-0.5f, square, p);
  float log_x = __builtin_fmaf(static_cast<float>(exponent - 32), 0.6931471805599453f, log_f);
  float t = -2.0f * log_x;
  float radius = std::sqrt(t > 0.0f ? t : 0.0f);  // not max, which may keep the sign of a zero
  // cos(2πv) = sin(2π(¼ - |v|)) for v in [-½, ½].
  float w = 0.25f - std::fabs(static_cast<float>(second) * 0x1p-32f);
  float w2 = w * w;
  float s = kSin[4];
  for (int i = 3; i >= 0; --i) s = __builtin_fmaf(s, w2, kSin[i]);
  return radius * (s * w);
}

inline __attribute__((always_inline)) void normals(uint64_t key, int64_t first, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = normal(word(key, first + i));
}

#if defined(__x86_64__)
// With the machine's fma instruction; without it every fmaf is a call of the C library, with the same result.
__attribute__((target("avx2,fma"))) void normals_fma(uint64_t key, int64_t first, int64_t count, float* out) {
  normals(key, first, count, out);
}
#endif

void fill_normals(uint64_t key, int64_t first, int64_t count, float* out) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) return normals_fma(key, first, count, out);
#endif
  normals(key, first, count, out);
}

void native_random(const uint64_t* args, const int32_t*, int64_t first, int64_t last, void*) {
  RandomSpec spec{static_cast<RandomKind>(args[1]), static_cast<DType>(args[2]), args[3], static_cast<int64_t>(args[4]),
                  args[5]};
  auto count = static_cast<int64_t>(args[6]);
  int64_t begin = first * kNativeBlock, end = std::min(count, last * kNativeBlock);
  random_elements(spec, begin, end - begin, reinterpret_cast<char*>(args[0]) + begin * size_of(spec.dtype));
}

Result<Tensor> random_tensor(const Device& device, std::span<const int64_t> shape, const RandomSpec& spec) {
  KILN_TRY(Tensor t, Tensor::empty(device, spec.dtype, shape));
  int64_t n = t.numel();
  if (n == 0) return t;
  Tensor host = t;
  if (device.is_cuda()) {
    if (n * size_of(spec.dtype) >= kDeviceKernelBytes && has_random_kernel(spec)) {
      KILN_CHECK_OK(random_on_device(t, spec));
      return t;
    }
    KILN_TRY(Device cpu, device.runtime().open("cpu"));
    KILN_TRY(host, Tensor::empty(cpu, spec.dtype, shape));
  }
  const uint64_t slots[] = {host.address(),
                            static_cast<uint64_t>(spec.kind),
                            static_cast<uint64_t>(spec.dtype),
                            spec.seed,
                            static_cast<uint64_t>(spec.low),
                            spec.range,
                            static_cast<uint64_t>(n)};
  KILN_CHECK_OK(run_native(host.storage()->device->backend(), native_random, "random", slots, n));
  if (device.is_cuda()) KILN_CHECK_OK(t.copy_from(host));
  return t;
}

Status need_float(const char* what, DType dtype) {
  if (is_float(dtype)) return {};
  return error(ErrorKind::kType, "{} gives floats, and {} is not a float type; use randint", what, name(dtype));
}

}  // namespace

int uniform_bits(DType dtype) {
  // As many bits as the significand holds (its hidden bit included): every value is exact and below 1. More bits could
  // round up to 1.0, which [0, 1) excludes.
  switch (bits(dtype)) {
    case 64:
      return 53;
    case 32:
      return 24;
    case 16:
      return dtype == DType::kF16 ? 11 : 8;
    default:
      return dtype == DType::kF8E4M3 ? 4 : 3;
  }
}

uint64_t random_word(uint64_t key, int64_t i) { return word(key, i); }

uint64_t random_key(uint64_t seed) { return mix64(seed + kGolden); }

void random_elements(const RandomSpec& spec, int64_t first, int64_t count, void* target) {
  constexpr int64_t kChunk = 1024;
  uint64_t key = random_key(spec.seed);
  auto* out = static_cast<char*>(target);
  for (int64_t done = 0; done < count; done += kChunk) {
    int64_t n = std::min(kChunk, count - done), at = first + done;
    char* chunk = out + done * size_of(spec.dtype);
    switch (spec.kind) {
      case RandomKind::kUniform: {
        int p = uniform_bits(spec.dtype);
        double values[kChunk];
        for (int64_t i = 0; i < n; ++i) values[i] = std::ldexp(static_cast<double>(word(key, at + i) >> (64 - p)), -p);
        convert_elements(DType::kF64, values, spec.dtype, chunk, n);
        break;
      }
      case RandomKind::kNormal: {
        float values[kChunk];
        fill_normals(key, at, n, values);
        convert_elements(DType::kF32, values, spec.dtype, chunk, n);
        break;
      }
      case RandomKind::kInteger: {
        // The high half of word × range for small ranges, a remainder above 2^32: biased by less than range / 2^32,
        // 2^64.
        int64_t values[kChunk];
        for (int64_t i = 0; i < n; ++i) {
          uint64_t w = word(key, at + i);
          uint64_t offset = spec.range <= (uint64_t{1} << 32) ? ((w >> 32) * spec.range) >> 32 : w % spec.range;
          values[i] = static_cast<int64_t>(static_cast<uint64_t>(spec.low) + offset);
        }
        convert_elements(DType::kI64, values, spec.dtype, chunk, n);
        break;
      }
    }
  }
}

Status run_native(Backend& cpu, HostEntry entry, const char* name, std::span<const uint64_t> slots, int64_t elements) {
  KernelImage image;
  image.name = name;
  image.num_params = static_cast<int>(slots.size());
  image.entry = entry;
  KILN_TRY(std::shared_ptr<LoadedKernel> kernel, cpu.load(image));
  Grid grid = {1, 1, 1};
  int64_t programs = (elements + kNativeBlock - 1) / kNativeBlock;
  KILN_ASSERT(programs <= INT32_MAX, "{} elements", elements);
  grid[0] = static_cast<uint32_t>(programs);
  return cpu.launch(*kernel, grid, slots.data(), cpu.current_stream());
}

}  // namespace runtime

using namespace runtime;

Result<Tensor> randn(const Device& device, DType dtype, std::span<const int64_t> shape, uint64_t seed) {
  KILN_CHECK_OK(need_float("randn", dtype));
  return random_tensor(device, shape, {RandomKind::kNormal, dtype, seed, 0, 0});
}

Result<Tensor> rand(const Device& device, DType dtype, std::span<const int64_t> shape, uint64_t seed) {
  KILN_CHECK_OK(need_float("rand", dtype));
  return random_tensor(device, shape, {RandomKind::kUniform, dtype, seed, 0, 0});
}

Result<Tensor> randint(const Device& device, DType dtype, std::span<const int64_t> shape, int64_t low, int64_t high,
                       uint64_t seed) {
  if (low >= high) return error(ErrorKind::kValue, "randint needs low < high, got low {} and high {}", low, high);
  if (is_int(dtype)) {
    // The dtype's limits as 128 bits, so that u64 needs no case of its own.
    int value_bits = bits(dtype) - (is_signed(dtype) ? 1 : 0);
    __int128 most = (static_cast<__int128>(1) << value_bits) - 1, least = is_signed(dtype) ? -most - 1 : 0;
    if (low < least || high - static_cast<__int128>(1) > most)
      return error(ErrorKind::kValue, "randint: not every integer in [{}, {}) is a value of {}", low, high,
                   name(dtype));
  }
  uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return random_tensor(device, shape, {RandomKind::kInteger, dtype, seed, low, range});
}

}  // namespace kiln
