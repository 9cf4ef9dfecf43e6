// Scalar loads and stores, atomics, print and assert, one element at a time in row-major order.
#include <algorithm>
#include <limits>

#include "compiler/lower/host/lowering.h"
#include "compiler/lower/host/plan.h"
#include "compiler/lower/shared/elementwise.h"
#include "compiler/lower/shared/float_convert.h"
#include "support/diag.h"

namespace kiln::lower::host {

using ir::AttrName;
using ir::OpKind;

Status Lowering::run_elements(const ir::Op& op) {
  flush();
  if (ir::writes_memory(&op)) {
    keep_needed_loads({}, std::numeric_limits<int>::max());
    ++store_epoch_;
  }
  const ir::Shape* shape = nullptr;
  for (const ir::Value* v : op.operands) {
    if (v->type.is_tile() && !is_stored(v) && !cheap(v)) keep(v);
    if (v->type.is_tile()) shape = &v->type.shape;
  }
  const ir::Value* result = op.results.empty() ? nullptr : op.result();
  if (!shape) {
    for (const ir::Value* v : op.operands) scalar(v);
    Chunk chunk(1);
    element_effect(op, chunk, chunk.intern({}));
    done_.insert(&op);
    return {};
  }
  Slice slice;
  for (const ir::Value* v : op.operands) collect(v, true, &slice);
  prepare_scalars(slice);
  for (const ir::Value* v : op.operands)
    if (v->type.is_scalar()) scalar(v);
  Buffer into{};
  if (result) into = allocate(bytes_of(result->type));
  // Print takes several operands, which may differ in shape: each is walked on its own.
  const size_t walks = op.kind == OpKind::kPrint ? op.operands.size() : 1;
  for (size_t k = 0; k < walks; ++k) {
    const ir::Shape walked = op.kind == OpKind::kPrint ? op.operands[k]->type.shape : *shape;
    Loop loop = begin_loop(walked.numel(), 1, {});
    Chunk chunk(1);
    const size_t index = chunk.intern(index_at(walked, uniform(loop.iv), 1));
    if (op.kind == OpKind::kPrint) {
      print_element(op, k, chunk, index);
    } else {
      element_effect(op, chunk, index);
      if (result) write_buffer(chunk, result->type, into, chunk.values.at({result, index}), index);
    }
    end_loop(loop, {});
  }
  if (result) {
    buffers_[result] = into;
    scopes_.back().buffers.push_back(result);
  }
  done_.insert(&op);
  release_unneeded();
  return {};
}

void Lowering::element_effect(const ir::Op& op, Chunk& chunk, size_t index) {
  auto value = [&](size_t i) { return emit(chunk, op.operands[i], index).value; };
  auto mask = [&](size_t i) { return op.operands.size() > i ? value(i) : nullptr; };
  switch (op.kind) {
    case OpKind::kLoad: {
      Lanes loaded = emit_load(chunk, op, index);
      if (op.result()->type.is_scalar())
        set_scalar(op.result(), loaded.value);
      else
        chunk.values[{op.result(), index}] = loaded;
      return;
    }
    case OpKind::kStore:
      emit_store(chunk, op, uniform(value(0)), uniform(value(1)), emit_mask(chunk, op, 2, index));
      return;
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas: {
      const bool cas = op.kind == OpKind::kAtomicCas;
      std::vector<V> operands = {value(0), value(1)};
      if (cas) operands.push_back(value(2));
      V guard = cas ? nullptr : mask(2);
      V old = nullptr;
      if (guard) {
        V zero = llvm::Constant::getNullValue(element(op.result()->type));
        llvm::BasicBlock *before = b.GetInsertBlock(), *yes = block("atomic"), *after = block("after");
        b.CreateCondBr(guard, yes, after);
        b.SetInsertPoint(yes);
        V done = atomic(op, operands[0], operands);
        llvm::BasicBlock* end = b.GetInsertBlock();
        b.CreateBr(after);
        b.SetInsertPoint(after);
        auto* phi = b.CreatePHI(zero->getType(), 2);
        phi->addIncoming(zero, before);
        phi->addIncoming(done, end);
        old = phi;
      } else {
        old = atomic(op, operands[0], operands);
      }
      if (op.result()->type.is_scalar())
        set_scalar(op.result(), old);
      else
        chunk.values[{op.result(), index}] = uniform(old);
      return;
    }
    case OpKind::kPrint:
      for (size_t k = 0; k == 0 || k < op.operands.size(); ++k) print_element(op, k, chunk, index);
      return;
    case OpKind::kAssert: {
      V failed = b.CreateNot(value(0));
      if (V guard = mask(1)) failed = b.CreateAnd(failed, guard);
      const Index& at = chunk.indices[index];
      when(failed, [&] { fail_program(op.text_attr(AttrName::kText).c_str(), at); });
      return;
    }
    default:
      KILN_UNREACHABLE("{} on the host", ir::print(op));
  }
}

// --- atomics

namespace {

llvm::AtomicOrdering ordering_of(ir::Sem sem) {
  switch (sem) {
    case ir::Sem::kRelaxed:
      return llvm::AtomicOrdering::Monotonic;
    case ir::Sem::kAcquire:
      return llvm::AtomicOrdering::Acquire;
    case ir::Sem::kRelease:
      return llvm::AtomicOrdering::Release;
    case ir::Sem::kAcqRel:
      return llvm::AtomicOrdering::AcquireRelease;
  }
  KILN_UNREACHABLE("memory order");
}

/// As the processor has it; nullopt for what is computed and swapped in.
std::optional<llvm::AtomicRMWInst::BinOp> simple_update(ir::Rmw rmw, const ir::Type& type) {
  using A = llvm::AtomicRMWInst;
  if (type.is_float() && rmw != ir::Rmw::kExchange) return std::nullopt;
  const bool sign = !type.pointer && is_signed(type.dtype);
  switch (rmw) {
    case ir::Rmw::kAdd:
      return A::Add;
    case ir::Rmw::kMin:
      return sign ? A::Min : A::UMin;
    case ir::Rmw::kMax:
      return sign ? A::Max : A::UMax;
    case ir::Rmw::kAnd:
      return A::And;
    case ir::Rmw::kOr:
      return A::Or;
    case ir::Rmw::kXor:
      return A::Xor;
    case ir::Rmw::kExchange:
      return A::Xchg;
    case ir::Rmw::kFAdd:
      return std::nullopt;
  }
  KILN_UNREACHABLE("rmw");
}

}  // namespace

Lowering::V Lowering::atomic(const ir::Op& op, V address, std::span<V const> values) {
  lines_->at(b, op.range);
  const ir::Type& type = op.result()->type;
  llvm::Type* bits_type = memory_type(type);
  if (bits_type->isFloatingPointTy()) bits_type = b.getIntNTy(static_cast<unsigned>(bits(type.dtype)));
  const llvm::Align align(static_cast<uint64_t>(element_bytes(type)));
  auto as_bits = [&](V v) { return b.CreateBitCast(to_memory(v, type), bits_type); };
  auto as_value = [&](V v) { return from_memory(b.CreateBitCast(v, memory_type(type)), type); };
  const auto ordering = ordering_of(op.word<ir::Sem>());
  V at = pointer(address);
  if (op.kind == OpKind::kAtomicCas) {
    auto* cas = b.CreateAtomicCmpXchg(at, as_bits(values[1]), as_bits(values[2]), align, ordering,
                                      llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(ordering));
    return as_value(b.CreateExtractValue(cas, 0));
  }
  const auto rmw = op.word<ir::Rmw>();
  if (const auto simple = simple_update(rmw, type))
    return as_value(b.CreateAtomicRMW(*simple, at, as_bits(values[1]), align, ordering));

  // Floats: compare and swap until nobody came in between.
  auto* seen = b.CreateAlignedLoad(bits_type, at, align);
  seen->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::BasicBlock *before = b.GetInsertBlock(), *retry = block("retry"), *after = block("after");
  b.CreateBr(retry);
  b.SetInsertPoint(retry);
  auto* old_bits = b.CreatePHI(bits_type, 2);
  old_bits->addIncoming(seen, before);
  V changed = float_update(rmw, type.dtype, as_value(old_bits), values[1]);
  auto* cas = b.CreateAtomicCmpXchg(at, old_bits, as_bits(changed), align, ordering,
                                    llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(ordering));
  old_bits->addIncoming(b.CreateExtractValue(cas, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(cas, 1), after, retry);
  b.SetInsertPoint(after);
  return as_value(old_bits);
}

Lowering::V Lowering::float_update(ir::Rmw rmw, DType dtype, V old, V value) {
  const bool narrow = bits(dtype) < 32;
  if (narrow) {
    old = convert_number(b, old, dtype, DType::kF32, false, target_);
    value = convert_number(b, value, dtype, DType::kF32, false, target_);
  }
  V result = rmw == ir::Rmw::kMin   ? b.CreateBinaryIntrinsic(llvm::Intrinsic::minimumnum, old, value)
             : rmw == ir::Rmw::kMax ? b.CreateBinaryIntrinsic(llvm::Intrinsic::maximumnum, old, value)
                                    : b.CreateFAdd(old, value);
  return narrow ? convert_number(b, result, DType::kF32, dtype, false, target_) : result;
}

// --- print and assert

Lowering::V Lowering::program_slots() {
  if (!program_slots_) program_slots_ = stack(b.getInt32Ty(), 3);
  for (unsigned i = 0; i < 3; ++i)
    b.CreateStore(program_[i], b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), program_slots_, i));
  return program_slots_;
}

