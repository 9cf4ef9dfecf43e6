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

}  // namespace

template <>
Status lower<ir::OpKind::kInlineAsm>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilderBase& b = l.b;
  const auto pack = static_cast<size_t>(op.int_attr(AttrName::kPack));
  const auto chosen = static_cast<size_t>(op.int_attr(AttrName::kOutput));
  const std::vector<ir::Type> outputs = ir::asm_outputs(op);
  std::vector<ir::Type> inputs;
  for (const ir::Value* v : op.operands) inputs.push_back(v->type.scalar());
  std::string wrong;
  const ir::AsmConstraints constraints = ir::match_asm(std::get<std::string>(*op.find(AttrName::kConstraints)), outputs,
                                                       inputs, static_cast<int>(pack), &wrong);
  KILN_ASSERT(wrong.empty(), "{}", wrong);

  std::vector<llvm::Type*> results, arguments;
  for (char letter : constraints.outputs) results.push_back(asm_type(l.context(), letter));
  for (char letter : constraints.inputs) arguments.push_back(asm_type(l.context(), letter));
  llvm::Type* result = results.size() == 1 ? results[0] : llvm::StructType::get(l.context(), results);
  auto* type = llvm::FunctionType::get(result, arguments, false);
  const std::string written = fmt::format("{}", fmt::join(constraints.written, ","));
  if (llvm::Error e = llvm::InlineAsm::verify(type, written))
    return error_at(op.range, ErrorKind::kValue, "inline assembly with the constraints {}: {}", written,
                    llvm::toString(std::move(e)));
  auto* code = llvm::InlineAsm::get(type, std::get<std::string>(*op.find(AttrName::kText)), written,
                                    /*hasSideEffects=*/false);

  size_t first_register = 0;
  auto per_register = [&](const ir::Type& t) {
    return static_cast<size_t>(ir::elements_per_register(t, static_cast<int>(pack)));
  };
  for (size_t i = 0; i < chosen; ++i) first_register += pack / per_register(outputs[i]);
  const size_t each = per_register(outputs[chosen]);
  llvm::Type* element = l.type_of(op.result()->type);
  llvm::Type* in_memory = memory_type(element);
  const auto width = static_cast<unsigned>(in_memory->getPrimitiveSizeInBits());

  const auto n = static_cast<size_t>(num_registers(op.result()->type));
  Registers out;
  for (size_t r = 0; r < n; r += pack) {
    std::vector<Value*> operands;
    for (size_t k = 0; k < op.operands.size(); ++k)
      for (size_t i = 0; i < pack; i += per_register(inputs[k]))
        operands.push_back(
            gather_bits(b, l.of(op.operands[k]), r + i, per_register(inputs[k]), arguments[operands.size()]));
    llvm::CallInst* call = b.CreateCall(type, code, operands);
    call->setDoesNotThrow();
    call->addFnAttr(llvm::Attribute::WillReturn);
    call->setMemoryEffects(llvm::MemoryEffects::none());
    for (size_t i = 0; i < pack && r + i < n; ++i) {
      const auto number = static_cast<unsigned>(first_register + i / each);
      Value* v = results.size() == 1 ? static_cast<Value*>(call) : b.CreateExtractValue(call, number);
      v = to_bits(b, v);
      v = b.CreateTrunc(b.CreateLShr(v, static_cast<uint64_t>(width * (i % each))), b.getIntNTy(width));
      out.push_back(from_memory(b, from_bits(b, v, in_memory), element));
    }
  }
  l.values[op.result()] = std::move(out);
  return {};
}

}  // namespace kiln::lower
