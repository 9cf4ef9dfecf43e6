// Inline assembly: the elements of a thread, in the order of its registers, in groups of `pack`.
#include "compiler/ir/inline_asm.h"

#include <fmt/ranges.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/Support/Error.h>

#include "compiler/lower/nvptx/lowering.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::AttrName;
using llvm::Value;

namespace {

llvm::Type* asm_type(llvm::LLVMContext& context, char letter) {
  if (letter == 'f') return llvm::Type::getFloatTy(context);
  if (letter == 'd') return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(ir::asm_register_bits(letter)));
}

/// `each` elements from `first` on as one operand, the first in its low bits; elements beyond the thread's are 0.
Value* gather_bits(llvm::IRBuilderBase& b, const Registers& from, size_t first, size_t each, llvm::Type* operand) {
  const unsigned bits = static_cast<unsigned>(operand->getPrimitiveSizeInBits());
  Value* all = b.getIntN(bits, 0);
  for (size_t i = 0; i < each && first + i < from.size(); ++i) {
    Value* v = to_bits(b, to_memory(b, from[first + i]));
    const unsigned width = v->getType()->getIntegerBitWidth();
    all = b.CreateOr(all, b.CreateShl(b.CreateZExt(v, b.getIntNTy(bits)), static_cast<uint64_t>(width * i)));
  }
  return b.CreateBitCast(all, operand);
}

size_t per_register(const ir::Type& t, size_t pack) {
  return static_cast<size_t>(ir::elements_per_register(t, static_cast<int>(pack)));
}

/// The instructions as LLVM calls them.
struct Code {
  llvm::FunctionType* type = nullptr;
  llvm::InlineAsm* code = nullptr;
  std::vector<ir::Type> inputs;
  std::vector<llvm::Type*> results, arguments;
  std::vector<char> letters;  // of the arguments
};

Result<Code> asm_code(Lowering& l, const ir::Op& op, size_t pack, bool has_effects) {
  const std::vector<ir::Type> outputs = ir::asm_outputs(op);
  Code out;
  std::vector<ir::Type>& inputs = out.inputs;
  for (const ir::Value* v : op.operands) inputs.push_back(v->type.scalar());
  std::string wrong;
  const ir::AsmConstraints constraints = ir::match_asm(std::get<std::string>(*op.find(AttrName::kConstraints)), outputs,
                                                       inputs, static_cast<int>(pack), &wrong);
  KILN_ASSERT(wrong.empty(), "{}", wrong);

  std::vector<llvm::Type*>&results = out.results, &arguments = out.arguments;
  for (char letter : constraints.outputs) results.push_back(asm_type(l.context(), letter));
  for (char letter : constraints.inputs) arguments.push_back(asm_type(l.context(), letter));
  out.letters = constraints.inputs;
  llvm::Type* result = results.empty()       ? llvm::Type::getVoidTy(l.context())
                       : results.size() == 1 ? results[0]
                                             : llvm::StructType::get(l.context(), results);
  out.type = llvm::FunctionType::get(result, arguments, false);
  const std::string written = fmt::format("{}", fmt::join(constraints.written, ","));
  if (llvm::Error e = llvm::InlineAsm::verify(out.type, written))
    return error_at(op.range, ErrorKind::kValue, "inline assembly with the constraints {}: {}", written,
                    llvm::toString(std::move(e)));
  out.code = llvm::InlineAsm::get(out.type, std::get<std::string>(*op.find(AttrName::kText)), written, has_effects);
  return out;
}

