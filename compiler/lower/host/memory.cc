// Loads and stores of a chunk: vectors where addresses count up, with whole, partial or no masks; else lane by lane.
#include <algorithm>

#include "compiler/lower/host/lowering.h"
#include "support/diag.h"

namespace kiln::lower::host {

Lowering::V Lowering::choose(V condition, const std::function<V()>& yes, const std::function<V()>& no) {
  llvm::BasicBlock *yes_block = block("yes"), *no_block = block("no"), *after = block("after");
  b.CreateCondBr(condition, yes_block, no_block);
  b.SetInsertPoint(yes_block);
  V first = yes();
  llvm::BasicBlock* yes_end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(no_block);
  V second = no();
  llvm::BasicBlock* no_end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  if (!first) return nullptr;
  auto* phi = b.CreatePHI(first->getType(), 2);
  phi->addIncoming(first, yes_end);
  phi->addIncoming(second, no_end);
  return phi;
}

std::optional<Lanes> Lowering::emit_mask(Chunk& chunk, const ir::Op& op, int operand, size_t index) {
  if (static_cast<size_t>(operand) >= op.operands.size() || assumed_true_.contains(op.operand(operand)))
    return std::nullopt;
  Lanes mask = emit(chunk, op.operand(operand), index);
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(mask.value); constant && constant->isOne())
    return std::nullopt;
  return mask;
}

Lanes Lowering::emit_load(Chunk& chunk, const ir::Op& op, size_t index) {
  const ir::Type& type = op.result()->type;
  Lanes ptr = emit(chunk, op.operand(0), index);
  std::optional<Lanes> mask = emit_mask(chunk, op, 1, index);
  Lanes other = uniform(llvm::Constant::getNullValue(element(type)));
  if (mask && op.operands.size() > 2) other = emit(chunk, op.operand(2), index);
  lines_->at(b, op.range);
  return load_lanes(chunk.width, type, ptr, mask, other, op.flag(ir::AttrName::kVolatile));
}

unsigned Lowering::stream_align(const ir::Type& type, unsigned width) const {
  return std::min(native_bytes_, width * static_cast<unsigned>(element_bytes(type)));
}

void Lowering::emit_store(Chunk& chunk, const ir::Op& op, Lanes ptr, Lanes value, std::optional<Lanes> mask) {
  lines_->at(b, op.range);
  const ir::Type& type = op.operand(1)->type;
  auto stream = stream_.find(&op);
  if (stream == stream_.end() || !ptr.is_contiguous() || mask) {
    store_lanes(chunk.width, type, ptr, value, mask);
    return;
  }
  streams_ = true;
  V lanes = to_memory(vectorize(value, type, chunk.width), type), at = pointer(ptr.value);
  choose(
      stream->second,
      [&]() -> V {
        auto* store = b.CreateAlignedStore(lanes, at, llvm::Align(stream_align(type, chunk.width)));
        auto* one = llvm::ConstantAsMetadata::get(b.getInt32(1));
        store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b.getContext(), one));
        return nullptr;
      },
      [&]() -> V {
        b.CreateAlignedStore(lanes, at, llvm::Align(static_cast<uint64_t>(element_bytes(type))));
        return nullptr;
      });
}

// The CPU's own prefetching stops at every page; a request some lines ahead does not fault beyond the end.
void Lowering::prefetch(V at, unsigned bytes) {
  constexpr unsigned kAhead = 1024, kLine = 64;
  for (unsigned line = 0; line < bytes; line += kLine) {
    V address = b.CreateConstGEP1_64(b.getInt8Ty(), at, kAhead + line);
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                      {address, b.getInt32(0), b.getInt32(3), b.getInt32(1)});
  }
}

Lanes Lowering::load_lanes(unsigned width, const ir::Type& type, Lanes ptr, std::optional<Lanes> mask, Lanes other,
                           bool is_volatile) {
  KILN_ASSERT(!is_volatile || ptr.is_uniform(), "a volatile load of several elements");  // run_elements takes them
  llvm::Type* memory = memory_type(type);
  const llvm::Align align(static_cast<uint64_t>(element_bytes(type)));
  if (mask && mask->is_uniform()) {
    const bool stays_uniform = ptr.is_uniform() && other.is_uniform();
    V result = choose(
        mask->value,
        [&] {
          Lanes loaded = load_lanes(width, type, ptr, std::nullopt, other, is_volatile);
          return stays_uniform ? loaded.value : vectorize(loaded, type, width);
        },
        [&] { return stays_uniform ? other.value : vectorize(other, type, width); });
    return stays_uniform ? uniform(result) : vector(result);
  }
  if (ptr.is_uniform()) {
    auto load = [&] {
      auto* loaded = b.CreateAlignedLoad(memory, pointer(ptr.value), align);
      if (is_volatile) {  // each time anew, and what follows sees what was written before the value
        loaded->setVolatile(true);
        loaded->setAtomic(llvm::AtomicOrdering::Acquire);
      }
      return from_memory(loaded, type);
    };
    if (!mask) return uniform(load());
    V any = b.CreateIsNotNull(mask_bits(mask->value));
    V loaded = choose(any, load, [&] { return llvm::Constant::getNullValue(element(type)); });
    return vector(b.CreateSelect(mask->value, b.CreateVectorSplat(width, loaded), vectorize(other, type, width)));
  }
  auto* lanes = llvm::FixedVectorType::get(memory, width);
  if (ptr.is_contiguous()) {
    V at = pointer(ptr.value);
    if (prefetch_ && !mask) prefetch(at, width * static_cast<unsigned>(element_bytes(type)));
    auto whole = [&] { return from_memory(b.CreateAlignedLoad(lanes, at, align), type); };
    if (!mask) return vector(whole());
    V others = vectorize(other, type, width);
    if (masks_natively(type))  // as fast as a whole load
      return vector(from_memory(load_some(at, mask->value, to_memory(others, type), width, type), type));
    return vector(choose(all_lanes(mask->value), whole, [&] {
      return from_memory(load_some(at, mask->value, to_memory(others, type), width, type), type);
    }));
  }
  V addresses = pointer_vector(ptr, type, width);
  if (!mask) return vector(from_memory(b.CreateMaskedGather(lanes, addresses, align), type));
  V others = to_memory(vectorize(other, type, width), type);
  return vector(from_memory(b.CreateMaskedGather(lanes, addresses, align, mask->value, others), type));
}

