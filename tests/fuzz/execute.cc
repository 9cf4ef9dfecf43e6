// Running generated programs in the interpreter, and comparing what executors leave behind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "compiler/interp/eval.h"
#include "compiler/interp/tile/interp.h"
#include "support/diag.h"
#include "tests/fuzz/generator.h"

namespace kiln::fuzz {

std::vector<uint64_t> argument_slots(const Program& program, const std::function<uint64_t(int buffer)>& address) {
  std::vector<uint64_t> slots;
  for (const Param& p : program.params) slots.push_back(p.buffer >= 0 ? address(p.buffer) : p.scalar);
  return slots;
}

Result<std::vector<Buffer>> run_on_host_memory(
    const Program& program,
    const std::function<Status(std::span<const uint64_t> slots, std::vector<Buffer>&)>& execute) {
  std::vector<Buffer> buffers = program.buffers;
  const auto slots = argument_slots(
      program, [&](int i) { return reinterpret_cast<uint64_t>(buffers[static_cast<size_t>(i)].bytes.data()); });
  KILN_CHECK_OK(execute(slots, buffers));
  return buffers;
}

Result<std::vector<Buffer>> interpret(const Program& program, const ir::Module& module) {
  return run_on_host_memory(program, [&](std::span<const uint64_t> slots, std::vector<Buffer>& buffers) {
    interp::Memory memory;
    for (Buffer& b : buffers) memory.allow(b.bytes.data(), b.bytes.size());
    return interp::run(module, program.grid, slots, memory);
  });
}

namespace {

/// Distance in units of the last place of the larger magnitude.
double ulp_distance(DType t, double a, double b) {
  const double larger = std::max(std::fabs(a), std::fabs(b));
  const uint64_t bits = float_to_bits(t, larger);
  const double below = bits ? float_from_bits(t, bits - 1) : 0;
  const double unit = bits ? float_from_bits(t, bits) - below : float_from_bits(t, 1);
  return std::fabs(a - b) / unit;
}

bool equal(const Buffer& buffer, uint64_t a, uint64_t b, const Tolerance& tolerance) {
  if (a == b) return true;
  const DType t = buffer.dtype;
  if (!is_float(t)) return false;
  if (is_nan_bits(t, a) || is_nan_bits(t, b)) return is_nan_bits(t, a) && is_nan_bits(t, b);
  if (!buffer.approximation || !tolerance) return false;
  const double x = float_from_bits(t, a), y = float_from_bits(t, b);
  // CUDA flushes results of exp2 that would be denormal (docs/math.md).
  const auto flushed = [](double v, double to) { return to == 0 && std::fabs(v) < 0x1p-126; };
  if (t == DType::kF32 && buffer.approximation->op == ir::OpKind::kExp2 && (flushed(x, y) || flushed(y, x)))
    return true;
  if (std::isinf(x) || std::isinf(y)) {
    // One overflowed, the other stopped just short of it.
    const double limit = float_from_bits(t, max_finite_bits(t));
    return ulp_distance(t, std::clamp(x, -limit, limit), std::clamp(y, -limit, limit)) <=
           tolerance(*buffer.approximation, t);
  }
  return ulp_distance(t, x, y) <= tolerance(*buffer.approximation, t);
}

}  // namespace

std::string compare(const std::vector<Buffer>& expected, const std::vector<Buffer>& got, const Tolerance& tolerance) {
  KILN_ASSERT(expected.size() == got.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    const Buffer &e = expected[k], &g = got[k];
    const auto size = static_cast<size_t>(size_of(e.dtype));
    for (int64_t i = 0; i < e.count(); ++i) {
      uint64_t a = 0, b = 0;
      std::memcpy(&a, e.bytes.data() + static_cast<size_t>(i) * size, size);
      std::memcpy(&b, g.bytes.data() + static_cast<size_t>(i) * size, size);
      if (!equal(e, a, b, tolerance))
        return fmt::format("buffer {} ({}{}) element {}: expected {:#x} ({}), got {:#x} ({})", k, name(e.dtype),
                           e.approximation ? fmt::format(", {}", ir::info(e.approximation->op).mnemonic) : "", i, a,
                           interp::number_value(e.dtype, a), b, interp::number_value(e.dtype, b));
    }
  }
  return "";
}

double ulp_tolerance(const Approximation& a, DType dtype) {
  const double sum = static_cast<double>(a.terms) * (is_half(dtype) ? 2 : 4);
  return a.terms > 1 ? std::max(8.0, sum) : 8.0;
}

namespace {

std::vector<uint64_t> seeds(int count) {
  if (const char* seed = std::getenv("KILN_FUZZ_SEED")) return {std::strtoull(seed, nullptr, 0)};
  if (const char* wanted = std::getenv("KILN_FUZZ_COUNT")) count = std::atoi(wanted);
  std::random_device device;
  std::mt19937_64 engine(uint64_t{device()} << 32 | device());
  std::vector<uint64_t> list(static_cast<size_t>(count));
  for (uint64_t& s : list) s = engine();
  return list;
}

}  // namespace

void for_each_seed(int count, const std::function<void(uint64_t seed)>& check) {
  for (uint64_t seed : seeds(count)) {
    SCOPED_TRACE(fmt::format("KILN_FUZZ_SEED={:#x}", seed));
    try {
      check(seed);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace kiln::fuzz