Lowering::V Lowering::index_slots(const Index& index) {
  if (!index_slots_) index_slots_ = stack(b.getInt32Ty(), ir::kMaxRank);
  for (size_t d = 0; d < index.at.size(); ++d)
    b.CreateStore(index.at[d].value, b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), index_slots_, d));
  return index_slots_;
}

void Lowering::fail_program(const char* text, const Index& at) {
  auto* log = module->getOrInsertGlobal("kiln_host_log", b.getInt8Ty());
  V args[] = {log, program_slots(), index_slots(at), b.getInt32(static_cast<uint32_t>(at.at.size())),
              b.CreateGlobalString(text)};
  hook("kiln_hook_assert", b.getVoidTy(), args);
  // This program and the rest of the thread's share end here; what follows cannot be reached.
  b.CreateBr(exit_);
  b.SetInsertPoint(block("unreached"));
}

void Lowering::print_element(const ir::Op& op, size_t operand, Chunk& chunk, size_t index) {
  const Index& at = chunk.indices[index];
  const bool hex = op.flag(AttrName::kHex);
  V text = b.CreateGlobalString(op.text_attr(AttrName::kText));
  V kind = b.getInt32(static_cast<uint32_t>(-2)), bits = b.getInt64(0);  // no operand: only the text
  if (!op.operands.empty()) {
    const ir::Type& type = op.operands[operand]->type;
    V value = emit(chunk, op.operands[operand], index).value;
    if (!type.pointer && type.is_float())
      value = b.CreateBitCast(value, b.getIntNTy(static_cast<unsigned>(type.element_bits())));
    bits = b.CreateZExtOrTrunc(value, b.getInt64Ty());
    kind = b.getInt32(type.pointer ? static_cast<uint32_t>(-1) : static_cast<uint32_t>(type.dtype));
  }
  const int number = op.operands.size() > 1 ? static_cast<int>(operand) : -1;
  V args[] = {program_slots(),
              index_slots(at),
              b.getInt32(static_cast<uint32_t>(at.at.size())),
              text,
              b.getInt32(static_cast<uint32_t>(number)),
              kind,
              b.getInt32(hex),
              bits};
  hook("kiln_hook_print", b.getVoidTy(), args);
}

}  // namespace kiln::lower::host
