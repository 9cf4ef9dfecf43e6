// Matrix products in registers: mma.sync on fragments, or scalar multiplications.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "compiler/analysis/dot_layouts.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/lower/nvptx/lowering.h"
#include "compiler/target/mma.h"
#include "support/diag.h"

namespace kiln::lower {

using llvm::Value;

std::string operand_list(size_t first, size_t count) {
  std::string s = "{";
  for (size_t i = 0; i < count; ++i) s += fmt::format("{}${}", i ? ", " : "", first + i);
  return s + "}";
}

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

/// A register of four fp8 as two of two f16: the first two elements, the last two. Exact.
std::array<Value*, 2> unpacked(llvm::IRBuilderBase& b, Value* word, DType from) {
  std::array<Value*, 2> out;
  for (unsigned half = 0; half < 2; ++half) {
    if (from == DType::kF8E5M2) {  // the upper bytes of f16
      Value* pair = b.CreateLShr(word, 16 * half);
      out[half] = llvm::isa<llvm::Constant>(word)
                      ? b.CreateOr(b.CreateShl(b.CreateAnd(pair, 0xff), 8), b.CreateShl(b.CreateAnd(pair, 0xff00), 16))
                      : b.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {},
                                          {word, b.getInt32(0), b.getInt32(half == 0 ? 0x1404 : 0x3424)});
    } else {
      Value* pair = b.CreateTrunc(b.CreateLShr(word, 16 * half), b.getInt16Ty());
      out[half] =
          b.CreateBitCast(b.CreateIntrinsic(llvm::Intrinsic::nvvm_e4m3x2_to_f16x2_rn, {}, {pair}), b.getInt32Ty());
    }
  }
  return out;
}

/// A product of fp8 as two of f16, each of half the depth, which is what the assembler makes of it on such a target
/// too, with as many instructions. ptxas 13.0.88 does it wrongly where an operand is a constant that another
/// instruction has in a register: of {0, 0, 0, 0} beside a masked load that falls back to the same 0, it unpacks the
/// upper halves from the immediate 0xc8. Which elements a step takes along k is free as long as both operands agree.
void emit_mma_by_f16(llvm::IRBuilderBase& b, const target::MmaRow& row, std::span<Value* const> left,
                     std::span<Value* const> right, std::vector<Value*>& sums) {
  const target::MmaRow& halves = *target::mma_row("m16n8k16.f32.f16.f16.f32");
  std::vector<std::array<Value*, 2>> x, y;
  for (Value* word : left) x.push_back(unpacked(b, word, row.a));
  for (Value* word : right) y.push_back(unpacked(b, word, row.b));
  for (size_t k = 0; k < 2; ++k)  // a's registers: two blocks of rows, then the same further along k
    emit_mma(b, halves, std::array{x[2 * k][0], x[2 * k + 1][0], x[2 * k][1], x[2 * k + 1][1]}, y[k], sums);
}

/// In how many parts a thread adds up each of its sums. An instruction waits for the one before it of its sum, several
/// times as long as a scheduler takes to begin another: with few sums and a long k the tensor cores would idle.
int parts_of(const layout::DotPlan& plan) {
  constexpr size_t kSumsUnderWay = 4, kLeastSteps = 8;  // of a part
  std::set<int> sums;
  for (const layout::DotStep& step : plan.steps) sums.insert(step.c[0]);
  int parts = 1;
  while (2 * static_cast<size_t>(parts) * sums.size() <= kSumsUnderWay &&
         plan.steps.size() >= 2 * static_cast<size_t>(parts) * sums.size() * kLeastSteps)
    parts *= 2;
  return parts;
}

void by_instruction(Lowering& l, const ir::Op& op, const target::MmaRow& row, const layout::DotPlan& plan,
                    Registers& whole) {
  const Registers &left = l.of(op.operand(0)), &right = l.of(op.operand(1));
  llvm::Type* element = whole[0]->getType();
  const int parts = element->isHalfTy() ? 1 : parts_of(plan);
  std::vector<Registers> others(static_cast<size_t>(parts - 1),
                                Registers(whole.size(), llvm::Constant::getNullValue(element)));
  std::map<int, int> steps_of;  // a sum, so far
  for (const layout::DotStep& step : plan.steps) {
    const int part = steps_of[step.c[0]]++ % parts;
    Registers& sums = part == 0 ? whole : others[static_cast<size_t>(part - 1)];
    std::vector<Value*> c;
    if (element->isHalfTy())
      c = words_of(l.b, sums, step.c);
    else
      for (int r : step.c) c.push_back(sums[static_cast<size_t>(r)]);
    const std::vector<Value*> a = words_of(l.b, left, step.a), b = words_of(l.b, right, step.b);
    if (is_fp8(row.a) && l.target.has(target::kFp8MmaByF16))
      emit_mma_by_f16(l.b, row, a, b, c);
    else
      emit_mma(l.b, row, a, b, c);
    // The last first: of a register that stands there twice, the first counts.
    for (size_t i = step.c.size(); i-- > 0;) {
      Value* sum = c[element->isHalfTy() ? i / 2 : i];
      if (element->isHalfTy())
        sum = l.b.CreateExtractElement(l.b.CreateBitCast(sum, llvm::FixedVectorType::get(element, 2)), i % 2);
      sums[static_cast<size_t>(step.c[i])] = sum;
    }
  }
  const auto add = [&](Value* a, Value* b) {
    return element->isFloatingPointTy() ? l.b.CreateFAdd(a, b) : l.b.CreateAdd(a, b);
  };
  for (const Registers& part : others)
    for (size_t r = 0; r < whole.size(); ++r)
      if (!llvm::isa<llvm::Constant>(part[r])) whole[r] = add(whole[r], part[r]);
}

