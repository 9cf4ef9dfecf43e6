// Where operations make expressions however small their tensors are.
#pragma once
#include "repl/modules/torch/torch_state.h"

namespace kiln::script {

/// While it lives, operations stay pending; afterwards it is as before.
class LazyScope {
 public:
  explicit LazyScope(Interp& in) : state_(torch_state(in)), before_(state_.always_lazy) { state_.always_lazy = true; }
  ~LazyScope() { state_.always_lazy = before_; }
  LazyScope(const LazyScope&) = delete;
  LazyScope& operator=(const LazyScope&) = delete;

 private:
  TorchState& state_;
  const bool before_;
};

/// check(expression), whose argument is evaluated so.
void install_check(Interp& in);

}  // namespace kiln::script
