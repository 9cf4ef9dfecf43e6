// Handles of shared memory, mbarriers, and copies of the tensor memory accelerator. A handle is a byte offset into the
// kernel's dynamic shared memory (i32, the same in all threads); a descriptor is the hidden parameter with its map.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>

#include "compiler/analysis/shared_memory.h"
#include "compiler/layout/algebra.h"
#include "compiler/lower/nvptx/intrinsics.h"
#include "compiler/lower/nvptx/lowering.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::AttrName;
using ir::OpKind;
using llvm::Value;

namespace {

/// What a tile of shared memory must be aligned to, so that the bits that its swizzle asks are those of the address.
int64_t alignment(const ir::Type& handle) {
  if (handle.form == ir::Form::kBarrier) return analysis::kBarrierBytes;
  int64_t bytes = 128;  // TMA's
  const auto bases = handle.layout->bases(layout::In::kOffset);
  for (size_t bit = 0; bit < bases.size(); ++bit)
    if (std::popcount(layout::index_of(handle.layout->shape(), bases[bit])) > 1)
      bytes = std::max(bytes, int64_t{size_of(handle.dtype)} << (bit + 1));
  // Wider patterns are none of the hardware's: threads alone read them, who count from the handle.
  return std::min(bytes, analysis::kSharedTileAlignment);
}

/// The shared::cta address as one of shared::cluster, which it is; addrspacecast would go through generic addresses.
Value* cluster_address(llvm::IRBuilderBase& b, Value* shared) {
  return b.CreateIntToPtr(b.CreatePtrToInt(shared, b.getInt64Ty()), b.getPtrTy(kClusterSpace));
}

Value* barrier_address(Lowering& l, const ir::Value* handle) { return l.shared(l.of(handle)[0], 0); }

}  // namespace

template <>
Status lower<ir::OpKind::kSharedAlloc>(Lowering& l, const ir::Op& op) {
  const ir::Type& type = op.result()->type;
  KILN_ASSERT(op.has(AttrName::kSharedOffset), "shared memory without a place: {}", ir::print(op));
  const int64_t offset = op.int_attr(AttrName::kSharedOffset);
  const int64_t wanted = alignment(type);
  if (offset % wanted || offset + analysis::shared_bytes(type) > l.source.shared_bytes)
    return error_at(op.range, ErrorKind::kInternal, "{} at {} of {} bytes of shared memory must be a multiple of {}",
                    ir::to_string(type), offset, l.source.shared_bytes, wanted);
  l.values[op.result()] = {l.b.getInt32(static_cast<uint32_t>(offset))};
  return {};
}

template <>
Status lower<ir::OpKind::kSharedView>(Lowering& l, const ir::Op& op) {
  const auto bytes = static_cast<uint32_t>(analysis::shared_stride(op.result()->type));
  Value* step = l.b.CreateMul(l.of(op.operand(1))[0], l.b.getInt32(bytes), "", true, true);
  l.values[op.result()] = {l.b.CreateAdd(l.of(op.operand(0))[0], step, "", true, true)};
  return {};
}

namespace {

/// Lane i arrives in block i. The scope is that of the block: one of the cluster would wait for all that the thread
/// ever wrote, and what the warps did was to read.
void arrive_in_cluster(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  auto arrive = [&](Value* rank) {
    Value* there =
        b.CreateIntrinsic(llvm::Intrinsic::nvvm_mapa_shared_cluster, {barrier_address(l, op.operand(0)), rank});
    mbarrier_arrive(b, there);
  };
  const auto blocks = static_cast<uint32_t>(l.source.num_ctas);
  if (l.partition == Partition::kOneThread) {
    for (uint32_t i = 0; i < blocks; ++i) arrive(b.getInt32(i));
    return;
  }
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {b.getInt32(~0u)});
  l.when(b.CreateICmpULT(l.thread.lane(), b.getInt32(blocks)), [&] { arrive(l.thread.lane()); });
}

}  // namespace

