#include "compiler/interp/element.h"

#include <algorithm>
#include <vector>

#include "compiler/interp/eval.h"
#include "support/diag.h"

namespace kiln::interp {

using ir::OpKind;

std::string index_text(const ir::Shape& shape, int64_t element) {
  if (shape.rank == 0) return "";
  std::vector<int64_t> index(shape.rank);
  for (int d = shape.rank - 1; d >= 0; --d) {
    index[static_cast<size_t>(d)] = element % shape[d];
    element /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::string element_text(const ir::Type& type, uint64_t bits, bool hex) {
  if (hex || type.pointer) return fmt::format("{:#0{}x}", bits, type.element_bits() / 4 + 2);
  if (type.is_float()) return fmt::format("{:f}", float_from_bits(type.dtype, bits));
  return is_signed(type.dtype) ? fmt::format("{}", int_value(type.dtype, bits)) : fmt::format("{}", bits);
}

uint64_t combine_rmw(const std::string& rmw, const ir::Type& type, uint64_t old, uint64_t value) {
  if (rmw == "xchg") return value;
  static constexpr std::pair<std::string_view, OpKind> kRows[] = {
      {"add", OpKind::kAdd}, {"fadd", OpKind::kAdd}, {"min", OpKind::kMin}, {"max", OpKind::kMax},
      {"and", OpKind::kAnd}, {"or", OpKind::kOr},    {"xor", OpKind::kXor}};
  auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const auto& r) { return r.first == rmw; });
  KILN_ASSERT(row != std::end(kRows), "atomic {}", rmw);
  // A module-less op gives the arithmetic its meaning.
  ir::Value result;
  result.type = type.scalar();
  ir::Op op;
  op.kind = row->second;
  op.results = {&result};
  op.operands = {&result, &result};
  const uint64_t in[] = {old, value};
  return eval(op, in);
}

std::string access_fault(const ir::Op& op, const Memory& memory, uint64_t address, int64_t element) {
  const ir::Type& type = op.operand(0)->type;
  const int size = size_of(type.dtype);
  const bool outside = !memory.contains(address, size);
  if (!outside && address % static_cast<uint64_t>(size) == 0) return "";
  const std::string where = type.shape.rank > 0 ? " at element " + index_text(type.shape, element) : "";
  const std::string_view what = ir::info(op.kind).mnemonic, element_name = name(type.dtype);
  return outside ? fmt::format("{} of {} outside of every buffer (address {:#x}){}", what, element_name, address, where)
                 : fmt::format("{} of {} at the misaligned address {:#x}{}", what, element_name, address, where);
}

}  // namespace kiln::interp
