#include "kiln/dtype.h"

#include <utility>

namespace kiln {

std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (text == kDTypes[i].name || text == kDTypes[i].triton || text == kDTypes[i].torch) return static_cast<DType>(i);
  static constexpr std::pair<std::string_view, DType> kAliases[] = {
      {"fp64", DType::kF64},           {"fp32", DType::kF32},
      {"fp16", DType::kF16},           {"double", DType::kF64},
      {"float", DType::kF32},          {"half", DType::kF16},
      {"long", DType::kI64},           {"int", DType::kI32},
      {"short", DType::kI16},          {"u1", DType::kI1},
      {"fp8e4nv", DType::kF8E4M3},     {"fp8e5", DType::kF8E5M2},
      {"float8_e4m3", DType::kF8E4M3}, {"fp8e4b15", DType::kF8E4B15}};
  for (auto [alias, type] : kAliases)
    if (text == alias) return type;
  return std::nullopt;
}

}  // namespace kiln