template <>
Status lower<OpKind::kMbarrierInit>(Lowering& l, const ir::Op& op) {
  l.when(l.initializer(), [&] {
    for (int i = 0; i < op.operand(0)->type.copies; ++i)
      l.b.CreateIntrinsic(llvm::Intrinsic::nvvm_mbarrier_init_shared,
                          {l.shared(l.of(op.operand(0))[0], analysis::kBarrierBytes * i),
                           l.b.getInt32(static_cast<uint32_t>(op.int_attr(AttrName::kCount)))});
    if (op.next && op.next->kind == OpKind::kMbarrierInit) return;  // which has the fences for both
    fence_mbarrier_init(l.b);
    fence_proxy_async_shared(l.b);
  });
  return {};
}

template <>
Status lower<OpKind::kMbarrierExpect>(Lowering& l, const ir::Op& op) {
  l.when(l.leader(), [&] {
    mbarrier_arrive_expect_tx(l.b, barrier_address(l, op.operand(0)),
                              l.b.getInt32(static_cast<uint32_t>(op.int_attr(AttrName::kBytes))));
  });
  return {};
}

template <>
Status lower<OpKind::kMbarrierArrive>(Lowering& l, const ir::Op& op) {
  if (op.flag(AttrName::kCluster)) return arrive_in_cluster(l, op), Status{};
  Value* first_lane = nullptr;
  if (l.partition != Partition::kOneThread) {
    l.b.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {l.b.getInt32(~0u)});
    first_lane = l.thread.is_zero(kLanes - 1, 0);
  }
  l.when(first_lane, [&] { mbarrier_arrive(l.b, barrier_address(l, op.operand(0))); });
  return {};
}

template <>
Status lower<OpKind::kMbarrierWait>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  Value *address = barrier_address(l, op.operand(0)), *parity = l.of(op.operand(1))[0];
  auto* again = llvm::BasicBlock::Create(l.context(), "wait", l.function);
  auto* done = llvm::BasicBlock::Create(l.context(), "arrived", l.function);
  b.CreateBr(again);
  b.SetInsertPoint(again);
  b.CreateCondBr(mbarrier_try_wait_parity(b, address, parity), done, again);
  b.SetInsertPoint(done);
  return {};
}

namespace {

/// The box's first element in the tensor as TMA counts: innermost dimension first. `at` is its place in the block of
/// `rank` dimensions, `first_row` (if any) comes to the first of these.
std::vector<Value*> box_coordinates(Lowering& l, const ir::Op& op, int first_offset, int rank, const layout::Coord& at,
                                    Value* first_row) {
  std::vector<Value*> c;
  const int dropped = static_cast<int>(op.operands.size()) - first_offset - rank;
  for (int dim = rank - 1; dim >= 0; --dim) {
    Value* start = l.of(op.operand(first_offset + dropped + dim))[0];
    c.push_back(l.b.CreateAdd(start, l.b.getInt32(static_cast<uint32_t>(at[dim]))));
  }
  if (first_row) c.back() = l.b.CreateAdd(c.back(), first_row);
  for (int dim = dropped - 1; dim >= 0; --dim) c.push_back(l.of(op.operand(first_offset + dim))[0]);
  return c;
}

Value* tensor_map(Lowering& l, const LaunchPlan::Copies& copies) {
  if (copies.on_device) return device_map(l, copies.tensor_map);
  return l.function->getArg(static_cast<unsigned>(l.source.params.size()) + static_cast<unsigned>(copies.tensor_map));
}

}  // namespace