void Lowering::store_lanes(unsigned width, const ir::Type& type, Lanes ptr, Lanes value, std::optional<Lanes> mask) {
  if (mask && mask->is_uniform()) {
    when(mask->value, [&] { store_lanes(width, type, ptr, value, std::nullopt); });
    return;
  }
  const llvm::Align align(static_cast<uint64_t>(element_bytes(type)));
  if (width == 1 || (ptr.is_uniform() && value.is_uniform() && !mask)) {
    b.CreateAlignedStore(to_memory(value.value, type), pointer(ptr.value), align);
    return;
  }
  V lanes = to_memory(vectorize(value, type, width), type);
  if (!ptr.is_contiguous()) {  // in the order of the lanes: the last of equal addresses stays
    b.CreateMaskedScatter(lanes, pointer_vector(ptr, type, width), align, mask ? mask->value : nullptr);
    return;
  }
  V at = pointer(ptr.value);
  if (!mask) {
    b.CreateAlignedStore(lanes, at, align);
    return;
  }
  choose(
      all_lanes(mask->value),
      [&]() -> V {
        b.CreateAlignedStore(lanes, at, align);
        return nullptr;
      },
      [&]() -> V {
        store_some(at, mask->value, lanes, width, type);
        return nullptr;
      });
}

Lowering::V Lowering::pointer_vector(Lanes ptr, const ir::Type& pointee, unsigned width) {
  V integers = vectorize(ptr, b.getInt64Ty(), element_bytes(pointee), width);
  return b.CreateIntToPtr(integers, llvm::FixedVectorType::get(b.getPtrTy(), width));
}

Lowering::V Lowering::mask_bits(V mask) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  return b.CreateBitCast(mask, b.getIntNTy(lanes));
}

bool Lowering::masks_natively(const ir::Type& type) const { return native_masks_ && element_bytes(type) >= 4; }

// A masked access of small elements would become a branch per lane wherever it stands; a call is shorter.
Lowering::V Lowering::load_some(V at, V mask, V other, unsigned width, const ir::Type& type) {
  const llvm::Align align(static_cast<uint64_t>(element_bytes(type)));
  if (masks_natively(type)) return b.CreateMaskedLoad(other->getType(), at, align, mask, other);
  if (!lane_slots_) lane_slots_ = stack(b.getInt64Ty(), 64), mask_slots_ = stack(b.getInt64Ty(), 1);
  b.CreateAlignedStore(other, lane_slots_, llvm::Align(8));
  b.CreateStore(b.CreateZExt(mask_bits(mask), b.getInt64Ty()), mask_slots_);
  V args[] = {lane_slots_, at, mask_slots_, b.getInt32(width), b.getInt32(static_cast<uint32_t>(element_bytes(type)))};
  hook("kiln_hook_load_lanes", b.getVoidTy(), args);
  return b.CreateAlignedLoad(other->getType(), lane_slots_, llvm::Align(8));
}

void Lowering::store_some(V at, V mask, V value, unsigned width, const ir::Type& type) {
  const llvm::Align align(static_cast<uint64_t>(element_bytes(type)));
  if (masks_natively(type)) {
    b.CreateMaskedStore(value, at, align, mask);
    return;
  }
  if (!lane_slots_) lane_slots_ = stack(b.getInt64Ty(), 64), mask_slots_ = stack(b.getInt64Ty(), 1);
  b.CreateAlignedStore(value, lane_slots_, llvm::Align(8));
  b.CreateStore(b.CreateZExt(mask_bits(mask), b.getInt64Ty()), mask_slots_);
  V args[] = {at, lane_slots_, mask_slots_, b.getInt32(width), b.getInt32(static_cast<uint32_t>(element_bytes(type)))};
  hook("kiln_hook_store_lanes", b.getVoidTy(), args);
}

}  // namespace kiln::lower::host
