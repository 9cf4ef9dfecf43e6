#include "compiler/frontend/promotion.h"

#include <cmath>

namespace kiln::frontend {

namespace {

int kind(DType t) { return t == DType::kI1 ? 0 : is_int(t) ? 1 : 2; }

}  // namespace

DType promote_ints(DType a, DType b) {
  if (is_signed(a) == is_signed(b)) return bits(a) > bits(b) ? a : b;
  DType u = is_signed(a) ? b : a, s = is_signed(a) ? a : b;
  return bits(u) >= bits(s) ? u : s;
}

std::optional<DType> promote(DType a, bool a_weak, DType b, bool b_weak, Promotion how) {
  bool division = how == Promotion::kDivision;
  if (a_weak != b_weak) {
    DType scalar = a_weak ? a : b, tensor = a_weak ? b : a;
    if (kind(scalar) <= kind(tensor)) return division && is_half(tensor) ? DType::kF32 : tensor;
  }
  auto either = [&](DType t) { return a == t || b == t; };
  if (either(DType::kF64)) return DType::kF64;
  if (either(DType::kF32)) return DType::kF32;
  if (either(DType::kF16)) return division ? DType::kF32 : DType::kF16;
  // bf16 survives only in its own company.
  if (either(DType::kBF16)) return a == b && !division ? DType::kBF16 : DType::kF32;
  if (is_fp8(a) && is_fp8(b)) return a == b ? a : DType::kF16;
  if (is_float(a) || is_float(b)) return std::nullopt;
  if (division && is_signed(a) != is_signed(b)) return std::nullopt;
  return promote_ints(a, b);
}

std::optional<DType> natural_dtype(const ast::Constant& c) {
  if (std::holds_alternative<bool>(c)) return DType::kI1;
  if (auto* i = std::get_if<ast::Int>(&c)) {
    for (DType t : {DType::kI32, DType::kU32, DType::kI64, DType::kU64})
      if (fits(*i, t)) return t;
    return std::nullopt;
  }
  if (auto* d = std::get_if<double>(&c)) {
    double x = std::fabs(*d);
    bool f32 = std::isinf(x) || std::isnan(x) || x == 0.0 || (x >= 0x1p-126 && x <= 0x1.fffffep127);
    return f32 ? DType::kF32 : DType::kF64;
  }
  return std::nullopt;
}

bool fits(ast::Int value, DType dtype) {
  ast::Int span = ast::Int{1} << bits(dtype);
  return is_signed(dtype) ? value >= -span / 2 && value < span / 2 : value >= 0 && value < span;
}

}  // namespace kiln::frontend
