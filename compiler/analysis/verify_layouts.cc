#include "compiler/analysis/verify_layouts.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/analysis/dot_layouts.h"
#include "compiler/analysis/layout_ops.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/layout/reduce_plan.h"
#include "support/diag.h"

namespace kiln::analysis {

using ir::Op;
using ir::OpKind;
using layout::In;
using layout::LinearLayout;

namespace {

constexpr int64_t kScratchAlignment = 16;

int bytes_of(const ir::Type& t) { return t.pointer ? 8 : size_of(t.dtype); }

std::vector<int> operand_bytes(const Op& op) {
  std::vector<int> bytes;
  for (const ir::Value* v : op.operands) bytes.push_back(bytes_of(v->type));
  return bytes;
}

class Checker {
 public:
  explicit Checker(const ir::Module& module) : module_(module) {}

  Status run() {
    if (module_.stage == ir::Stage::kTile) return {};
    for (const ir::Value* arg : module_.body()->args) KILN_CHECK_OK(check_value(nullptr, arg));
    return check_block(*module_.body());
  }

 private:
  // A violation is a bug of a pass, so the message has the IR of the op and the number of the rule in the header.
  Diagnostic fail(const Op* op, int rule, std::string_view what) const {
    Diagnostic d =
        error_at(op ? op->range : SourceRange{}, ErrorKind::kInternal, "the layouts break rule {}: {}", rule, what);
    return op ? with_note(std::move(d), "in: " + ir::print(*op)) : d;
  }

  Status check_block(const ir::Block& block) {
    for (const Op* op : block) {
      for (const ir::Value* v : op->results) KILN_CHECK_OK(check_value(op, v));
      for (const ir::Block* b : op->regions)
        for (const ir::Value* v : b->args) KILN_CHECK_OK(check_value(op, v));
      KILN_CHECK_OK(check_op(*op));
      for (const ir::Block* b : op->regions) KILN_CHECK_OK(check_block(*b));
    }
    return {};
  }

  Status check_value(const Op* op, const ir::Value* v) {
    if (!v->type.is_tile()) return {};
    const LinearLayout* l = v->type.layout;
    if (!l) return fail(op, 1, "a tile has no layout");
    if (l->bits(In::kLane) != 5 || l->size(In::kWarp) != module_.num_warps || l->bits(In::kBlock) ||
        l->bits(In::kOffset))
      return fail(op, 1,
                  fmt::format("a layout of {} lanes and {} warps in a kernel of {} warps: {}", l->size(In::kLane),
                              l->size(In::kWarp), module_.num_warps, layout::to_string(*l)));
    if (!layout::is_surjective(*l)) return fail(op, 1, "a layout lacks elements: " + layout::to_string(*l));
    return {};
  }

  Status check_op(const Op& op) {
    switch (op.kind) {
      case OpKind::kExpandDims:
      case OpKind::kBroadcast:
      case OpKind::kReshape:
      case OpKind::kTrans:
      case OpKind::kJoin:
      case OpKind::kSplit:
        for (int i = 0; i < static_cast<int>(op.results.size()); ++i)
          if (source_registers(op, i).empty()) return fail(&op, 2, "a thread lacks an element of the operand");
        return {};
      case OpKind::kReduce:
      case OpKind::kScan:
        KILN_CHECK_OK(check_combine(op));
        return check_scratch(op);
      case OpKind::kConvertLayout:
        return check_scratch(op);
      case OpKind::kDot:
        if (is_on_registers(op) && !plan_dot(op))
          return fail(&op, 5, "a thread or warp lacks what its part of the product needs");
        return {};
      case OpKind::kBucketPlace: {
        const auto wanted = layout::stretches(op.operand(0)->type.shape[0], module_.num_warps);
        if (*op.operand(0)->type.layout != wanted || *op.result()->type.layout != wanted)
          return fail(&op, 7, "the warps do not hold stretches in their order: " + layout::to_string(wanted));
        return check_scratch(op);
      }
      case OpKind::kScatter:
#define KILN_GATHER_OP(e, ...) case OpKind::k##e:
#define KILN_ACROSS_OP(...)
#include "compiler/ir/ops.def"
        for (size_t i = 1; i < op.operands.size(); ++i)
          if (op.operands[i]->type.is_tile() && op.operands[i]->type.layout != op.result()->type.layout)
            return fail(&op, 6, "an operand and the result have different layouts");
        return check_scratch(op);
      default:  // Elementwise ops and control flow: one layout each, which the IR's verifier has checked.
        return {};
    }
  }

  Status check_combine(const Op& op) {
    const LinearLayout* l = op.operand(0)->type.layout;
    for (const ir::Value* v : op.operands)
      if (v->type.layout != l) return fail(&op, 3, "operands have different layouts");
    if (!layout::has_unit_bases(*l)) return fail(&op, 3, "the layout mixes dimensions: " + layout::to_string(*l));
    for (const ir::Value* v : op.results) {
      if (v->type.is_scalar()) continue;
      auto wanted = result_layout(op, *l);
      if (*v->type.layout != *wanted)
        return fail(&op, 3,
                    fmt::format("the result is held as {}, not {}", layout::to_string(*v->type.layout),
                                layout::to_string(*wanted)));
    }
    return {};
  }

  Status check_scratch(const Op& op) {
    // Before allocate_shared runs, no op has an offset and none is required.
    bool allocated = module_.shared_bytes > 0 || op.has(ir::AttrName::kSharedOffset);
    int64_t bytes = allocated ? scratch_bytes(op) : 0;
    if (bytes == 0) return {};
    if (!op.has(ir::AttrName::kSharedOffset))
      return fail(&op, 4, fmt::format("{} bytes of scratch without a place", bytes));
    int64_t at = op.int_attr(ir::AttrName::kSharedOffset);
    if (at < 0 || at % kScratchAlignment != 0 || at + bytes > module_.shared_bytes)
      return fail(
          &op, 4,
          fmt::format("{} bytes of scratch at {} in {} bytes of shared memory", bytes, at, module_.shared_bytes));
    return {};
  }

  const ir::Module& module_;
};

}  // namespace

Status verify_layouts(const ir::Module& module) { return Checker(module).run(); }

// The plan decides the bytes: a conversion within a thread or by shuffles needs none. Each operand of a reduction has
// its own share, so the total is the end of the last one. A gather may need any element.
int64_t scratch_bytes(const Op& op) {
  const ir::Type& t = op.operands.empty() ? ir::Type{} : op.operand(0)->type;
  if (!t.layout) return 0;
  if (op.kind == OpKind::kConvertLayout)
    return layout::plan_convert(*t.layout, *op.result()->type.layout, bytes_of(t)).scratch_bytes;
  if (ir::is_gather(op.kind) || op.kind == OpKind::kScatter) return t.shape.numel() * bytes_of(t);
  if (op.kind == OpKind::kBucketPlace) {  // each warp's counts, those of all, and sums of warps
    const int64_t warps = t.layout->size(In::kWarp);
    return ((warps + 1) * op.int_attr(ir::AttrName::kBins) + warps) * bytes_of(t);
  }
  if (op.kind != OpKind::kReduce && op.kind != OpKind::kScan) return 0;
  int axis = static_cast<int>(op.int_attr(ir::AttrName::kAxis));
  int64_t elements = op.kind == OpKind::kReduce
                         ? layout::plan_reduce(*t.layout, axis).scratch_elements
                         : layout::plan_scan(*t.layout, axis, op.flag(ir::AttrName::kReverse)).scratch_elements;
  return layout::scratch_shares(elements, operand_bytes(op)).back();
}

}  // namespace kiln::analysis
