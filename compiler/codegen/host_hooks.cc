#include "compiler/codegen/host_hooks.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "compiler/codegen/host.h"
#include "kiln/dtype.h"
#include "support/faults.h"
#include "support/float_bits.h"
#include "support/stop.h"

namespace kiln::codegen {

void HostLog::fail(std::string message) {
  std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(message);
}

std::optional<std::string> HostLog::take_failure() {
  std::lock_guard lock(mutex_);
  std::optional<std::string> taken;
  taken.swap(failure_);
  return taken;
}

namespace {

std::string format_value(int32_t kind, bool hex, uint64_t bits) {
  const DType type = kind < 0 ? DType::kU64 : static_cast<DType>(kind);
  const int width = kiln::bits(type);
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  if (hex || kind < 0) return fmt::format("{:#0{}x}", bits, width / 4 + 2);
  if (is_float(type)) return fmt::format("{:f}", float_from_bits(type, bits));
  if (!is_signed(type)) return fmt::format("{}", bits);
  return fmt::format("{}", static_cast<int64_t>(bits << (64 - width)) >> (64 - width));
}

std::string list_text(char open, const int32_t* numbers, int32_t count, char close) {
  std::string text(1, open);
  for (int32_t i = 0; i < count; ++i) text += fmt::format("{}{}", i ? ", " : "", numbers[i]);
  return text + close;
}

std::string program_text(const int32_t* program) { return list_text('(', program, 3, ')'); }
std::string index_text(const int32_t* index, int32_t rank) { return rank ? list_text('[', index, rank, ']') : "()"; }

}  // namespace

extern "C" {

void kiln_hook_assert(HostLog* log, const int32_t* program, const int32_t* index, int32_t rank, const char* text) {
  faults::Unguarded holds_a_lock;
  log->fail(fmt::format("assertion failed: {}, in program {}{}", text, program_text(program),
                        rank ? " at element " + index_text(index, rank) : ""));
}

void kiln_hook_print(const int32_t* program, const int32_t* index, int32_t rank, const char* text, int32_t operand,
                     int32_t kind, int32_t hex, uint64_t bits) {
  faults::Unguarded owns_memory;
  std::string line = "pid " + program_text(program);
  if (kind == -2) {
    line += fmt::format(" {}\n", text);
  } else {
    line += fmt::format(" idx {} {}", index_text(index, rank), text);
    if (operand >= 0) line += fmt::format("(operand {}) ", operand);
    line += format_value(kind, hex != 0, bits) + "\n";
  }
  std::fwrite(line.data(), 1, line.size(), stdout);
}

int32_t kiln_hook_stop() { return stop_is_wanted(); }

void kiln_hook_load_lanes(void* lanes, const void* memory, const uint64_t* mask, int32_t count, int32_t size) {
  for (int32_t i = 0; i < count; ++i)
    if (mask[i / 64] >> (i % 64) & 1)
      std::memcpy(static_cast<char*>(lanes) + i * size, static_cast<const char*>(memory) + i * size,
                  static_cast<size_t>(size));
}

void kiln_hook_store_lanes(void* memory, const void* lanes, const uint64_t* mask, int32_t count, int32_t size) {
  for (int32_t i = 0; i < count; ++i)
    if (mask[i / 64] >> (i % 64) & 1)
      std::memcpy(static_cast<char*>(memory) + i * size, static_cast<const char*>(lanes) + i * size,
                  static_cast<size_t>(size));
}

// What LLVM calls to narrow a float where the CPU has no instruction for it. The narrow number is returned in the low
// bits of a float register.
static float truncate_to(DType type, double value) {
  return std::bit_cast<float>(static_cast<uint32_t>(float_to_bits(type, value)));
}
static float truncate_f32_bf16(float x) { return truncate_to(DType::kBF16, x); }
static float truncate_f64_bf16(double x) { return truncate_to(DType::kBF16, x); }
static float truncate_f32_f16(float x) { return truncate_to(DType::kF16, x); }
static float truncate_f64_f16(double x) { return truncate_to(DType::kF16, x); }
static float extend_f16(float bits) {
  return static_cast<float>(float_from_bits(DType::kF16, std::bit_cast<uint32_t>(bits) & 0xffff));
}

}  // extern "C"

std::span<const HostSymbol> host_symbols() {
  using F1 = float (*)(float);
  using D1 = double (*)(double);
#define KILN_FUNCTION(f) \
  { #f, reinterpret_cast < void*>(&f) }
#define KILN_LIBM(f)                                             \
  {#f, reinterpret_cast<void*>(static_cast<D1>(&std::f))}, {     \
#f "f", reinterpret_cast < void*>(static_cast <F1>(&std::f)) \
  }
  static const HostSymbol kSymbols[] = {
      {"memcpy", reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, size_t)>(&std::memcpy))},
      {"memmove", reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, size_t)>(&std::memmove))},
      {"memset", reinterpret_cast<void*>(static_cast<void* (*)(void*, int, size_t)>(&std::memset))},
      {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(&std::fma))},
      {"fmaf", reinterpret_cast<void*>(&fmaf)},
      {"fmod", reinterpret_cast<void*>(static_cast<double (*)(double, double)>(&std::fmod))},
      {"fmodf", reinterpret_cast<void*>(&fmodf)},
      KILN_LIBM(floor),
      KILN_LIBM(ceil),
      KILN_LIBM(trunc),
      KILN_LIBM(rint),
      KILN_LIBM(sqrt),
      {"roundeven", reinterpret_cast<void*>(static_cast<D1>(&std::nearbyint))},
      {"roundevenf", reinterpret_cast<void*>(static_cast<F1>(&std::nearbyint))},
      {"__truncsfbf2", reinterpret_cast<void*>(&truncate_f32_bf16)},
      {"__truncdfbf2", reinterpret_cast<void*>(&truncate_f64_bf16)},
      {"__truncsfhf2", reinterpret_cast<void*>(&truncate_f32_f16)},
      {"__truncdfhf2", reinterpret_cast<void*>(&truncate_f64_f16)},
      {"__extendhfsf2", reinterpret_cast<void*>(&extend_f16)},
      {kHostStopWord, &stop_word},
      KILN_FUNCTION(kiln_hook_assert),
      KILN_FUNCTION(kiln_hook_print),
      KILN_FUNCTION(kiln_hook_stop),
      KILN_FUNCTION(kiln_hook_load_lanes),
      KILN_FUNCTION(kiln_hook_store_lanes),
  };
#undef KILN_LIBM
#undef KILN_FUNCTION
  return kSymbols;
}

}  // namespace kiln::codegen
