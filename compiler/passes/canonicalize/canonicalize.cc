#include "compiler/passes/canonicalize/canonicalize.h"

#include "compiler/passes/canonicalize/rules.h"

namespace kiln::passes {

namespace {

using ir::Op;

class Canonicalizer {
 public:
  explicit Canonicalizer(ir::Module& module) : builder_(module) {}

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
      for (auto rule :
           {simplify_arithmetic, simplify_dot, simplify_cast, simplify_shape, simplify_memory, simplify_control})
        if (rule(op, builder_)) {
          changed_ = true;
          break;
        }
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
  bool changed_ = false;
};

}  // namespace

Status canonicalize(ir::Module& module, const CanonicalizeOptions&) {
  Canonicalizer(module).run(module.body());
  return {};
}

}  // namespace kiln::passes