/// A call for the elements from register `first` on.
Result<llvm::CallInst*> asm_call(Lowering& l, const ir::Op& op, const Code& code, size_t first, size_t pack) {
  std::vector<Value*> operands;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const size_t each = per_register(code.inputs[k], pack);
    for (size_t i = 0; i < pack; i += each) {
      const char letter = code.letters[operands.size()];
      operands.push_back(gather_bits(l.b, l.of(op.operands[k]), first + i, each, code.arguments[operands.size()]));
      if (ir::is_asm_immediate(letter) && !llvm::isa<llvm::ConstantInt>(operands.back()))
        return error_at(op.range, ErrorKind::kValue,
                        "argument {} of inline assembly has the constraint {}, which takes a constant", k, letter);
    }
  }
  llvm::CallInst* call = l.b.CreateCall(code.type, code.code, operands);
  call->setDoesNotThrow();
  return call;
}

/// Element `i` of the group that a call has made, of the output whose registers begin at `first_register`.
Value* asm_result(Lowering& l, llvm::CallInst* call, const Code& code, size_t first_register, size_t each, size_t i,
                  const ir::Type& type) {
  llvm::IRBuilderBase& b = l.b;
  llvm::Type* element = l.type_of(type);
  llvm::Type* in_memory = memory_type(element);
  const auto width = static_cast<unsigned>(in_memory->getPrimitiveSizeInBits());
  const auto number = static_cast<unsigned>(first_register + i / each);
  Value* v = code.results.size() == 1 ? static_cast<Value*>(call) : b.CreateExtractValue(call, number);
  v = b.CreateLShr(to_bits(b, v), static_cast<uint64_t>(width * (i % each)));
  return from_memory(b, from_bits(b, b.CreateTrunc(v, b.getIntNTy(width)), in_memory), element);
}

}  // namespace

template <>
Status lower<ir::OpKind::kInlineAsm>(Lowering& l, const ir::Op& op) {
  const auto pack = static_cast<size_t>(op.int_attr(AttrName::kPack));
  const auto chosen = static_cast<size_t>(op.int_attr(AttrName::kOutput));
  KILN_TRY(Code code, asm_code(l, op, pack, false));
  const std::vector<ir::Type> outputs = ir::asm_outputs(op);
  size_t first_register = 0;
  for (size_t i = 0; i < chosen; ++i) first_register += pack / per_register(outputs[i], pack);
  const size_t each = per_register(outputs[chosen], pack);
  const auto n = static_cast<size_t>(num_registers(op.result()->type));
  Registers out;
  for (size_t r = 0; r < n; r += pack) {
    KILN_TRY(llvm::CallInst * call, asm_call(l, op, code, r, pack));
    call->addFnAttr(llvm::Attribute::WillReturn);
    call->setMemoryEffects(llvm::MemoryEffects::none());
    for (size_t i = 0; i < pack && r + i < n; ++i)
      out.push_back(asm_result(l, call, code, first_register, each, i, op.result()->type));
  }
  l.values[op.result()] = std::move(out);
  return {};
}

template <>
Status lower<ir::OpKind::kAsmEffect>(Lowering& l, const ir::Op& op) {
  const auto pack = static_cast<size_t>(op.int_attr(AttrName::kPack));
  KILN_TRY(Code code, asm_code(l, op, pack, true));
  const auto n = static_cast<size_t>(op.operands.empty() ? 1 : num_registers(op.operand(0)->type));
  std::vector<Registers> results(op.results.size());
  for (size_t r = 0; r < n; r += pack) {
    KILN_TRY(llvm::CallInst * call, asm_call(l, op, code, r, pack));
    // It may be a barrier, and must not come under other conditions.
    call->addFnAttr(llvm::Attribute::Convergent);
    size_t first_register = 0;
    for (size_t k = 0; k < results.size(); ++k) {
      const ir::Type& type = op.results[k]->type;
      const size_t each = per_register(type.scalar(), pack);
      for (size_t i = 0; i < pack && r + i < n; ++i)
        results[k].push_back(asm_result(l, call, code, first_register, each, i, type));
      first_register += pack / each;
    }
  }
  for (size_t k = 0; k < results.size(); ++k) l.values[op.results[k]] = std::move(results[k]);
  return {};
}

}  // namespace kiln::lower
