#include "compiler/analysis/producer_slice.h"

#include <fmt/format.h>

#include <vector>

namespace kiln::analysis {

using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

class Slicer {
 public:
  explicit Slicer(std::span<const Op* const> loads) {
    for (const Op* load : loads) {
      for (size_t i = 1; i < load->operands.size(); ++i) need(load->operands[i]);
      enclosing(load->parent);
    }
    while (!work_.empty() && slice_.ok()) {
      const Value* v = work_.back();
      work_.pop_back();
      visit(v);
    }
  }

  ProducerSlice take() { return std::move(slice_); }

 private:
  void refuse(std::string why) {
    if (slice_.ok()) slice_.refusal = std::move(why);
  }

  void need(const Value* v) {
    if (slice_.values.insert(v).second) work_.push_back(v);
  }

  /// The ops around a block, with what decides how often they run it.
  void enclosing(const ir::Block* block) {
    for (const Op* op = block->parent; op; op = op->parent->parent) {
      if (!slice_.ops.insert(op).second) return;
      if (op->kind == OpKind::kFor)
        for (int i = 0; i < 3; ++i) need(op->operand(i));
      else if (op->kind == OpKind::kIf)
        need(op->operand(0));
      else
        return refuse(fmt::format("it stands in a {}", ir::info(op->kind).mnemonic));
    }
  }

  void visit(const Value* v) {
    if (!v->type.is_scalar()) return refuse("it depends on a tile");
    if (v->block) return visit_arg(v);
    const Op* op = v->op;
    if (op->kind == OpKind::kFor) {
      repeat(op);
      need(op->operands[v->index + 3]);
      need(op->region()->terminator()->operands[v->index]);
    } else if (op->kind == OpKind::kIf) {
      repeat(op);
      for (const ir::Block* region : op->regions) need(region->terminator()->operands[v->index]);
    } else if (ir::is_pure(op) && op->regions.empty()) {
      slice_.ops.insert(op);
      for (const Value* operand : op->operands) need(operand);
    } else {
      refuse(fmt::format("it depends on a {}", ir::info(op->kind).mnemonic));
    }
  }

  void visit_arg(const Value* v) {
    const Op* op = v->block->parent;
    if (!op) return;  // a parameter of the kernel
    if (op->kind != OpKind::kFor) return refuse(fmt::format("it depends on a {}", ir::info(op->kind).mnemonic));
    repeat(op);
    if (v->index == 0) return;
    need(op->operands[v->index + 2]);
    need(op->region()->terminator()->operands[v->index - 1]);
  }

  void repeat(const Op* op) { enclosing(op->regions[0]); }

  ProducerSlice slice_;
  std::vector<const Value*> work_;
};

}  // namespace

ProducerSlice producer_slice(std::span<const Op* const> loads) { return Slicer(loads).take(); }

}  // namespace kiln::analysis
