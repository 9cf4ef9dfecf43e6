#include "support/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "support/diag.h"

namespace kiln {

namespace {

// The stack of an evaluation is a fixed array, because launches evaluate these expressions.
constexpr size_t kMaxDepth = 32;

/// The low bits of `v` that the type has, extended by its sign.
int64_t normalise(int64_t v, DType type) {
  const int width = bits(type);
  if (width >= 64) return v;
  const uint64_t low = static_cast<uint64_t>(v) << (64 - width);
  return is_signed(type) ? static_cast<int64_t>(low) >> (64 - width) : static_cast<int64_t>(low >> (64 - width));
}

bool less(int64_t a, int64_t b, DType type) {
  return type == DType::kU64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t shift(HostOp op, int64_t a, int64_t count, DType type) {
  const int width = bits(type);
  // C++ leaves shifts by the width or more undefined; the IR defines them.
  const bool all = static_cast<uint64_t>(normalise(count, type)) >= static_cast<uint64_t>(width);
  if (op == HostOp::kShl) return all ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << count);
  if (is_signed(type)) return a >> (all ? 63 : count);
  return all ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> count);
}

int64_t divide(HostOp op, int64_t a, int64_t b, DType type) {
  // The IR allows any value here, but the host must not trap.
  if (b == 0) return 0;
  const bool quotient = op == HostOp::kDiv;
  if (!is_signed(type)) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<int64_t>(quotient ? x / y : x % y);
  }
  // The quotient of the smallest integer and -1 would overflow.
  if (b == -1) return quotient ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : 0;
  return quotient ? a / b : a % b;
}

int64_t apply(const HostExpression::Step& s, const int64_t* v) {
  const auto a = static_cast<uint64_t>(v[0]), b = static_cast<uint64_t>(v[1]);
  switch (s.op) {
    case HostOp::kConstant:
    case HostOp::kParam:
      break;
    case HostOp::kCast:
      return s.type == DType::kI1 ? v[0] != 0 : v[0];
    case HostOp::kAdd:
      return static_cast<int64_t>(a + b);
    case HostOp::kSub:
      return static_cast<int64_t>(a - b);
    case HostOp::kMul:
      return static_cast<int64_t>(a * b);
    case HostOp::kDiv:
    case HostOp::kRem:
      return divide(s.op, v[0], v[1], s.type);
    case HostOp::kMin:
      return less(v[1], v[0], s.type) ? v[1] : v[0];
    case HostOp::kMax:
      return less(v[0], v[1], s.type) ? v[1] : v[0];
    case HostOp::kAnd:
      return v[0] & v[1];
    case HostOp::kOr:
      return v[0] | v[1];
    case HostOp::kXor:
      return v[0] ^ v[1];
    case HostOp::kShl:
    case HostOp::kShr:
      return shift(s.op, v[0], v[1], s.type);
    case HostOp::kEq:
      return v[0] == v[1];
    case HostOp::kNe:
      return v[0] != v[1];
    case HostOp::kLt:
      return less(v[0], v[1], s.type);
    case HostOp::kLe:
      return !less(v[1], v[0], s.type);
    case HostOp::kGt:
      return less(v[1], v[0], s.type);
    case HostOp::kGe:
      return !less(v[0], v[1], s.type);
    case HostOp::kSelect:
      return v[0] ? v[1] : v[2];
  }
  KILN_UNREACHABLE("host op");
}

bool compares(HostOp op) { return op >= HostOp::kEq && op <= HostOp::kGe; }

}  // namespace

std::optional<int64_t> HostExpression::constant() const {
  for (const Step& s : steps)
    if (s.op == HostOp::kParam) return std::nullopt;
  return evaluate(*this, {});
}

// Expressions are also read from the disk cache, so a damaged file must not overrun the stack.
bool is_well_formed(const HostExpression& e, int num_params) {
  size_t depth = 0;
  for (const HostExpression::Step& s : e.steps) {
    const auto op = static_cast<size_t>(s.op), type = static_cast<size_t>(s.type);
    if (op >= kNumHostOps || type >= kNumDTypes || is_float(s.type)) return false;
    if (s.op == HostOp::kParam && (s.number < 0 || s.number >= num_params)) return false;
    const auto taken = static_cast<size_t>(kHostOpValues[op]);
    if (depth < taken || depth - taken + 1 > kMaxDepth) return false;
    depth += 1 - taken;
  }
  return depth == 1;
}

int64_t evaluate(const HostExpression& e, std::span<const uint64_t> slots) {
  std::array<int64_t, kMaxDepth + 3> stack{};
  size_t depth = 0;
  for (const HostExpression::Step& s : e.steps) {
    depth -= static_cast<size_t>(kHostOpValues[static_cast<size_t>(s.op)]);
    int64_t v;
    if (s.op == HostOp::kConstant)
      v = s.number;
    else if (s.op == HostOp::kParam)
      v = static_cast<int64_t>(slots[static_cast<size_t>(s.number)]);
    else
      v = apply(s, &stack[depth]);
    stack[depth++] = compares(s.op) ? v : normalise(v, s.type);
  }
  KILN_ASSERT(depth == 1, "a host expression of {} steps", e.steps.size());
  return stack[0];
}

std::string to_string(const HostExpression& e) {
  static constexpr std::string_view kNames[] = {
#define KILN_HOST_OP(e, values) #e,
      KILN_HOST_OPS(KILN_HOST_OP)
#undef KILN_HOST_OP
  };
  std::string text;
  for (const HostExpression::Step& s : e.steps) {
    if (!text.empty()) text += ' ';
    if (s.op == HostOp::kConstant)
      text += fmt::format("{}", s.number);
    else if (s.op == HostOp::kParam)
      text += fmt::format("p{}", s.number);
    else
      text += fmt::format("{}.{}", kNames[static_cast<size_t>(s.op)], name(s.type));
  }
  return text;
}

int tensor_map_data_type(DType dtype) {
  switch (dtype) {
    case DType::kI1:
    case DType::kI8:
    case DType::kU8:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E4B15:
      return 0;
    case DType::kI16:
    case DType::kU16:
      return 1;
    case DType::kU32:
      return 2;
    case DType::kI32:
      return 3;
    case DType::kU64:
      return 4;
    case DType::kI64:
      return 5;
    case DType::kF16:
      return 6;
    case DType::kF32:
      return 7;
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 9;
  }
  KILN_UNREACHABLE("element type");
}

int tensor_map_swizzle(int bytes) {
  switch (bytes) {
    case 32:
      return 1;  // CU_TENSOR_MAP_SWIZZLE_32B
    case 64:
      return 2;
    case 128:
      return 3;
    default:
      return 0;
  }
}

}  // namespace kiln
