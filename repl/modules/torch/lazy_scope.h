// Where operations make expressions however small their tensors are.
#pragma once
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// While it lives and `lazy` is true, operations stay pending; what was so before stays so.
class LazyScope {
 public:
  LazyScope(Interp& in, bool lazy) : in_(in), before_(in.always_lazy) { in.always_lazy = lazy || before_; }
  ~LazyScope() { in_.always_lazy = before_; }
  LazyScope(const LazyScope&) = delete;
  LazyScope& operator=(const LazyScope&) = delete;

 private:
  Interp& in_;
  const bool before_;
};

/// check(expression), whose argument is evaluated so.
inline constexpr std::string_view kCheck = "check";
void install_check(Interp& in);

}  // namespace kiln::script
