#include "compiler/interp/element.h"

#include <fmt/format.h>

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

namespace {

OpKind arithmetic_of(ir::Rmw rmw) {
  switch (rmw) {
    case ir::Rmw::kAdd:
    case ir::Rmw::kFAdd:
      return OpKind::kAdd;
    case ir::Rmw::kMin:
      return OpKind::kMin;
    case ir::Rmw::kMax:
      return OpKind::kMax;
    case ir::Rmw::kAnd:
      return OpKind::kAnd;
    case ir::Rmw::kOr:
      return OpKind::kOr;
    case ir::Rmw::kXor:
      return OpKind::kXor;
    case ir::Rmw::kExchange:
      break;
  }
  KILN_UNREACHABLE("an exchange computes nothing");
}

}  // namespace

uint64_t combine_rmw(ir::Rmw rmw, const ir::Type& type, uint64_t old, uint64_t value) {
  if (rmw == ir::Rmw::kExchange) return value;
  // A module-less op gives the arithmetic its meaning.
  ir::Value result;
  result.type = type.scalar();
  ir::Op op;
  op.kind = arithmetic_of(rmw);
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
