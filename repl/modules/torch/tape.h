// The tensors of a session that require gradients: the leaves that backward() walks to.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "kiln/expr.h"

namespace kiln::script {

class TensorObject;

/// What is made of its tensors is recorded, while it is not paused, until backward() releases it.
class Tape {
 public:
  /// A tensor of floats' elements as they are now, as a variable that gradients may be asked of.
  Expr variable(const TensorObject& of, const Tensor& elements);
  /// The elements change: gradients of what was made of them before are an error.
  void note_change(const Expr& variable);
  /// The tensor is gone, or requires no gradient any more: what is made of it has none for it.
  void remove(const TensorObject& tensor);

  struct Leaf {
    TensorObject* tensor = nullptr;  // nullptr: gone, or of torch.func
    bool was_changed = false;        // since this variable was made of it
  };
  Leaf leaf_of(const Expr& variable) const;

  /// Operations whose gradient backward() keeps as well, by retain_grad().
  void retain(TensorObject& tensor);
  const std::vector<TensorObject*>& retained() const { return retained_; }

  bool is_paused = false;  // inside of torch.no_grad()
  /// An optimizer has leaves, a tensor was made one by its own flag, or gradients were asked of something: results keep
  /// what gradients read again. A model that is only asked records, and stores nothing for it.
  bool expects_gradients = false;

 private:
  struct Entry {
    std::weak_ptr<runtime::ExprNode> variable;  // the address of one that is gone may be another's
    Leaf leaf;
  };

  GradScope scope_;
  std::unordered_map<const runtime::ExprNode*, Entry> entries_;
  size_t limit_ = 64;  // of entries, before those whose variables are gone are looked for
  std::vector<TensorObject*> retained_;
};

}  // namespace kiln::script
