// Element types of tensors and of kernel values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

enum class DType : uint8_t {
#define KILN_DTYPE(e, name, triton, torch, bits, cls) k##e,
#include "kiln/dtype.def"
#undef KILN_DTYPE
};

enum class DTypeClass : uint8_t { kSigned, kUnsigned, kFloat };

struct DTypeInfo {
  std::string_view name, triton, torch;
  int bits;
  DTypeClass cls;
};

inline constexpr DTypeInfo kDTypes[] = {
#define KILN_DTYPE(e, name, triton, torch, bits, cls) {name, triton, torch, bits, DTypeClass::cls},
#include "kiln/dtype.def"
#undef KILN_DTYPE
};
inline constexpr int kNumDTypes = static_cast<int>(sizeof(kDTypes) / sizeof(kDTypes[0]));

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<size_t>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr int bits(DType t) { return info(t).bits; }
/// Bytes of one element in memory; bool takes one.
constexpr int size_of(DType t) { return bits(t) < 8 ? 1 : bits(t) / 8; }
constexpr bool is_float(DType t) { return info(t).cls == DTypeClass::kFloat; }
constexpr bool is_int(DType t) { return !is_float(t); }
constexpr bool is_signed(DType t) { return info(t).cls == DTypeClass::kSigned; }
constexpr bool is_fp8(DType t) { return is_float(t) && bits(t) == 8; }
/// A dtype of torch, under the name in the table.
constexpr bool is_in_torch(DType t) { return t != DType::kF8E4B15; }
/// f16 and bf16.
constexpr bool is_half(DType t) { return is_float(t) && bits(t) == 16; }

/// Accepts Kiln's, Triton's and torch's names ("f32", "fp32", "float32"), and torch's aliases ("half", "float",
/// "long").
std::optional<DType> parse_dtype(std::string_view text);

}  // namespace kiln