/// An operand whose elements are in registers, or come from shared memory when they are first asked for.
class Operand {
 public:
  Operand(Lowering& l, const ir::Value* v) : l_(l), type_(v->type) {
    if (!v->op || v->op->kind != ir::OpKind::kSharedLoad || !is_read_by_dot(*v->op)) {
      values_ = l.of(v);
      return;
    }
    const ir::Value* handle = v->op->operand(0);
    handle_ = l.of(handle)[0];
    access_ = layout::plan_shared_access(*type_.layout, *handle->type.layout, size_of(type_.dtype));
    values_.resize(static_cast<size_t>(num_registers(type_)));
    for (const std::vector<int>& group : access_.groups)
      for (int r : group) group_of_[r] = &group;
  }

  bool is_in_shared() const { return handle_ != nullptr; }

  /// Plans name the lowest of the registers that have an element, as accesses do.
  Value* at(int r) {
    Value*& v = values_[static_cast<size_t>(r)];
    if (!v) read_group(l_, handle_, type_, access_, *group_of_.at(r), values_);
    return v;
  }

 private:
  Lowering& l_;
  const ir::Type& type_;
  Registers values_;
  Value* handle_ = nullptr;
  layout::SharedAccess access_;
  std::unordered_map<int, const std::vector<int>*> group_of_;
};

/// Nothing behind it is moved ahead of it: else LLVM's order finishes one sum after the other, with all that is along k
/// in registers.
void end_slice(llvm::IRBuilderBase& b, Registers& sums, std::span<const int> distinct) {
  llvm::Type* sum_type = sums[static_cast<size_t>(distinct[0])]->getType();
  const unsigned bits = sum_type->getScalarSizeInBits();
  llvm::Type* word = b.getIntNTy(bits);
  const std::vector<llvm::Type*> words(distinct.size(), word);
  std::vector<Value*> args;
  for (int r : distinct) args.push_back(b.CreateBitCast(sums[static_cast<size_t>(r)], word));
  std::string constraints;
  for (size_t i = 0; i < args.size(); ++i)
    constraints += fmt::format("={},", bits == 64 ? "l" : bits == 32 ? "r" : "h");
  for (size_t i = 0; i < args.size(); ++i) constraints += fmt::format("{},", i);
  llvm::Type* result = args.size() == 1 ? word : llvm::StructType::get(b.getContext(), words);
  auto* type = llvm::FunctionType::get(result, words, false);
  llvm::CallInst* call = b.CreateCall(type, llvm::InlineAsm::get(type, "", constraints + "~{memory}", true), args);
  call->setDoesNotThrow();
  for (size_t i = 0; i < args.size(); ++i)
    sums[static_cast<size_t>(distinct[i])] =
        b.CreateBitCast(args.size() == 1 ? call : b.CreateExtractValue(call, static_cast<unsigned>(i)), sum_type);
}

void by_element(Lowering& l, const ir::Op& op, const layout::DotPlan& plan, Registers& sums) {
  constexpr size_t kSlice = 8;  // along k, where operands come from shared memory
  Operand left(l, op.operand(0)), right(l, op.operand(1));
  const DType from = op.operand(0)->type.dtype;
  std::vector<int> distinct;  // the sums, of which each k has a step
  for (const layout::DotStep& step : plan.steps) {
    if (!distinct.empty() && step.c[0] == distinct[0]) break;
    distinct.push_back(step.c[0]);
  }
  const bool in_slices = left.is_in_shared() || right.is_in_shared();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const layout::DotStep& step = plan.steps[i];
    if (in_slices && i > 0 && i % (kSlice * distinct.size()) == 0) end_slice(l.b, sums, distinct);
    Value *a = left.at(step.a[0]), *b = right.at(step.b[0]);
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

bool is_read_by_dot(const ir::Op& load) {
  // Slices of rings are this deep where a program's own product asks for them; products of the planner take 32.
  constexpr int64_t kDeep = 64, kDeepInBuffer = 32;
  const ir::Value* tile = load.result();
  if (tile->uses.size() != 1) return false;
  const ir::Use use = tile->uses[0];
  if (use.op->kind != ir::OpKind::kDot || use.index > 1 || analysis::uses_mma(*use.op)) return false;
  const ir::Shape& shape = tile->type.shape;
  const int64_t depth = shape[use.index == 0 ? shape.rank - 1 : shape.rank - 2];
  const ir::Op* handle = load.operand(0)->op;
  if (depth < (handle && handle->kind == ir::OpKind::kSharedAlloc ? kDeepInBuffer : kDeep)) return false;
  const ir::Op* next = load.next;
  while (next && next->kind == ir::OpKind::kSharedLoad) next = next->next;
  return next == use.op;
}

template <>
Status lower<ir::OpKind::kDot>(Lowering& l, const ir::Op& op) {
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
