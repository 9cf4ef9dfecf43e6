#include "compiler/passes/canonicalize/canonicalize.h"

#include "compiler/passes/canonicalize/rules.h"

namespace kiln::passes {

namespace {

using ir::Op;

class Canonicalizer {
 public:
  /// Of the rules, those that apply to an op.
  using Rules = bool (*)(Op*, ir::Builder&);

  Canonicalizer(ir::Module& module, Rules rules) : builder_(module), rules_(rules) {}

  void run(ir::Block* body) {
    do {
      changed_ = false;
      visit(body);
      sweep(body);
    } while (changed_);
  }

 private:
  // Inner regions first, so that an op sees them simplified.
  void visit(ir::Block* block) {
    for (Op* op : *block) {
      for (ir::Block* region : op->regions) visit(region);
      builder_.set_before(op);
      builder_.set_range(op->range);
      changed_ = rules_(op, builder_) || changed_;
    }
  }

  // Pure ops that nobody uses, last first: a whole chain goes at once.
  void sweep(ir::Block* block) {
    for (Op *op = block->last, *previous = nullptr; op; op = previous) {
      previous = op->prev;
      for (ir::Block* region : op->regions) sweep(region);
      bool used = !ir::is_pure(op);
      for (ir::Value* r : op->results) used = used || !r->uses.empty();
      if (used) continue;
      op->erase();
      changed_ = true;
    }
  }

  ir::Builder builder_;
  Rules rules_;
  bool changed_ = false;
};

/// The first rule that applies.
bool simplify(Op* op, ir::Builder& b) {
  return simplify_arithmetic(op, b) || simplify_dot(op, b) || simplify_cast(op, b) || simplify_shape(op, b) ||
         simplify_memory(op, b) || simplify_control(op, b);
}

bool simplify_scalar(Op* op, ir::Builder& b) {
  if (op->kind == ir::OpKind::kIf) return constant_of(op->operand(0)) && simplify_control(op, b);
  return op->results.size() == 1 && !op->result()->type.is_tile() && simplify_arithmetic(op, b);
}

}  // namespace

Status canonicalize(ir::Module& module, const CanonicalizeOptions&) {
  Canonicalizer(module, simplify).run(module.body());
  return {};
}

Status simplify_scalars(ir::Module& module, const SimplifyScalarsOptions&) {
  Canonicalizer(module, simplify_scalar).run(module.body());
  return {};
}

}  // namespace kiln::passes