template <>
Status lower<ir::OpKind::kTmaLoad>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  static constexpr llvm::Intrinsic::ID kByRank[] = {
      llvm::Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_1d, llvm::Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_2d,
      llvm::Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_3d, llvm::Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_4d,
      llvm::Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_5d};
  const LaunchPlan::Copies& copies = l.launch.copies.at(&op);
  const bool to_all = op.flag(AttrName::kCluster);
  l.when(l.leader(), [&] {
    Value *to = l.of(op.operand(0))[0], *first_row = nullptr;
    if (to_all) {
      Value* rank = l.thread.cta_rank();
      to = b.CreateAdd(to, b.CreateMul(rank, b.getInt32(static_cast<uint32_t>(copies.group_bytes))));
      first_row = b.CreateMul(rank, b.getInt32(static_cast<uint32_t>(copies.group_rows)));
    }
    Value* policy = l2_policy(b, op);
    Value* blocks = b.getInt16(to_all ? static_cast<uint16_t>((1u << l.source.num_ctas) - 1) : 0);
    for (const layout::TmaPlan::Copy& box : copies.boxes.copies) {
      std::vector<Value*> args{cluster_address(b, l.shared(to, box.offset)), barrier_address(l, op.operand(1)),
                               tensor_map(l, copies)};
      const std::vector<Value*> at = box_coordinates(l, op, 3, op.operand(0)->type.shape.rank, box.at, first_row);
      args.insert(args.end(), at.begin(), at.end());
      // The last: not by a pair of blocks.
      args.insert(args.end(), {blocks, policy ? policy : b.getInt64(0), b.getInt1(to_all), b.getInt1(policy != nullptr),
                               b.getInt32(0)});
      b.CreateIntrinsic(kByRank[at.size() - 1], args);
    }
  });
  return {};
}

template <>
Status lower<ir::OpKind::kTmaStore>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  static constexpr llvm::Intrinsic::ID kByRank[] = {
      llvm::Intrinsic::nvvm_cp_async_bulk_tensor_s2g_tile_1d, llvm::Intrinsic::nvvm_cp_async_bulk_tensor_s2g_tile_2d,
      llvm::Intrinsic::nvvm_cp_async_bulk_tensor_s2g_tile_3d, llvm::Intrinsic::nvvm_cp_async_bulk_tensor_s2g_tile_4d,
      llvm::Intrinsic::nvvm_cp_async_bulk_tensor_s2g_tile_5d};
  static constexpr llvm::Intrinsic::ID kAdding[] = {llvm::Intrinsic::nvvm_cp_async_bulk_tensor_reduce_add_tile_1d,
                                                    llvm::Intrinsic::nvvm_cp_async_bulk_tensor_reduce_add_tile_2d,
                                                    llvm::Intrinsic::nvvm_cp_async_bulk_tensor_reduce_add_tile_3d,
                                                    llvm::Intrinsic::nvvm_cp_async_bulk_tensor_reduce_add_tile_4d,
                                                    llvm::Intrinsic::nvvm_cp_async_bulk_tensor_reduce_add_tile_5d};
  const auto rmw = op.find_word<ir::Rmw>();
  KILN_ASSERT(!rmw || *rmw == ir::Rmw::kFAdd);  // what descriptor_atomic makes
  const LaunchPlan::Copies& copies = l.launch.copies.at(&op);
  const int warps = ir::joined_warps(op, l.source.num_warps);
  l.when(l.leader(warps), [&] {
    Value *from = l.of(op.operand(1))[0], *first_row = nullptr;
    if (copies.groups > 1) {
      Value* group = l.group(warps);
      from = b.CreateAdd(from, b.CreateMul(group, b.getInt32(static_cast<uint32_t>(copies.group_bytes))));
      first_row = b.CreateMul(group, b.getInt32(static_cast<uint32_t>(copies.group_rows)));
    }
    for (const layout::TmaPlan::Copy& box : copies.boxes.copies) {
      std::vector<Value*> args{l.shared(from, box.offset), tensor_map(l, copies)};
      const std::vector<Value*> at = box_coordinates(l, op, 2, op.operand(1)->type.shape.rank, box.at, first_row);
      args.insert(args.end(), at.begin(), at.end());
      args.insert(args.end(), {b.getInt64(0), b.getFalse()});  // no cache hint
      b.CreateIntrinsic((rmw ? kAdding : kByRank)[at.size() - 1], args);
    }
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_bulk_commit_group, {});
  });
  return {};
}

template <>
Status lower<ir::OpKind::kTmaStoreWait>(Lowering& l, const ir::Op& op) {
  // Groups belong to the thread that made them.
  l.when(l.leader(ir::joined_warps(op, l.source.num_warps)), [&] {
    l.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_bulk_wait_group_read,
                        {l.b.getInt32(static_cast<uint32_t>(op.int_attr(AttrName::kCount)))});
  });
  return {};
}

