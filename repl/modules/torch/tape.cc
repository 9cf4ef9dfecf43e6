#include "repl/modules/torch/tape.h"

#include <algorithm>

#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

Expr Tape::variable(const TensorObject& of, const Tensor& elements) {
  // Each step of an optimizer makes new variables, and what the old ones were part of goes soon.
  if (entries_.size() >= limit_) {
    std::erase_if(entries_, [](const auto& e) { return e.second.variable.expired(); });
    limit_ = std::max<size_t>(64, 2 * entries_.size());
  }
  auto made = scope_.variable(Expr(elements));
  KILN_ASSERT(made.ok(), "a leaf of the tape is of floats");
  // An expression of a tensor is asked of one that does not change; its gradient goes into the tensor all the same.
  entries_[made->node()] = {made->shared(), {const_cast<TensorObject*>(&of), false}};
  return *std::move(made);
}

void Tape::note_change(const Expr& variable) {
  if (variable.shared().use_count() == 1)
    entries_.erase(variable.node());
  else
    entries_.at(variable.node()).leaf.was_changed = true;
}

void Tape::remove(const TensorObject& tensor) {
  std::erase_if(entries_, [&](const auto& e) { return e.second.leaf.tensor == &tensor; });
  std::erase(retained_, &tensor);
}

Tape::Leaf Tape::leaf_of(const Expr& variable) const {
  const auto found = entries_.find(variable.node());
  return found == entries_.end() || found->second.variable.lock() != variable.shared() ? Leaf() : found->second.leaf;
}

void Tape::retain(TensorObject& tensor) {
  if (std::ranges::find(retained_, &tensor) == retained_.end()) retained_.push_back(&tensor);
}

}  // namespace kiln::script
