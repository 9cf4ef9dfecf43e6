// The operations of tensor expressions, and what an operation may say beside its operands.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kiln/dtype.h"

namespace kiln {

enum class ExprOp : uint8_t {
#define KILN_EXPR_OP(e, name, arity, kind, dtypes, flop, binds, text, int_text) k##e,
#include "kiln/expr_op.def"
#undef KILN_EXPR_OP
};

enum class ExprKind : uint8_t { kInput, kScalar, kView, kPlace, kPointwise, kReduce, kRow, kMatmul, kCall };
enum class ExprDTypeRule : uint8_t { kPromote, kFloat, kBool, kBits, kFirst, kOther };

struct ExprOpInfo {
  static constexpr int kAnyNumber = -1;
  std::string_view name;
  int arity;  // kAnyNumber: infer() says how many
  ExprKind kind;
  ExprDTypeRule dtypes;
  int flop;   // per element
  int binds;  // of `text` in Python
  std::string_view text, int_text;
};

inline constexpr ExprOpInfo kExprOps[] = {
#define KILN_EXPR_OP(e, name, arity, kind, dtypes, flop, binds, text, int_text) \
  {name, arity, ExprKind::kind, ExprDTypeRule::dtypes, flop, binds, text, int_text},

#include "kiln/expr_op.def"

#undef KILN_EXPR_OP
};
inline constexpr int kNumExprOps = static_cast<int>(sizeof(kExprOps) / sizeof(kExprOps[0]));

constexpr const ExprOpInfo& info(ExprOp op) { return kExprOps[static_cast<size_t>(op)]; }
constexpr std::string_view name(ExprOp op) { return info(op).name; }
/// The op of that name.
constexpr std::optional<ExprOp> parse_expr_op(std::string_view name) {
  for (int i = 0; i < kNumExprOps; ++i)
    if (kExprOps[i].name == name) return static_cast<ExprOp>(i);
  return std::nullopt;
}

/// A user's @triton.jit function that an expression calls on elements.
struct ExprFunction {
  std::string name;
  std::string text;  // it and the jit functions it calls, callees first, with decorators and without imports
  std::vector<std::string> defines = {};  // the names of those functions
  bool libdevice = false;                 // whether they name that module
};

/// What an operation says beside its operands. Each names the ops that read it.
struct ExprAttributes {
  std::variant<bool, int64_t, double> value = false;  // scalar: a Python number
  std::vector<int64_t> shape;                         // expand (-1: as it is), reshape (one -1), slice, iota,
                                                      // scatter_add: of the result
  std::vector<int64_t> starts, steps;                 // slice: one per dimension; steps are positive
  std::vector<int> axes;       // permute: the operand's dimension of each of the result's; reduce, row: those it
                               // works along (reduce: none means all; norms: the last ones, default the last);
                               // take: the operand's dimension that each tensor of places is for; scatter_add:
                               // the result's
  bool any_outside = false;    // take: places outside are part of the bargain, and may give any number; else negative
                               // ones count from the end, and a tensor in memory gives NaN, or 0, outside even so
  bool adds = false;           // put: what is there stays part of the sum, and so do all values of one place
  bool keepdim = false;        // reduce
  std::optional<DType> dtype;  // cast: to what; sum, mean, softmax, cumsum, cumprod, matmul, call, iota: of the result
  double correction = 1;       // var: divides by n - correction
  double eps = 1e-5;           // layer_norm, rms_norm
  bool tf32 = false;           // matmul: f32 operands may be rounded to 10 bits of mantissa
  std::shared_ptr<const ExprFunction> function;  // call
};

}  // namespace kiln
