#include "compiler/analysis/layout_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/verify_layouts.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/layout/reduce_plan.h"

namespace kiln::analysis {

using ir::Op;
using ir::OpKind;
using layout::LinearLayout;

namespace {

class Report {
 public:
  explicit Report(const ir::Module& module) : module_(module), axis_(module) {}

  std::string text() {
    std::string out;
    walk(module_.body(), [&](Op* op) {
      bool shown = op->kind == OpKind::kConvertLayout || op->kind == OpKind::kReduce || op->kind == OpKind::kScan ||
                   ir::op_class(op->kind) == ir::OpClass::kMemory;
      if (shown) out += line(*op);
    });
    if (module_.num_ctas > 1) out += cluster();
    for (size_t i = 0; i < seen_.size(); ++i)
      out += fmt::format("\nL{}: {}\n{}", i, layout::to_string(*seen_[i]), layout::draw(*seen_[i]));
    return out + fmt::format("{}shared memory: {} bytes\n", seen_.empty() ? "" : "\n", module_.shared_bytes);
  }

 private:
  /// What the blocks of a program share.
  std::string cluster() const {
    int loads = 0, shared = 0;
    walk(module_.body(), [&](const Op* op) {
      if (op->kind != OpKind::kTmaLoad) return;
      ++loads;
      shared += op->flag(ir::AttrName::kCluster);
    });
    if (shared == 0) return fmt::format("{} blocks per program, each loads for itself\n", module_.num_ctas);
    return fmt::format("{} blocks per program, {} of {} loads are made once for all of them\n", module_.num_ctas,
                       shared, loads);
  }

  std::string name(const LinearLayout* l) {
    auto it = std::find(seen_.begin(), seen_.end(), l);
    size_t i = static_cast<size_t>(it - seen_.begin());
    if (it == seen_.end()) seen_.push_back(l);
    return fmt::format("L{}", i);
  }

  std::string tile(const ir::Type& t) {
    return t.layout ? ir::to_string(t) + "{" + name(t.layout) + "}" : ir::to_string(t);
  }

  std::string line(const Op& op) {
    int number = place_of(op.range).line;
    std::string s = fmt::format("{:>4}  {:<14} {}", number ? std::to_string(number) : "-", ir::info(op.kind).mnemonic,
                                tile(op.operand(0)->type));
    if (op.kind == OpKind::kConvertLayout) s += " -> " + name(op.result()->type.layout);
    std::string how = describe(op);
    return fmt::format("{:<48}{}\n", s, how.empty() ? how : " " + how);
  }

  std::string describe(const Op& op) {
    const ir::Type& t = op.operand(0)->type;
    if (!t.layout) return "once per program";
    std::string s;
    if (op.kind == OpKind::kConvertLayout) {
      auto plan = layout::plan_convert(*t.layout, *op.result()->type.layout, t.pointer ? 8 : size_of(t.dtype));
      s = fmt::format("by {}", layout::name(plan.kind));
      if (plan.kind == layout::ConvertKind::kShuffle) s += fmt::format(", {} shuffles", plan.num_slots);
      if (plan.kind == layout::ConvertKind::kShared)
        s += fmt::format(", writes of {} and reads of {} elements, {} and {} bank cycles each", plan.write.vector,
                         plan.read.vector, plan.write.wavefronts, plan.read.wavefronts);
    } else if (op.kind == OpKind::kReduce) {
      auto plan = layout::plan_reduce(*t.layout, static_cast<int>(op.int_attr(ir::AttrName::kAxis)));
      s = fmt::format("{} registers, {} lane steps{}", plan.registers[0].size(),
                      plan.halvings.size() + plan.lane_masks.size(), plan.crosses_warps ? ", across warps" : "");
    } else if (op.kind == OpKind::kScan) {
      auto plan = layout::plan_scan(*t.layout, static_cast<int>(op.int_attr(ir::AttrName::kAxis)),
                                    op.flag(ir::AttrName::kReverse));
      s = fmt::format("{} steps", plan.steps.size());
    } else {
      s = fmt::format("{} bytes at a time", axis_.vector_width(&op) * size_of(t.dtype));
    }
    if (op.has(ir::AttrName::kSharedOffset))
      s += fmt::format(", {} bytes of shared memory at {}{}", scratch_bytes(op),
                       op.int_attr(ir::AttrName::kSharedOffset),
                       op.flag(ir::AttrName::kSyncBefore) ? " after a barrier" : "");
    return s;
  }

  const ir::Module& module_;
  AxisAnalysis axis_;
  std::vector<const LinearLayout*> seen_;
};

}  // namespace

std::string layout_report(const ir::Module& module) { return Report(module).text(); }

}  // namespace kiln::analysis
