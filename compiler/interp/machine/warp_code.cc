#include "compiler/interp/machine/warp_code.h"

#include "compiler/layout/algebra.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;

namespace {

// Turns structured control flow into steps with jumps, so that the scheduler can switch between warps after any step.
class Flattener {
 public:
  WarpCode run(const ir::Module& module) {
    block(*module.body());
    add(StepKind::kEnd, nullptr);
    return std::move(code_);
  }

 private:
  // Jumps are added first and get their target later, when the code behind them has been emitted (land).
  size_t add(StepKind kind, const Op* op, int part = 0) {
    code_.steps.push_back({kind, op, part, 0, nullptr});
    return code_.steps.size() - 1;
  }
  int here() const { return static_cast<int>(code_.steps.size()); }
  void land(size_t jump) { code_.steps[jump].target = here(); }
  void pass(const Op* terminator, const Block* to) { code_.steps[add(StepKind::kPass, terminator)].to = to; }

  void block(const Block& b) {
    for (const Op* op : b)
      if (!ir::is_terminator(op)) visit(op);
  }

  void visit(const Op* op) {
    switch (op->kind) {
      case OpKind::kFor: {
        add(StepKind::kForBegin, op);
        size_t test = add(StepKind::kForTest, op);
        block(*op->region());
        add(StepKind::kForNext, op);
        code_.steps[add(StepKind::kJump, op)].target = static_cast<int>(test);
        land(test);
        add(StepKind::kForEnd, op);
        return;
      }
      case OpKind::kWhile: {
        const Op *condition = op->region(0)->terminator(), *end = op->region(1)->terminator();
        pass(op, op->region(0));
        int before = here();
        block(*op->region(0));
        size_t leave = add(StepKind::kBranch, condition);
        pass(condition, op->region(1));
        block(*op->region(1));
        pass(end, op->region(0));
        code_.steps[add(StepKind::kJump, op)].target = before;
        land(leave);
        pass(condition, nullptr);
        return;
      }
      case OpKind::kIf: {
        size_t otherwise = add(StepKind::kBranch, op);
        block(*op->region(0));
        pass(op->region(0)->terminator(), nullptr);
        size_t done = add(StepKind::kJump, op);
        land(otherwise);
        block(*op->region(1));
        pass(op->region(1)->terminator(), nullptr);
        land(done);
        return;
      }
      case OpKind::kBarrier:
      case OpKind::kClusterBarrier:
        add(StepKind::kBarrier, op);
        return;
      case OpKind::kMbarrierWait:
        add(StepKind::kMbarrierWait, op);
        return;
      case OpKind::kWarpSpecialize: {
        std::vector<size_t> starts;
        for (size_t i = 1; i < op->regions.size(); ++i)
          starts.push_back(add(StepKind::kSpecialize, op, static_cast<int>(i)));
        block(*op->region(0));
        size_t done = add(StepKind::kJump, op);
        for (size_t start : starts) {
          land(start);
          block(*op->region(code_.steps[start].part));
          add(StepKind::kEnd, op);
        }
        land(done);
        return;
      }
      case OpKind::kConvertLayout: {
        const ir::Type& t = op->operand(0)->type;
        int bytes = t.pointer ? 8 : size_of(t.dtype);
        auto plan = layout::plan_convert(*t.layout, *op->result()->type.layout, bytes);
        if (plan.kind == layout::ConvertKind::kShared)
          through_shared(op, op->flag(AttrName::kSyncBefore));
        else
          add(StepKind::kOp, op);
        code_.plans.emplace(op, std::move(plan));
        return;
      }
      case OpKind::kReduce: {
        auto plan = layout::plan_reduce(*op->operand(0)->type.layout, static_cast<int>(op->int_attr(AttrName::kAxis)));
        add(StepKind::kReduceOwn, op);
        if (plan.crosses_warps) through_shared(op, op->flag(AttrName::kSyncBefore));
        code_.plans.emplace(op, std::move(plan));
        return;
      }
      case OpKind::kScan: {
        auto plan = layout::plan_scan(*op->operand(0)->type.layout, static_cast<int>(op->int_attr(AttrName::kAxis)),
                                      op->flag(AttrName::kReverse));
        add(StepKind::kScanBegin, op);
        bool first = true;
        for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
          if (plan.steps[static_cast<size_t>(i)].reach != layout::ScanReach::kShared) {
            add(StepKind::kScanOwn, op, i);
            continue;
          }
          // sync_before protects the scratch from earlier ops, so only the first exchange of a scan needs it.
          through_shared(op, first && op->flag(AttrName::kSyncBefore), i);
          first = false;
        }
        code_.plans.emplace(op, std::move(plan));
        return;
      }
      case OpKind::kAtomicRmw:
      case OpKind::kAtomicCas:
        add(StepKind::kOp, op);
        if (shares_result(op)) {
          add(StepKind::kBarrier, op);
          add(StepKind::kRead, op);
          add(StepKind::kBarrier, op);
        }
        return;
      case OpKind::kBucketPlace:
      case OpKind::kScatter:
#define KILN_GATHER_OP(e, ...) case OpKind::k##e:
#define KILN_ACROSS_OP(...)
#include "compiler/ir/ops.def"
        through_shared(op, op->flag(AttrName::kSyncBefore));
        return;
      default:
        add(StepKind::kOp, op);
        return;  // every other op is one step
    }
  }

  /// One thread performs an atomic on each element; what it got must reach the others that hold a copy.
  static bool shares_result(const Op* op) {
    const ir::Type& t = op->result()->type;
    if (op->result()->uses.empty()) return false;
    if (t.is_scalar()) return true;
    layout::FreeBits free = layout::free_variables(*t.layout);
    return free.reg || free.lane || free.warp;
  }

  void through_shared(const Op* op, bool sync_before, int part = 0) {
    if (sync_before) add(StepKind::kBarrier, op);
    add(StepKind::kWrite, op, part);
    add(StepKind::kBarrier, op);
    add(StepKind::kRead, op, part);
  }

  WarpCode code_;
};

}  // namespace

WarpCode flatten(const ir::Module& module) { return Flattener().run(module); }

}  // namespace kiln::interp
