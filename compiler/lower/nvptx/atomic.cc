// Global atomics: one of the threads that hold an element performs it; the others get the old value from that thread.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>

#include <algorithm>
#include <optional>

#include "compiler/layout/algebra.h"
#include "compiler/lower/nvptx/lowering.h"
#include "compiler/lower/nvptx/vectors.h"
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
      if (type.is_float()) return std::string("b16");  // swapped in
      return fmt::format("{}{}", is_signed(type.dtype) ? 's' : 'u', bits);
    case Rmw::kAnd:
    case Rmw::kOr:
    case Rmw::kXor:
    case Rmw::kExchange:
      return fmt::format("b{}", bits);
  }
  KILN_UNREACHABLE("rmw");
}

struct Instruction {
  std::string name, type;     // "add", and "f32": of one element
  Packing packing;            // the elements that one instruction does
  std::string computed = {};  // "max.f16": computed and swapped in, by a name of "cas", as no atomic does it

  /// "v2.f32", "noftz.v2.f16x2".
  std::string vector_type() const {
    const std::string elements = packing.per_word() == 2 ? "x2" : "";
    const std::string words = packing.words() > 1 ? fmt::format("v{}.", packing.words()) : "";
    const bool rounds = type.starts_with("noftz.");
    return fmt::format("{}{}{}{}", rounds ? "noftz." : "", words, type.substr(rounds ? 6 : 0), elements);
  }
};

/// One atomic instruction in the threads where `predicate` holds (null: all); elsewhere the result is 0. `operands` are
/// words: so many for each value as the result has. Returns the old words; none when not `wanted`.
std::vector<Value*> emit_atomic(Lowering& l, const std::string& opcode, Value* address,
                                std::span<Value* const> operands, size_t words, Value* predicate, bool wanted) {
  llvm::IRBuilder<>& b = l.b;
  llvm::Type* bits_type = operands[0]->getType();
  const unsigned bits = bits_type->getIntegerBitWidth();
  const char* constraint = bits == 64 ? "l" : bits == 32 ? "r" : "h";
  std::string text, constraints;
  size_t next = wanted ? words : 0;
  std::vector<Value*> args{address};
  for (size_t i = 0; i < next; ++i) constraints += fmt::format("=&{},", constraint);
  const size_t address_at = next++;
  constraints += "l";
  std::string list;
  for (size_t i = 0; i < operands.size(); i += words) {
    list += ", " + word_list(next, words);
    next += words;
  }
  for (Value* v : operands) {
    constraints += fmt::format(",{}", constraint);
    args.push_back(v);
  }
  if (predicate) {
    constraints += ",b";
    text = fmt::format("@${} ", next++);
    args.push_back(predicate);
    for (size_t i = 0; wanted && i < words; ++i) {
      constraints += fmt::format(",{}", i);
      args.push_back(llvm::ConstantInt::get(bits_type, 0));
    }
  }
  if (opcode.starts_with("red.")) {
    text += fmt::format("{} [${}]{};", opcode, address_at, list);
  } else {
    // "_" for what nobody reads would say as much, but there are vectors without one, and ptxas up to 13.0 crashes on
    // one of bf16. It makes a reduction of a register that nobody reads as well, but not of several.
    std::string old = word_list(0, words);
    if (!wanted) {
      old = words == 1 ? "old0" : words == 2 ? "{old0, old1}" : "{old0, old1, old2, old3}";
      text = fmt::format("{{ .reg .b{} old<{}>; {}", bits, words, text);
    }
    text += fmt::format("{} {}, [${}]{};{}", opcode, old, address_at, list, wanted ? "" : " }");
  }
  llvm::Type* result = b.getVoidTy();
  if (wanted)
    result = words == 1 ? bits_type : llvm::StructType::get(b.getContext(), std::vector<llvm::Type*>(words, bits_type));
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::CallInst* call = b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints + ",~{memory}", true), args);
  call->setDoesNotThrow();
  std::vector<Value*> got;
  for (size_t i = 0; wanted && i < words; ++i)
    got.push_back(words == 1 ? call : b.CreateExtractValue(call, static_cast<unsigned>(i)));
  return got;
}

