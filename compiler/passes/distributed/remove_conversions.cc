#include "compiler/passes/distributed/remove_conversions.h"

#include <algorithm>
#include <map>
#include <vector>

#include "compiler/analysis/cheap_values.h"
#include "compiler/analysis/layout_ops.h"
#include "compiler/analysis/verify_layouts.h"
#include "compiler/ir/builder.h"

namespace kiln::passes {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

class ConversionRemover {
 public:
  ConversionRemover(ir::Module& module, const target::Target& target)
      : module_(module), target_(target), cheap_(module.body()) {}

  void run() {
    visit(module_.body());
    erase_unused(module_.body());
  }

 private:
  using Key = std::pair<const Value*, const layout::LinearLayout*>;

  void visit(Block* block) {
    std::vector<Key> here;  // conversions that later ops of this block may use
    for (Op* op : *block) {
      for (Block* b : op->regions) visit(b);
      if (op->kind != OpKind::kConvertLayout) continue;
      // A chain of conversions starts from its first operand; the ones in between become dead if nothing else uses
      // them.
      while (Op* before = op->operand(0)->op) {
        if (before->kind != OpKind::kConvertLayout) break;
        op->set_operand(0, before->operand(0));
      }
      Value* from = op->operand(0);
      const layout::LinearLayout* to = op->result()->type.layout;
      if (from->type.layout == to) {
        ir::replace_all_uses(op->result(), from);
        continue;
      }
      if (cheap_.has(from)) {
        ir::replace_all_uses(op->result(), recomputed(from, to));
        continue;
      }
      if (analysis::scratch_bytes(*op) > target_.shared_per_block && only_stored(op->result())) {
        store_as_held(op->result(), from);
        continue;
      }
      auto [it, is_new] = made_.try_emplace(Key{from, to}, op->result());
      if (is_new)
        here.push_back(it->first);
      else
        ir::replace_all_uses(op->result(), it->second);
    }
    // A conversion inside a region does not dominate the ops behind the region.
    for (const Key& key : here) made_.erase(key);
  }

  /// Whether the value is only written to memory, at addresses that can be computed for any layout.
  bool only_stored(const Value* v) const {
    return std::all_of(v->uses.begin(), v->uses.end(), [&](const ir::Use& use) {
      const Op& op = *use.op;
      return op.kind == OpKind::kStore && use.index == 1 && cheap_.has(op.operand(0)) &&
             (op.operands.size() < 3 || cheap_.has(op.operand(2)));
    });
  }
  /// Shared memory has no room to make wider accesses of it.
  void store_as_held(Value* converted, Value* held) {
    const std::vector<ir::Use> uses = converted->uses;
    for (const ir::Use& use : uses)
      for (size_t i = 0; i < use.op->operands.size(); ++i)
        use.op->set_operand(static_cast<int>(i), i == 1 ? held : recomputed(use.op->operands[i], held->type.layout));
  }

  /// Right after the original, so that it stands before every use.
  Value* recomputed(Value* v, const layout::LinearLayout* layout) {
    if (v->type.layout == layout) return v;
    Value*& made = recomputed_[{v, layout}];
    if (made) return made;
    std::vector<Value*> operands;
    for (size_t i = 0; i < v->op->operands.size(); ++i) {
      Value* operand = v->op->operands[i];
      if (operand->type.is_tile())
        operand = recomputed(operand, module_.intern(*analysis::operand_layout(*v->op, static_cast<int>(i), *layout)));
      operands.push_back(operand);
    }
    ir::Builder b(module_);
    b.set_after(v->op);
    b.set_range(v->op->range);
    ir::Type type = v->type.with_layout(layout);
    made = b.create(v->op->kind, operands, std::span(&type, 1), v->op->attrs)->result();
    made->name = v->name;
    return made;
  }

  // Backwards, so that an op whose only user was erased goes too.
  void erase_unused(Block* block) {
    for (Op* op = block->last; op;) {
      Op* previous = op->prev;
      for (Block* b : op->regions) erase_unused(b);
      if (ir::is_pure(op) && op->regions.empty()) {
        bool used = false;
        for (const Value* v : op->results) used |= !v->uses.empty();
        if (!used) op->erase();
      }
      op = previous;
    }
  }

  ir::Module& module_;
  const target::Target& target_;
  analysis::CheapValues cheap_;
  std::map<Key, Value*> made_, recomputed_;
};

}  // namespace

Status remove_conversions(ir::Module& module, const target::Target& target) {
  ConversionRemover(module, target).run();
  return {};
}

}  // namespace kiln::passes
