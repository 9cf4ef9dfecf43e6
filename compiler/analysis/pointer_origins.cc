#include "compiler/analysis/pointer_origins.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/joined_values.h"

namespace kiln::analysis {

using ir::Op;
using ir::Value;

namespace {

bool is_address(const Value* v) { return v->type.pointer || v->type.form == ir::Form::kDescriptor; }

// Walks the definitions backwards from an address. A work list instead of recursion, because loop-carried values form
// cycles.
class Search {
 public:
  PointerOrigins from(const Value* address) {
    reach(address);
    while (!todo_.empty()) {
      const Value* v = todo_.back();
      todo_.pop_back();
      if (const auto joined = joined_values(v); !joined.empty())
        std::ranges::for_each(joined, [&](const Value* one) { reach(one); });
      else if (v->op)
        through_result(*v->op);
      else if (v->block->parent)
        found_.unknown = true;
      else
        found_.params.insert(static_cast<int>(v->index));
    }
    return std::move(found_);
  }

 private:
  void reach(const Value* v) {
    if (seen_.insert(v).second) todo_.push_back(v);
  }

  // Pure ops compute addresses only from addresses, so integer operands are not followed. Anything without an address
  // operand (a load, int_to_ptr) gives an address of unknown origin.
  void through_result(const Op& op) {
    bool any = false;
    if (ir::is_pure(&op) && op.regions.empty())
      for (const Value* v : op.operands)
        if (is_address(v)) reach(v), any = true;
    found_.unknown |= !any;
  }

  PointerOrigins found_;
  std::unordered_set<const Value*> seen_;
  std::vector<const Value*> todo_;
};

}  // namespace

void PointerOrigins::join(const PointerOrigins& other) {
  params.insert(other.params.begin(), other.params.end());
  unknown |= other.unknown;
}

bool PointerOrigins::meets(const PointerOrigins& other) const {
  // An address of unknown origin may point into any parameter's tensor, but two empty sets never meet.
  if (unknown) return other.unknown || !other.params.empty();
  return (other.unknown && !params.empty()) ||
         std::any_of(params.begin(), params.end(), [&](int p) { return other.params.contains(p); });
}

PointerOrigins pointer_origins(const Value* address) { return Search().from(address); }

PointerOrigins written_origins(ir::Module& module) {
  PointerOrigins found;
  ir::walk(module.body(), [&](Op* op) {
    if (!ir::writes_memory(op)) return;
    found.unknown |= op->kind == ir::OpKind::kAsmEffect;  // it may write what no operand points to
    for (const Value* v : op->operands)
      if (is_address(v)) found.join(pointer_origins(v));
  });
  return found;
}

}  // namespace kiln::analysis
