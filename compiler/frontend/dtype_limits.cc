#include "compiler/frontend/dtype_limits.h"

#include <cmath>

namespace kiln::frontend {

std::optional<ast::Constant> limit_of(DType dtype, std::string_view field) {
  if (field == "bits") return ast::Constant(ast::Int{bits(dtype)});
  if (!is_float(dtype)) {
    const int width = bits(dtype) - (is_signed(dtype) ? 1 : 0);
    if (field == "max") return ast::Constant((ast::Int{1} << width) - 1);
    if (field == "min") return ast::Constant(is_signed(dtype) ? -(ast::Int{1} << width) : ast::Int{0});
    return std::nullopt;
  }
  struct Limits {
    DType dtype;
    int mantissa, exponent;  // bits of the one, largest value of the other
  };
  constexpr Limits kLimits[] = {
      {DType::kF16, 10, 15}, {DType::kBF16, 7, 127}, {DType::kF32, 23, 127}, {DType::kF64, 52, 1023}};
  for (const Limits& l : kLimits) {
    if (l.dtype != dtype) continue;
    const double max = std::ldexp(2.0 - std::ldexp(1.0, -l.mantissa), l.exponent);
    if (field == "max") return ast::Constant(max);
    if (field == "min") return ast::Constant(-max);
    if (field == "eps") return ast::Constant(std::ldexp(1.0, -l.mantissa));
    if (field == "tiny" || field == "smallest_normal") return ast::Constant(std::ldexp(1.0, 1 - l.exponent));
  }
  return std::nullopt;
}

std::optional<ast::Constant> limit_of_call(const ast::Call& call, std::string_view function, std::string_view field) {
  const auto* type = call.args.size() == 1 ? ast::dyn_as<ast::Attribute>(call.args[0].get()) : nullptr;
  const std::optional<DType> dtype = type ? parse_dtype(type->name) : std::nullopt;
  if (!dtype || (function != "torch.iinfo" && function != "torch.finfo")) return std::nullopt;
  if (is_float(*dtype) != (function == "torch.finfo")) return std::nullopt;
  return limit_of(*dtype, field);
}

}  // namespace kiln::frontend
