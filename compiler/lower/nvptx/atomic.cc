// Global atomics: one of the threads that hold an element performs it; the others get the old value from that thread.
#include <llvm/IR/InlineAsm.h>

#include "compiler/layout/algebra.h"
#include "compiler/lower/nvptx/lowering.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::OpKind;
using ir::Rmw;
using llvm::Value;

namespace {

/// Every thread has a copy of a scalar: all lane and warp bits are copies.
layout::FreeBits copies_of(Lowering& l, const ir::Type& type) {
  if (type.is_tile()) return layout::free_variables(*type.layout);
  layout::FreeBits all;
  all.lane = kLanes - 1;
  all.warp = static_cast<uint32_t>(l.thread.num_warps() - 1);
  return all;
}

/// The PTX type of the operation on elements of `type`: "u32", "s64", "f32", "noftz.f16", "b64".
Result<std::string> ptx_type(Lowering& l, const ir::Op& op, Rmw rmw) {
  const ir::Type& type = op.result()->type;
  const int bits = type.element_bits();
  switch (rmw) {
    case Rmw::kFAdd:
      if (type.dtype == DType::kBF16 && !l.target.has(target::kBf16Arith))
        return with_note(
            error_at(op.range, ErrorKind::kUnsupported, "{} has no atomic add on bf16", l.target.name),
            fmt::format("help: accumulate in f32 or f16, or compile for {}", target::example_with(target::kBf16Arith)));
      return bits == 16 ? fmt::format("noftz.{}", name(type.dtype)) : std::string(name(type.dtype));
    case Rmw::kAdd:
      return fmt::format("u{}", bits);
    case Rmw::kMin:
    case Rmw::kMax:
      return fmt::format("{}{}", is_signed(type.dtype) ? 's' : 'u', bits);
    case Rmw::kAnd:
    case Rmw::kOr:
    case Rmw::kXor:
    case Rmw::kExchange:
      return fmt::format("b{}", bits);
  }
  KILN_UNREACHABLE("rmw");
}

/// One atomic instruction in the threads where `predicate` holds (null: all); elsewhere the result is 0. Returns the
/// old bits; null when `wanted` is false.
Value* emit_atomic(Lowering& l, const std::string& opcode, Value* address, std::span<Value* const> operands,
                   Value* predicate, bool wanted) {
  llvm::IRBuilder<>& b = l.b;
  llvm::Type* bits_type = operands[0]->getType();
  const unsigned bits = bits_type->getIntegerBitWidth();
  const char* constraint = bits == 64 ? "l" : bits == 32 ? "r" : "h";
  std::string text, constraints;
  int next = 0;
  std::vector<Value*> args{address};
  if (wanted) constraints += fmt::format("=&{},", constraint), ++next;
  const int address_at = next++;
  constraints += "l";
  std::string list;
  for (Value* v : operands) {
    constraints += fmt::format(",{}", constraint);
    list += fmt::format(", ${}", next++);
    args.push_back(v);
  }
  if (predicate) {
    constraints += ",b";
    text = fmt::format("@${} ", next++);
    args.push_back(predicate);
    if (wanted) {
      constraints += ",0";
      args.push_back(llvm::ConstantInt::get(bits_type, 0));
    }
  }
  text += fmt::format("{} {}[${}]{};", opcode, wanted ? "$0, " : "_, ", address_at, list);
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto* type = llvm::FunctionType::get(wanted ? bits_type : b.getVoidTy(), types, false);
  llvm::CallInst* call = b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints + ",~{memory}", true), args);
  call->setDoesNotThrow();
  return wanted ? call : nullptr;
}

