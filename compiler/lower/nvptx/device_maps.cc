// Tensor maps that a kernel makes itself, of tensors that it finds in memory: tensormap.replace fills one in shared
// memory, which is then copied to global memory, where copies look for it (PTX ISA, "tensormap.replace").
//
// The place in global memory is one of an array of the module's own, so that launchers know nothing of it. A program
// takes a place that no other holds, and gives it back at its end: launches of several streams may run at once. There
// are as many as programs that the largest device holds, so that one is always free.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "compiler/analysis/shared_memory.h"
#include "compiler/lower/nvptx/lowering.h"
#include "compiler/target/occupancy.h"
#include "support/diag.h"
#include "support/tensor_map.h"

namespace kiln::lower {

using llvm::Value;

namespace {

constexpr unsigned kGlobalSpace = 1, kMapBytes = 128;
constexpr unsigned kMostProcessors = 144;  // of a whole GH100

unsigned places_of(const Lowering& l) {
  const target::BlockResources block{.threads = (l.source.num_warps + l.launch.extra_warps) * kLanes,
                                     .shared_bytes = l.source.shared_bytes};
  return kMostProcessors * static_cast<unsigned>(std::max(1, target::occupancy(l.target, block).blocks_per_sm));
}

/// Zeros of the module.
llvm::GlobalVariable* zeros(Lowering& l, const std::string& name, uint64_t bytes) {
  if (llvm::GlobalVariable* known = l.module.getNamedGlobal(name)) return known;
  auto* type = llvm::ArrayType::get(l.b.getInt8Ty(), bytes);
  auto* memory = new llvm::GlobalVariable(l.module, type, false, llvm::GlobalValue::InternalLinkage,
                                          llvm::ConstantAggregateZero::get(type), name, nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kGlobalSpace);
  memory->setAlignment(llvm::Align(kMapBytes));
  return memory;
}

/// Of place `i`: whether a program has it.
Value* taken(Lowering& l, Value* i) {
  return l.b.CreateGEP(l.b.getInt32Ty(), zeros(l, "kiln_map_taken", uint64_t{4} * places_of(l)), i);
}

void assembly(Lowering& l, const std::string& text, const std::string& constraints,
              const std::vector<Value*>& operands) {
  std::vector<llvm::Type*> types;
  for (const Value* v : operands) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(l.b.getVoidTy(), types, false);
  l.b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true), operands)
      ->setDoesNotThrow();
}

/// The number of an element type among those of tensormap.replace, which has one of float32 before float64.
int element_type(DType dtype) {
  constexpr int kFloat32 = 7;
  const int number = tensor_map_data_type(dtype);
  return number > kFloat32 ? number + 1 : number;
}

/// Fills fields of the map at an address of shared memory (i32).
class MapFields {
 public:
  MapFields(Lowering& l, Value* at) : l_(l), at_(at) {}

  void set(const std::string& field, Value* value) {
    const bool wide = value->getType()->isIntegerTy(64);
    assembly(l_, fmt::format("tensormap.replace.tile.{}.shared::cta.b1024.{} [$0], $1;", field, wide ? "b64" : "b32"),
             wide ? "r,l" : "r,r", {at_, value});
  }
  void set(const std::string& field, int value) {
    assembly(l_, fmt::format("tensormap.replace.tile.{}.shared::cta.b1024.b32 [$0], {};", field, value), "r", {at_});
  }
  /// Of dimension `dim`, the innermost first.
  void set(const std::string& field, size_t dim, Value* value) {
    const bool wide = value->getType()->isIntegerTy(64);
    assembly(
        l_,
        fmt::format("tensormap.replace.tile.{}.shared::cta.b1024.{} [$0], {}, $1;", field, wide ? "b64" : "b32", dim),
        wide ? "r,l" : "r,r", {at_, value});
  }

 private:
  Lowering& l_;
  Value* at_;
};

/// In the first warp.
void make_map(Lowering& l, const DeviceMap& map, Value* shared, Value* global) {
  llvm::IRBuilder<>& b = l.b;
  const ir::Op& op = *map.maker;
  const size_t rank = map.box.size();
  const auto bytes = static_cast<uint64_t>(size_of(op.result()->type.dtype));
  // Every lane has a word of it; then one fills in the fields.
  Value* word = b.CreateGEP(b.getInt32Ty(), shared, l.thread.lane());
  b.CreateStore(b.getInt32(0), word);
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {b.getInt32(~0u)});
  Value* at = b.CreatePtrToInt(shared, b.getInt32Ty());
  l.when(b.CreateICmpEQ(l.thread.lane(), b.getInt32(0)), [&] {
    // A tensor without elements is one of a zero, since no size is 0.
    Value* is_empty = b.getFalse();
    std::vector<Value*> sizes;
    for (size_t d = 0; d < rank; ++d) {
      sizes.push_back(l.of(op.operand(static_cast<int>(1 + d)))[0]);
      is_empty = b.CreateOr(is_empty, b.CreateICmpSLE(sizes.back(), b.getInt32(0)));
    }
    Value* zero = b.CreatePtrToInt(zeros(l, "kiln_map_zero", kMapBytes), b.getInt64Ty());
    Value* base = b.CreatePtrToInt(l.of(op.operand(0))[0], b.getInt64Ty());
    MapFields fields(l, at);
    fields.set("global_address", b.CreateSelect(is_empty, zero, base));
    fields.set("rank", static_cast<int>(rank) - 1);
    for (size_t dim = 0; dim < rank; ++dim) {  // the innermost first
      const size_t d = rank - 1 - dim;
      fields.set("box_dim", dim, b.getInt32(static_cast<uint32_t>(map.box[d])));
      fields.set("global_dim", dim, b.CreateSelect(is_empty, b.getInt32(1), sizes[d]));
      fields.set("element_stride", dim, b.getInt32(1));
      if (dim == 0) continue;
      Value* stride = b.CreateMul(l.of(op.operand(static_cast<int>(1 + rank + d)))[0], b.getInt64(bytes));
      // Of one element nothing is a stride away.
      Value* unused = b.CreateOr(is_empty, b.CreateICmpEQ(sizes[d], b.getInt32(1)));
      fields.set("global_stride", dim - 1, b.CreateSelect(unused, b.getInt64(kTensorMapAlignment), stride));
    }
    fields.set("elemtype", element_type(op.result()->type.dtype));
    fields.set("interleave_layout", 0);
    fields.set("swizzle_mode", tensor_map_swizzle(map.swizzle));
    fields.set("fill_mode", 0);
  });
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {b.getInt32(~0u)});
  assembly(l, "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;",
           "l,r", {b.CreateAddrSpaceCast(global, b.getPtrTy(kGlobalSpace)), at});
  assembly(l, "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l", {global});
}

}  // namespace

