// cp.async: copies from global to shared memory that threads start and later wait for.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "compiler/layout/convert_plan.h"
#include "compiler/lower/nvptx/lowering.h"
#include "support/diag.h"

namespace kiln::lower {

using llvm::Value;

namespace {

constexpr int kLeastBytes = 4, kMostBytes = 16;

/// How many of the group's registers, from each multiple of it on, are neighbours in global memory too.
int copy_width(std::span<const int> group, int in_global) {
  int width = std::min(static_cast<int>(group.size()), in_global);
  for (size_t i = 0; i < group.size(); ++i) {
    const size_t first = i / static_cast<size_t>(width) * static_cast<size_t>(width);
    if (group[i] != group[first] + static_cast<int>(i - first) || group[first] % width != 0) return 1;
  }
  return width;
}

void copy_ahead(llvm::IRBuilderBase& b, Value* to, Value* from, Value* mask, int bytes) {
  const llvm::Intrinsic::ID id = bytes == kMostBytes ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                                 : bytes == 8        ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                                                     : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
  // What the source is shorter than the destination is filled with zeros; nothing of an empty source is read.
  Value* size = b.getInt32(static_cast<uint32_t>(bytes));
  b.CreateIntrinsic(id, {to, from, mask ? b.CreateSelect(mask, size, b.getInt32(0)) : size});
}

/// Narrower than cp.async takes: through a register, at once.
void copy_now(Lowering& l, Value* to, Value* from, Value* mask, int bytes) {
  llvm::Type* type = l.b.getIntNTy(static_cast<unsigned>(bytes) * 8);
  const llvm::Align align(static_cast<uint64_t>(bytes));
  if (mask) l.b.CreateAlignedStore(llvm::Constant::getNullValue(type), to, align);
  l.when(mask, [&] { l.b.CreateAlignedStore(l.b.CreateAlignedLoad(type, from, align), to, align); });
}

}  // namespace

template <>
Status lower<ir::OpKind::kAsyncCopy>(Lowering& l, const ir::Op& op) {
  const ir::Type &shared = op.operand(0)->type, &pointer = op.operand(1)->type;
  const int bytes = size_of(pointer.dtype);
  Value* handle = l.of(op.operand(0))[0];
  const Registers& from = l.of(op.operand(1));
  const Registers* masks = op.operands.size() > 2 ? &l.of(op.operand(2)) : nullptr;
  const layout::SharedAccess access = layout::plan_shared_access(*pointer.layout, *shared.layout, bytes);
  const int in_global = l.axis.vector_width(&op);
  l.when(l.thread.is_zero(access.lane_mask, access.warp_mask), [&] {
    for (const std::vector<int>& group : access.groups) {
      const int width = copy_width(group, in_global);
      for (size_t i = 0; i < group.size(); i += static_cast<size_t>(width)) {
        const auto r = static_cast<size_t>(group[i]);
        Value* to = place_of(l, handle, access.offset, static_cast<uint32_t>(r), static_cast<uint32_t>(bytes));
        Value* mask = masks ? (*masks)[r] : nullptr;
        if (width * bytes >= kLeastBytes)
          copy_ahead(l.b, to, from[r], mask, width * bytes);
        else
          copy_now(l, to, from[r], mask, width * bytes);
      }
    }
  });
  return {};
}

template <>
Status lower<ir::OpKind::kAsyncCommit>(Lowering& l, const ir::Op&) {
  l.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
  return {};
}

template <>
Status lower<ir::OpKind::kAsyncWait>(Lowering& l, const ir::Op& op) {
  const auto count = static_cast<uint32_t>(op.int_attr(ir::AttrName::kCount));
  l.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {l.b.getInt32(count)});
  return {};
}

}  // namespace kiln::lower
