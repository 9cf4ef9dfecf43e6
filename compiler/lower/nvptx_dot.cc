// Products of matrices in registers: mma.sync on fragments, or one multiplication at a time.
#include <llvm/IR/InlineAsm.h>

#include "compiler/analysis/dot_layouts.h"
#include "compiler/lower/nvptx_lowering.h"
#include "compiler/target/mma.h"
#include "support/diag.h"

namespace kiln::lower {

using llvm::Value;

namespace {

/// The elements of a fragment as 32-bit registers, the first element lowest.
std::vector<Value*> words_of(llvm::IRBuilderBase& b, const Registers& values, std::span<const int> registers) {
  const unsigned bits = values[0]->getType()->getScalarSizeInBits(), packed = 32 / bits;
  std::vector<Value*> words;
  for (size_t i = 0; i < registers.size(); i += packed) {
    Value* first = values[static_cast<size_t>(registers[i])];
    if (packed == 1) {
      words.push_back(to_bits(b, first));
      continue;
    }
    Value* v = llvm::PoisonValue::get(llvm::FixedVectorType::get(first->getType(), packed));
    for (unsigned k = 0; k < packed; ++k)
      v = b.CreateInsertElement(v, values[static_cast<size_t>(registers[i + k])], uint64_t{k});
    words.push_back(b.CreateBitCast(v, b.getInt32Ty()));
  }
  return words;
}

std::string operand_list(size_t first, size_t count) {
  std::string s = "{";
  for (size_t i = 0; i < count; ++i) s += fmt::format("{}${}", i ? ", " : "", first + i);
  return s + "}";
}

/// One instruction; `sums` are the accumulator's registers (f32, i32, or two halves in an i32), before and after.
void emit_mma(llvm::IRBuilderBase& b, const target::MmaRow& row, std::span<Value* const> left,
              std::span<Value* const> right, std::vector<Value*>& sums) {
  const size_t n = sums.size();
  const std::string_view sum = sums[0]->getType()->isFloatTy() ? "f" : "r";
  const std::string text =
      fmt::format("mma.sync.aligned.{}.row.col.{} {}, {}, {}, {};", row.shape, row.types, operand_list(0, n),
                  operand_list(n, left.size()), operand_list(n + left.size(), right.size()),
                  operand_list(n + left.size() + right.size(), n));
  std::string constraints;
  std::vector<Value*> args(left.begin(), left.end());
  args.insert(args.end(), right.begin(), right.end());
  for (size_t i = 0; i < n; ++i) constraints += fmt::format("={},", sum);
  for (size_t i = 0; i < args.size(); ++i) constraints += "r,";
  for (size_t i = 0; i < n; ++i) constraints += fmt::format("{}{}", sum, i + 1 < n ? "," : "");
  args.insert(args.end(), sums.begin(), sums.end());
  std::vector<llvm::Type*> types;
  for (Value* v : args) types.push_back(v->getType());
  const std::vector<llvm::Type*> members(n, sums[0]->getType());
  auto* type = llvm::FunctionType::get(llvm::StructType::get(b.getContext(), members), types, false);
  auto* code = llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/false);
  llvm::CallInst* call = b.CreateCall(type, code, args);
  call->setConvergent();
  call->setDoesNotThrow();
  call->addFnAttr(llvm::Attribute::WillReturn);
  call->setMemoryEffects(llvm::MemoryEffects::none());
  for (size_t i = 0; i < n; ++i) sums[i] = b.CreateExtractValue(call, static_cast<unsigned>(i));
}

void by_instruction(Lowering& l, const ir::Op& op, const target::MmaRow& row, const layout::DotPlan& plan,
                    Registers& sums) {
  const Registers &left = l.of(op.operand(0)), &right = l.of(op.operand(1));
  llvm::Type* element = sums[0]->getType();
  for (const layout::DotStep& step : plan.steps) {
    std::vector<Value*> c;
    if (element->isHalfTy())
      c = words_of(l.b, sums, step.c);
    else
      for (int r : step.c) c.push_back(sums[static_cast<size_t>(r)]);
    emit_mma(l.b, row, words_of(l.b, left, step.a), words_of(l.b, right, step.b), c);
    // The last first: of a register that stands there twice, the first counts.
    for (size_t i = step.c.size(); i-- > 0;) {
      Value* sum = c[element->isHalfTy() ? i / 2 : i];
      if (element->isHalfTy())
        sum = l.b.CreateExtractElement(l.b.CreateBitCast(sum, llvm::FixedVectorType::get(element, 2)), i % 2);
      sums[static_cast<size_t>(step.c[i])] = sum;
    }
  }
}

void by_element(Lowering& l, const ir::Op& op, const layout::DotPlan& plan, Registers& sums) {
  const Registers &left = l.of(op.operand(0)), &right = l.of(op.operand(1));
  const DType from = op.operand(0)->type.dtype;
  for (const layout::DotStep& step : plan.steps) {
    Value *a = left[static_cast<size_t>(step.a[0])], *b = right[static_cast<size_t>(step.b[0])];
    Value*& sum = sums[static_cast<size_t>(step.c[0])];
    if (is_int(from)) {
      auto wide = [&](Value* v) {
        return is_signed(from) ? l.b.CreateSExt(v, sum->getType()) : l.b.CreateZExt(v, sum->getType());
      };
      sum = l.b.CreateAdd(l.b.CreateMul(wide(a), wide(b)), sum);
    } else {
      sum = l.b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {a, b, sum});
    }
  }
}

}  // namespace

Status lower_dot(Lowering& l, const ir::Op& op) {
  const ir::Type &operand = op.operand(0)->type, &type = op.result()->type;
  const target::MmaRow* row = target::mma_row(op.text_or(ir::AttrName::kMma, target::kFma));
  if (!row && !is_int(operand.dtype) && (operand.dtype != type.dtype || is_half(type.dtype)))
    return error_at(op.range, ErrorKind::kUnsupported, "a dot of {} in {} has no instruction on {}",
                    name(operand.dtype), name(type.dtype), l.target.name);
  const auto plan = analysis::plan_dot(op);
  KILN_ASSERT(plan, "{}", ir::print(op));
  Registers sums = l.of(op.operand(2));
  if (row)
    by_instruction(l, op, *row, *plan, sums);
  else
    by_element(l, op, *plan, sums);
  Registers out(sums.size());
  for (size_t r = 0; r < out.size(); ++r) out[r] = sums[static_cast<size_t>(plan->copy_of[r])];
  l.values[op.result()] = std::move(out);
  return {};
}

}  // namespace kiln::lower