/// The owner's value in every thread that holds a copy: through a small array of shared memory when warps are copies.
Value* share_with_copies(Lowering& l, Value* v, const layout::FreeBits& copies) {
  llvm::IRBuilder<>& b = l.b;
  if (copies.warp != 0) {
    const auto words = static_cast<unsigned>(l.source.num_warps * kLanes);
    llvm::GlobalVariable* box = l.module.getNamedGlobal("kiln_atomic_results");
    auto* type = llvm::ArrayType::get(b.getInt64Ty(), words);
    if (!box)
      box = new llvm::GlobalVariable(l.module, type, false, llvm::GlobalValue::InternalLinkage,
                                     llvm::PoisonValue::get(type), "kiln_atomic_results", nullptr,
                                     llvm::GlobalValue::NotThreadLocal, 3);
    Value* owner_thread = b.CreateAnd(l.thread.thread(), ~(copies.lane | copies.warp << 5));
    auto slot = [&](Value* index) { return b.CreateInBoundsGEP(type, box, {b.getInt32(0), index}); };
    l.when(l.thread.is_zero(copies.lane, copies.warp),
           [&] { b.CreateStore(b.CreateZExt(v, b.getInt64Ty()), slot(l.thread.thread())); });
    l.barrier();
    Value* got = b.CreateTrunc(b.CreateLoad(b.getInt64Ty(), slot(owner_thread)), v->getType());
    l.barrier();  // the array is used again by the next register
    return got;
  }
  if (copies.lane != 0) return shuffle_from(b, v, b.CreateAnd(l.thread.lane(), ~copies.lane));
  return v;
}

Status lower_atomic(Lowering& l, const ir::Op& op, const std::string& opcode, int num_values, int mask_at) {
  llvm::IRBuilder<>& b = l.b;
  const ir::Type& type = op.result()->type;
  const bool wanted = !op.result()->uses.empty();
  const layout::FreeBits copies = copies_of(l, type);
  Value* owner = l.thread.is_zero(copies.lane, copies.warp);
  llvm::Type* element = l.type_of(type);
  const Registers& addresses = l.of(op.operand(0));
  const Registers* masks = mask_at < static_cast<int>(op.operands.size()) ? &l.of(op.operand(mask_at)) : nullptr;
  // A scalar atomic is how programs hand data to each other: what this program's other threads wrote must be done
  // before, and what they read must come after.
  const bool orders = type.is_scalar() && op.word<ir::Sem>() != ir::Sem::kRelaxed && l.thread.num_warps() * kLanes > 1;
  if (orders) l.barrier();
  Registers out(addresses.size());
  for (size_t r = 0; r < out.size(); ++r) {
    if (r & copies.reg) {
      size_t original = 0;
      while (layout::index_at(*type.layout, static_cast<uint32_t>(original), 0, 0) !=
             layout::index_at(*type.layout, static_cast<uint32_t>(r), 0, 0))
        ++original;
      out[r] = out[original];
      continue;
    }
    Value* predicate = owner;
    if (masks) predicate = owner ? b.CreateAnd(owner, (*masks)[r]) : (*masks)[r];
    std::vector<Value*> operands;
    for (int i = 1; i <= num_values; ++i) operands.push_back(to_bits(b, l.of(op.operand(i))[r]));
    Value* old = emit_atomic(l, opcode, addresses[r], operands, predicate, wanted);
    out[r] = wanted ? from_bits(b, share_with_copies(l, old, copies), element) : llvm::PoisonValue::get(element);
  }
  if (orders && !(wanted && copies.warp != 0)) l.barrier();
  l.values[op.result()] = std::move(out);
  return {};
}

std::string atom(const ir::Op& op) {
  return fmt::format("atom.{}.{}.global", ir::spelling(op.word<ir::Sem>()), ir::spelling(op.word<ir::Scope>()));
}

std::string_view ptx_name(Rmw rmw) {
  if (rmw == Rmw::kFAdd) return "add";
  return rmw == Rmw::kExchange ? "exch" : ir::spelling(rmw);
}

}  // namespace

template <>
Status lower<OpKind::kAtomicRmw>(Lowering& l, const ir::Op& op) {
  const auto rmw = op.word<Rmw>();
  KILN_TRY(const std::string type, ptx_type(l, op, rmw));
  return lower_atomic(l, op, fmt::format("{}.{}.{}", atom(op), ptx_name(rmw), type), 1, 2);
}

template <>
Status lower<OpKind::kAtomicCas>(Lowering& l, const ir::Op& op) {
  return lower_atomic(l, op, fmt::format("{}.cas.b{}", atom(op), op.result()->type.element_bits()), 2, 3);
}

}  // namespace kiln::lower
