// cp.async: copies from global to shared memory that threads start and later wait for.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
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

/// The parts of a mask that is their conjunction.
void add_parts(const ir::Value* mask, std::vector<const ir::Value*>& parts) {
  if (mask->op && mask->op->kind == ir::OpKind::kAnd)
    for (const ir::Value* operand : mask->op->operands) add_parts(operand, parts);
  else
    parts.push_back(mask);
}

/// `only`: the threads that copy; null: all. A predicate, since a branch would part what ptxas schedules together.
/// `size` is 0 or all of the bytes where `taken` says which; null: any size. A size becomes a predicate in SASS, by two
/// instructions for each copy, so that a predicate is given where there is one.
void copy_ahead(llvm::IRBuilderBase& b, Value* to, Value* from, Value* size, Value* taken, int bytes, Value* only) {
  // What the source is shorter than the destination is filled with zeros; nothing of an empty source is read.
  if (!only && !taken) {
    const llvm::Intrinsic::ID id = bytes == kMostBytes ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                                   : bytes == 8        ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                                                       : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
    b.CreateIntrinsic(id, {to, from, size});
    return;
  }
  std::vector<Value*> arguments = {to, from};
  std::string constraints = "r,l";
  auto use = [&](Value* v, std::string_view as) {
    constraints += fmt::format(",{}", as);
    arguments.push_back(v);
    return arguments.size() - 1;
  };
  const size_t rest = taken ? use(b.CreateNot(taken), "b") : use(size, "r");  // in PTX: whether the source is ignored
  const std::string guard = only ? fmt::format("@${} ", use(only, "b")) : "";
  std::vector<llvm::Type*> types;
  for (const Value* v : arguments) types.push_back(v->getType());
  const std::string text = fmt::format("{}cp.async.{}.shared.global [$0], [$1], {}, ${};", guard,
                                       bytes == kMostBytes ? "cg" : "ca", bytes, rest);
  auto* type = llvm::FunctionType::get(b.getVoidTy(), types, false);
  b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints + ",~{memory}", /*hasSideEffects=*/true), arguments);
}

/// How many bytes a copy takes of `width` elements from register `first` on, under a mask that the first few of them
/// may pass; all or none as `taken` says, where it is set.
struct SourceSize {
  Value* bytes;
  Value* taken;
};
class SourceSizes {
 public:
  SourceSizes(Lowering& l, const ir::Op& op) : l_(l), bytes_(size_of(op.operand(1)->type.dtype)) {
    if (op.operands.size() > 2) add_parts(op.operand(2), parts_);
    const auto registers = op.operand(1)->type.layout->bases(layout::In::kRegister);
    while (!registers.empty() && dim_ + 1 < op.operand(1)->type.shape.rank && registers[0][dim_] == 0) ++dim_;
  }

  SourceSize operator()(size_t first, int width) {
    llvm::IRBuilderBase& b = l_.b;
    Value* size = b.getInt32(static_cast<uint32_t>(width * bytes_));
    // Parts with an end within a vector are mostly those of one dimension, so that its other vectors share them.
    for (const ir::Value* part : parts_) {
      if (l_.axis.of(part).constancy[static_cast<size_t>(dim_)] >= width) continue;
      Value* taken = b.getInt32(0);
      for (int i = 0; i < width; ++i)
        taken = b.CreateSelect(l_.of(part)[first + static_cast<size_t>(i)],
                               b.getInt32(static_cast<uint32_t>((i + 1) * bytes_)), taken);
      const bool is_first = llvm::isa<llvm::ConstantInt>(size);
      size = is_first ? taken : b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size, taken);
    }
    Value* all = uniform(first, width);
    // Where two parts vary, ptxas would compute both again for each copy, from rows that it holds in registers.
    const bool is_whole = llvm::isa<llvm::ConstantInt>(size) && !(all && llvm::isa<llvm::Constant>(all)) &&
                          std::ranges::count_if(parts_, [&](const ir::Value* part) { return varies(part); }) < 2;
    if (all) size = b.CreateSelect(all, size, b.getInt32(0));
    return {size, is_whole ? all : nullptr};
  }

 private:
  bool varies(const ir::Value* part) const {
    const auto& constancy = l_.axis.of(part).constancy;
    for (size_t d = 0; d < part->type.shape.rank; ++d)
      if (constancy[d] < part->type.shape.dims[d]) return true;
    return false;
  }

  /// The parts that the elements share; null: none.
  Value* uniform(size_t first, int width) {
    Value* all = nullptr;
    for (const ir::Value* part : parts_) {
      if (l_.axis.of(part).constancy[static_cast<size_t>(dim_)] < width) continue;
      Value* on = l_.of(part)[first];
      all = all ? l_.b.CreateAnd(all, on) : on;
    }
    return all;
  }

  Lowering& l_;
  const int bytes_;
  int dim_ = 0;  // along which a vector lies
  std::vector<const ir::Value*> parts_;
};

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
  SourceSizes sizes(l, op);
  Value* only = l.thread.is_zero(access.lane_mask, access.warp_mask);
  for (const std::vector<int>& group : access.groups) {
    const int width = copy_width(group, in_global);
    for (size_t i = 0; i < group.size(); i += static_cast<size_t>(width)) {
      const auto r = static_cast<size_t>(group[i]);
      Value* to = place_of(l, handle, access.offset, static_cast<uint32_t>(r), static_cast<uint32_t>(bytes));
      if (width * bytes >= kLeastBytes) {
        const SourceSize size = sizes(r, width);
        copy_ahead(l.b, to, from[r], size.bytes, size.taken, width * bytes, only);
        continue;
      }
      l.when(only, [&] {
        for (int e = 0; e < width; ++e) {
          const auto k = static_cast<uint32_t>(e);
          copy_now(l, place_of(l, handle, access.offset, static_cast<uint32_t>(r) + k, static_cast<uint32_t>(bytes)),
                   from[r + k], masks ? (*masks)[r + k] : nullptr, bytes);
        }
      });
    }
  }
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