void take_device_maps(Lowering& l) {
  if (l.launch.device_maps.empty()) return;
  llvm::IRBuilder<>& b = l.b;
  llvm::BasicBlock *before = b.GetInsertBlock(),
                   *first = llvm::BasicBlock::Create(l.context(), "first_warp", l.function),
                   *find = llvm::BasicBlock::Create(l.context(), "find_place", l.function),
                   *found = llvm::BasicBlock::Create(l.context(), "found_place", l.function),
                   *share = llvm::BasicBlock::Create(l.context(), "share_place", l.function),
                   *next = llvm::BasicBlock::Create(l.context(), "have_place", l.function);
  const uint32_t places = places_of(l);
  b.CreateCondBr(b.CreateICmpULT(l.thread.thread(), b.getInt32(kLanes)), first, next);
  b.SetInsertPoint(first);
  // The program's number, so that neighbours begin at different places.
  Value* number = b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
  for (auto [id, count] : {std::pair{llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y, 7919u},
                           std::pair{llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z, 104729u}})
    number = b.CreateAdd(number, b.CreateMul(b.CreateIntrinsic(id, {}), b.getInt32(count)));
  Value* start = b.CreateURem(number, b.getInt32(places));
  b.CreateCondBr(b.CreateICmpEQ(l.thread.lane(), b.getInt32(0)), find, share);

  b.SetInsertPoint(find);
  llvm::PHINode* place = b.CreatePHI(b.getInt32Ty(), 2, "place");
  place->addIncoming(start, first);
  auto* swap = b.CreateAtomicCmpXchg(taken(l, place), b.getInt32(0), b.getInt32(1), llvm::MaybeAlign(4),
                                     llvm::AtomicOrdering::Acquire, llvm::AtomicOrdering::Monotonic,
                                     l.context().getOrInsertSyncScopeID("device"));
  Value* after = b.CreateAdd(place, b.getInt32(1));
  place->addIncoming(b.CreateSelect(b.CreateICmpEQ(after, b.getInt32(places)), b.getInt32(0), after), find);
  b.CreateCondBr(b.CreateExtractValue(swap, 1), found, find);

  b.SetInsertPoint(found);
  b.CreateBr(share);
  b.SetInsertPoint(share);
  llvm::PHINode* mine = b.CreatePHI(b.getInt32Ty(), 2);
  mine->addIncoming(b.getInt32(0), first);
  mine->addIncoming(place, found);
  Value* shared = b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                                    {b.getInt32(~0u), mine, b.getInt32(0), b.getInt32(kLanes - 1)});
  b.CreateBr(next);
  b.SetInsertPoint(next);
  llvm::PHINode* result = b.CreatePHI(b.getInt32Ty(), 2, "map_place");
  result->addIncoming(b.getInt32(0), before);
  result->addIncoming(shared, share);
  l.map_place = result;
}

void return_device_maps(Lowering& l) {
  if (l.launch.device_maps.empty()) return;
  l.when(l.leader(), [&] {
    auto* store = l.b.CreateAlignedStore(l.b.getInt32(0), taken(l, l.map_place), llvm::Align(4));
    store->setAtomic(llvm::AtomicOrdering::Release, l.context().getOrInsertSyncScopeID("device"));
  });
}

Value* device_map(Lowering& l, int number) {
  const auto maps = static_cast<unsigned>(l.launch.device_maps.size());
  auto* memory = zeros(l, "kiln_maps", uint64_t{kMapBytes} * maps * places_of(l));
  Value* index =
      l.b.CreateAdd(l.b.CreateMul(l.map_place, l.b.getInt32(maps)), l.b.getInt32(static_cast<uint32_t>(number)));
  Value* offset = l.b.CreateMul(l.b.CreateZExt(index, l.b.getInt64Ty()), l.b.getInt64(kMapBytes));
  return l.b.CreateAddrSpaceCast(l.b.CreateGEP(l.b.getInt8Ty(), memory, offset), l.b.getPtrTy(0));
}

Status make_tensor_maps(Lowering& l, const ir::Op& op) {
  const std::vector<DeviceMap>& maps = l.launch.device_maps;
  if (std::ranges::none_of(maps, [&](const DeviceMap& m) { return m.maker == &op; })) return {};
  Value* staging = l.shared(l.of(op.operands.back())[0], 0);
  l.when(l.b.CreateICmpULT(l.thread.thread(), l.b.getInt32(kLanes)), [&] {
    for (size_t i = 0; i < maps.size(); ++i)
      if (maps[i].maker == &op) make_map(l, maps[i], staging, device_map(l, static_cast<int>(i)));
  });
  return {};
}

}  // namespace kiln::lower
