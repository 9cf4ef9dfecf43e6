#include "compiler/passes/distributed/choose_mma.h"

#include <vector>

#include "compiler/analysis/operand_runs.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/target/mma.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Precision;
using ir::Value;

constexpr int64_t kTf32Mask = ~int64_t{0x1fff};  // sign, exponent and 10 bits of fraction

class MmaChooser {
 public:
  MmaChooser(ir::Module& module, const target::Target& target, Remarks* remarks)
      : target_(target), remarks_(remarks), axis_(module), b_(module) {}

  void visit(Op* dot) {
    if (dot->has(AttrName::kMma)) return;
    b_.set_before(dot);
    b_.set_range(dot->range);
    const DType a = dot->operand(0)->type.dtype, b = dot->operand(1)->type.dtype, c = dot->result()->type.dtype;
    const auto precision = dot->find_word<Precision>().value_or(Precision::kTf32);
    const int depth = dot->operand(0)->type.shape[dot->operand(0)->type.shape.rank - 1];
    const target::MmaRow* row = target::find_mma(target_, a, b, c);
    if (!row && is_fp8(a)) {
      row = target::find_mma(target_, DType::kF16, DType::kF16, c);
      if (row && row->depth() <= depth) {
        cast_operands(dot, DType::kF16);
        remark(remarks_, dot->range, Reason::kFp8ByF16, name(a), target_.name);
      }
    }
    if (!row) remark(remarks_, dot->range, Reason::kFmaTypes, target_.name, name(a), name(b), name(c));
    if (row && a == DType::kF32 && precision == Precision::kIeee) {
      row = nullptr;
      remark(remarks_, dot->range, Reason::kFmaPrecision);
    }
    if (row && row->depth() > depth) {
      remark(remarks_, dot->range, Reason::kFmaDepth, depth, row->depth());
      row = nullptr;
    }
    if (!row) {
      by_element(dot);
    } else if (a == DType::kF32 && precision == Precision::kTf32x3) {
      remark(remarks_, dot->range, Reason::kMmaSyncThrice, row->name);
      in_three(dot, *row);
    } else {
      remark(remarks_, dot->range, Reason::kMmaSync, row->name);
      dot->set(AttrName::kMma, std::string(row->name));
      if (const int width = analysis::wanted_k_width(*dot, axis_)) dot->set(AttrName::kKWidth, int64_t{width});
    }
  }

 private:
  void cast_operands(Op* dot, DType to) {
    for (int i = 0; i < 2; ++i) dot->set_operand(i, b_.cast(dot->operand(i), to));
  }

  /// Halves are multiplied and added in f32, which rounds the sum once.
  void by_element(Op* dot) {
    const ir::Type type = dot->result()->type;
    if (is_half(dot->operand(0)->type.dtype) || is_fp8(dot->operand(0)->type.dtype)) {
      cast_operands(dot, DType::kF32);
      dot->set(Precision::kIeee);
    }
    dot->set(AttrName::kMma, std::string(target::kFma));
    if (!is_half(type.dtype)) return;
    Value* wide = b_.create1(OpKind::kDot, {dot->operand(0), dot->operand(1), b_.cast(dot->operand(2), DType::kF32)},
                             type.with_dtype(DType::kF32), dot->attrs);
    replace(dot, b_.cast(wide, type.dtype));
  }

  struct Halves {
    Value *upper, *lower;
  };
  Halves halves(Value* v) {
    const ir::Type bits = v->type.with_dtype(DType::kI32);
    Value* kept = b_.binary(OpKind::kAnd, b_.create1(OpKind::kBitcast, {v}, bits), b_.constant_int(bits, kTf32Mask));
    Value* upper = b_.create1(OpKind::kBitcast, {kept}, v->type);
    return {upper, b_.binary(OpKind::kSub, v, upper)};
  }

  /// a·b ≈ upper·upper + (upper·lower + lower·upper). The lower half of an infinity is NaN; what it makes of the small
  /// products is dropped, and the product of the upper halves decides the result.
  void in_three(Op* dot, const target::MmaRow& row) {
    const ir::Type type = dot->result()->type;
    const int width = analysis::wanted_k_width(*dot, axis_);
    const Halves a = halves(dot->operand(0)), b = halves(dot->operand(1));
    auto product = [&](Value* x, Value* y, Value* sum) {
      Value* made = b_.create1(OpKind::kDot, {x, y, sum}, type,
                               {{AttrName::kPrecision, Precision::kTf32}, {AttrName::kMma, std::string(row.name)}});
      if (width) made->op->set(AttrName::kKWidth, int64_t{width});
      return made;
    };
    Value* zero = b_.zero(type);
    Value* small = product(a.upper, b.lower, product(a.lower, b.upper, zero));
    small = b_.select(b_.cmp(ir::Predicate::kEq, small, small), small, zero);
    replace(dot, product(a.upper, b.upper, b_.binary(OpKind::kAdd, dot->operand(2), small)));
  }

  const target::Target& target_;
  Remarks* remarks_;
  analysis::AxisAnalysis axis_;
  ir::Builder b_;
};

}  // namespace

Status choose_mma(ir::Module& module, const target::Target& target, Remarks* remarks) {
  std::vector<Op*> dots;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kDot) dots.push_back(op);
  });
  MmaChooser state(module, target, remarks);
  for (Op* dot : dots) state.visit(dot);
  return {};
}

}  // namespace kiln::passes
