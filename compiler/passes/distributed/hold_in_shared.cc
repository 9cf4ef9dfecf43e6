#include "compiler/passes/distributed/hold_in_shared.h"

#include <algorithm>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/shared_memory.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/distributed/read_again.h"
#include "compiler/passes/tile/dce.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/shared_handles.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

// cp.async copies up to 16 bytes; smaller copies cost more instructions than the registers they save.
constexpr int kUnit = 16;
// What a program holds while it waits for other programs keeps more of them from running beside it, and the wait is far
// longer than a reduction's.
constexpr int kManyOfWaiting = 16, kUnitOfWaiting = 8;

class RowHolder {
 public:
  RowHolder(ir::Module& module, const target::Target& target)
      : module_(module),
        // Half of the maximum leaves room for a second block on the SM.
        room_(std::min(target.shared_per_block / 2, shared_room(module, target))),
        axis_(module),
        b_(module) {}

  void run() {
    for (Op* op : *module_.body())
      if (op->kind == OpKind::kLoad && fits(op)) loads_.push_back(op);
    // Loads are chosen before the first one is rewritten, since axis info knows only the original ops.
    for (Op* load : loads_) bring(load);
    read_again(module_, reads_);
  }

 private:
  bool fits(const Op* load) {
    const ir::Type& type = load->result()->type;
    if (!type.is_tile() || type.pointer || load->flag(ir::AttrName::kVolatile)) return false;
    const bool waits = outlives_wait(load);
    if (axis_.vector_width(load) * size_of(type.dtype) < (waits ? kUnitOfWaiting : kUnit)) return false;
    if (type.layout->num_registers() < (waits ? kManyOfWaiting : kManyRegisters)) return false;
    if (!outlives_reduction(load)) return false;
    const int64_t bytes = analysis::shared_bytes(buffer_type(load));
    if (bytes > room_) return false;
    room_ -= bytes;
    return true;
  }

  ir::Type buffer_type(const Op* load) {
    const ir::Type& type = load->result()->type;
    const auto order = axis_.order_of(load->operand(0));
    return rows_type(module_, type, std::span(order).first(static_cast<size_t>(type.shape.rank)));
  }

  void bring(Op* load) {
    const ir::Type type = load->result()->type;
    b_.set_range(load->range);
    b_.set_before(module_.body()->first);
    const ir::Type shared = buffer_type(load);
    Value* buffer = b_.create(OpKind::kSharedAlloc, {}, std::span(&shared, 1))->result();
    b_.set_before(load);
    std::vector<Value*> operands = {buffer, load->operand(0)};
    if (load->operands.size() > 1) operands.push_back(load->operand(1));
    b_.create(OpKind::kAsyncCopy, operands, {});
    b_.create(OpKind::kAsyncCommit, {}, {});
    // As late as possible, but ahead of what could write what is still being read.
    Op* first = load->next;
    auto uses = [&](const Op* op) {
      return std::any_of(op->operands.begin(), op->operands.end(), [&](const Value* v) { return v == load->result(); });
    };
    while (!changes_memory(first) && !ir::any_nested(first, uses)) first = first->next;
    b_.set_before(first);
    b_.create(OpKind::kAsyncWait, {}, {}, {{ir::AttrName::kCount, int64_t{0}}});
    join_lanes(b_, warps_share(type));
    Value* v = b_.create1(OpKind::kSharedLoad, {buffer}, type);
    reads_.push_back(v->op);
    // A copy fills what is masked off with 0.
    if (load->operands.size() == 3 && constant_of(load->operand(2)) != uint64_t{0})
      v = b_.select(load->operand(1), v, load->operand(2));
    replace(load, v);
  }

  ir::Module& module_;
  int64_t room_;
  const analysis::AxisAnalysis axis_;
  ir::Builder b_;
  std::vector<Op*> loads_, reads_;
};

}  // namespace

Status hold_in_shared(ir::Module& module, const target::Target& target) {
  if (!target.has(target::kCpAsync) || has_op(module, OpKind::kDot)) return {};
  RowHolder(module, target).run();
  return dce(module);
}

}  // namespace kiln::passes