/// The same by compare and swap of one element of 16 bits, until nobody came in between: `swap` is the whole opcode of
/// that, `computed` the instruction that gives the new value.
Value* emit_swapped(Lowering& l, const std::string& swap, const std::string& computed, ir::Scope scope, Value* address,
                    Value* operand, Value* predicate) {
  llvm::IRBuilder<>& b = l.b;
  std::string text = "{ .reg .pred again; .reg .b16 seen, best; mov.b16 $0, 0; ";
  std::vector<Value*> args{address, operand};
  std::string constraints = "=&h,l,h";
  if (predicate) {
    text += "@!$3 bra DONE; ";
    constraints += ",b";
    args.push_back(predicate);
  }
  text += fmt::format(
      "ld.relaxed.{}.global.b16 seen, [$1]; RETRY: {} best, seen, $2; {} $0, [$1], seen, best; "
      "setp.ne.b16 again, $0, seen; mov.b16 seen, $0; @again bra RETRY; DONE: }}",
      ir::spelling(scope), computed, swap);
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto* type = llvm::FunctionType::get(operand->getType(), types, false);
  llvm::CallInst* call = b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints + ",~{memory}", true), args);
  call->setDoesNotThrow();
  return call;
}

/// A fence of the threads that an atomic of `scope` orders.
void fence(llvm::IRBuilderBase& b, ir::Scope scope) {
  auto* type = llvm::FunctionType::get(b.getVoidTy(), false);
  llvm::CallInst* call = b.CreateCall(
      type, llvm::InlineAsm::get(type, fmt::format("fence.acq_rel.{};", ir::spelling(scope)), "~{memory}", true));
  call->setDoesNotThrow();
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

Status lower_atomic(Lowering& l, const ir::Op& op, const Instruction& what, int num_values, int mask_at) {
  llvm::IRBuilder<>& b = l.b;
  const ir::Type& type = op.result()->type;
  const bool wanted = !op.result()->uses.empty();
  const layout::FreeBits copies = copies_of(l, type);
  Value* owner = l.thread.is_zero(copies.lane, copies.warp);
  llvm::Type* element = l.type_of(type);
  const Registers& addresses = l.of(op.operand(0));
  const Registers* masks = mask_at < static_cast<int>(op.operands.size()) ? &l.of(op.operand(mask_at)) : nullptr;
  const auto sem = op.word<ir::Sem>();
  const auto scope = op.word<ir::Scope>();
  const bool ends_within = masks && l.axis.may_end_within_vector(&op);
  const int width = wanted && ends_within ? 1 : what.packing.width;
  // A scalar atomic is how programs hand data to each other: what this program's other threads wrote must be done
  // before, and what they read must come after.
  const bool orders = type.is_scalar() && sem != ir::Sem::kRelaxed && l.thread.num_warps() * kLanes > 1;
  if (orders) l.barrier();
  Registers out(addresses.size());
  // Each atomic that orders waits for the memory of its whole thread. Those of a tile have no order among themselves,
  // so that one fence before them all and one behind say as much.
  const bool is_fenced = static_cast<int>(out.size()) > width && sem != ir::Sem::kRelaxed;
  if (is_fenced && sem != ir::Sem::kAcquire) fence(b, scope);
  // In Triton's order, for what looks for atomics in a kernel's PTX; assemblers take any.
  const ir::Sem own_sem = is_fenced ? ir::Sem::kRelaxed : sem;
  const std::string how = fmt::format("global.{}.{}.{}.", ir::spelling(scope), ir::spelling(own_sem), what.name);
  // Old values that nobody reads come back all the same, where an instruction has several words.
  const bool can_reduce = !wanted && (own_sem == ir::Sem::kRelaxed || own_sem == ir::Sem::kRelease);
  std::optional<VectorEnds> ends;
  if (ends_within && width > 1) ends.emplace(l, *masks, width);

  // The bits that the elements from register r on held.
  auto emit = [&](Value* address, size_t r, Value* mask, const Packing& packing) {
    Value* predicate = owner && mask ? b.CreateAnd(owner, mask) : owner ? owner : mask;
    std::vector<Value*> operands;
    for (int i = 1; i <= num_values; ++i) {
      std::vector<Value*> bits;
      for (size_t k = 0; k < static_cast<size_t>(packing.width); ++k)
        bits.push_back(to_bits(b, l.of(op.operand(i))[r + k]));
      std::ranges::copy(packing.width == 1 ? bits : pack(b, bits, packing), std::back_inserter(operands));
    }
    if (!what.computed.empty())
      return std::vector{
          emit_swapped(l, "atom." + how + what.type, what.computed, scope, address, operands[0], predicate)};
    const size_t words = operands.size() / static_cast<size_t>(num_values);
    const std::string opcode =
        (can_reduce && words > 1 ? "red." : "atom.") + how + (packing.width == 1 ? what.type : what.vector_type());
    std::vector<Value*> old = emit_atomic(l, opcode, address, operands, words, predicate, wanted);
    if (packing.width == 1 || old.empty()) return old;
    std::vector<Value*> elements;
    unpack(b, old, packing, b.getIntNTy(static_cast<unsigned>(packing.bytes) * 8), elements);
    return elements;
  };
  const Packing packing{width, what.packing.bytes}, one{1, what.packing.bytes};
  for (size_t r = 0; r < out.size(); r += static_cast<size_t>(width)) {
    if (r & copies.reg) {
      size_t original = 0;
      while (layout::index_at(*type.layout, static_cast<uint32_t>(original), 0, 0) !=
             layout::index_at(*type.layout, static_cast<uint32_t>(r), 0, 0))
        ++original;
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(original), width,
                  out.begin() + static_cast<std::ptrdiff_t>(r));
      continue;
    }
    Value* mask = !masks ? nullptr : ends ? ends->whole(r) : (*masks)[r];
    const std::vector<Value*> old = emit(addresses[r], r, mask, packing);
    for (size_t i = 0; i < static_cast<size_t>(width); ++i)
      out[r + i] =
          wanted ? from_bits(b, share_with_copies(l, old[i], copies), element) : llvm::PoisonValue::get(element);
  }
  if (ends)
    ends->rest([&](size_t first, std::span<Value* const> left) {
      for (size_t i = 0; i < left.size(); ++i)
        emit(element_at(b, addresses[first], i, one.bytes), first + i, left[i], one);
    });
  if (is_fenced && sem != ir::Sem::kRelease) fence(b, scope);
  if (orders && !(wanted && copies.warp != 0)) l.barrier();
  l.values[op.result()] = std::move(out);
  return {};
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
  const ir::Type& result = op.result()->type;
  if (result.is_float() && (rmw == Rmw::kMin || rmw == Rmw::kMax))
    return lower_atomic(
        l, op, {"cas", type, {1, element_bytes(result)}, fmt::format("{}.{}", ptx_name(rmw), name(result.dtype))}, 1,
        2);
  const int width = l.target.has(target::kVectorAtomics) ? l.axis.vector_width(&op) : 1;
  return lower_atomic(l, op, {std::string(ptx_name(rmw)), type, {width, element_bytes(result)}}, 1, 2);
}

template <>
Status lower<OpKind::kAtomicCas>(Lowering& l, const ir::Op& op) {
  const ir::Type& type = op.result()->type;
  return lower_atomic(l, op, {"cas", fmt::format("b{}", type.element_bits()), {1, element_bytes(type)}}, 2, 3);
}

}  // namespace kiln::lower