template <>
Status lower<ir::OpKind::kFenceAsync>(Lowering& l, const ir::Op& op) {
  op.flag(AttrName::kGlobal) ? fence_proxy_async(l.b) : fence_proxy_async_shared(l.b);
  return {};
}

template <>
Status lower<ir::OpKind::kClusterBarrier>(Lowering& l, const ir::Op&) {
  if (l.source.num_ctas == 1) return l.barrier(), Status{};
  // Ahead of the roles nothing but barriers has been written (invariant 18), and their initialisation has its own
  // fence: to release everything else that threads wrote would only cost time.
  const bool relaxed = l.partition == Partition::kAll && l.launch.extra_warps > 0;
  l.b.CreateIntrinsic(relaxed ? llvm::Intrinsic::nvvm_barrier_cluster_arrive_relaxed_aligned
                              : llvm::Intrinsic::nvvm_barrier_cluster_arrive_aligned,
                      {});
  l.b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cluster_wait_aligned, {});
  return {};
}

namespace {

/// A barrier right in front of the roles: behind it the own warps find what the extra ones have initialised. Those wait
/// for nothing, so that the first loads are on their way before all warps have come.
bool opens_roles(const ir::Op& op) {
  const ir::Op* next = op.has(AttrName::kWarps) ? nullptr : op.next;
  while (next && (next->kind == OpKind::kGdcWait || next->kind == OpKind::kGdcLaunchDependents)) next = next->next;
  return next && next->kind == OpKind::kWarpSpecialize;
}

/// kUnsupported on GPUs whose launches depend on nothing but their stream's order.
Status grid_dependency(Lowering& l, const ir::Op& op, llvm::Intrinsic::ID instruction) {
  if (!l.target.has(target::kTma))
    return with_note(
        error_at(op.range, ErrorKind::kUnsupported, "{} has no dependent launches that begin early", l.target.name),
        fmt::format("help: compile for {}, or leave it out: launches of one stream follow one another",
                    target::example_with(target::kTma)));
  l.b.CreateIntrinsic(instruction, {});
  return {};
}

}  // namespace

template <>
Status lower<OpKind::kGdcWait>(Lowering& l, const ir::Op& op) {
  return grid_dependency(l, op, llvm::Intrinsic::nvvm_griddepcontrol_wait);
}

template <>
Status lower<OpKind::kGdcLaunchDependents>(Lowering& l, const ir::Op& op) {
  // Only the last programs of a large grid do this, as many as are there at a time: those before them have ended by
  // then, which counts as much, and where all do it they begin at half their rate (docs/hopper.md).
  constexpr uint32_t kResident = 32 * 132;
  llvm::Value* x = l.b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
  llvm::Value* programs = l.b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {});
  Status status;
  l.when(l.b.CreateICmpULE(l.b.CreateSub(programs, x), l.b.getInt32(kResident)),
         [&] { status = grid_dependency(l, op, llvm::Intrinsic::nvvm_griddepcontrol_launch_dependents); });
  return status;
}

template <>
Status lower<OpKind::kBarrier>(Lowering& l, const ir::Op& op) {
  if (opens_roles(op))
    l.own_wait = true;
  else
    l.group_barrier(ir::joined_warps(op, l.source.num_warps));
  return {};
}

template <>
Status lower<OpKind::kSharedTrans>(Lowering& l, const ir::Op& op) {
  l.values[op.result()] = l.of(op.operand(0));
  return {};
}

void prefetch_tensor_maps(Lowering& l) {
  if (l.launch.tensor_maps.empty()) return;
  llvm::IRBuilder<>& b = l.b;
  l.when(l.leader(), [&] {
    // As assembly: LLVM makes two instructions of its intrinsic where the map is a parameter.
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
    auto* prefetch = llvm::InlineAsm::get(type, "prefetch.tensormap [$0];", "l", /*hasSideEffects=*/true);
    for (size_t i = 0; i < l.launch.tensor_maps.size(); ++i)
      b.CreateCall(type, prefetch, {l.function->getArg(static_cast<unsigned>(l.source.params.size() + i))})
          ->setDoesNotThrow();
  });
}

}  // namespace kiln::lower
