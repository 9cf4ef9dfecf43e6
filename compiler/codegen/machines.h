// Target machines of LLVM for use one after another: one costs about as much as compiling a small kernel, and is for
// one thread at a time.
#pragma once
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kiln/result.h"

namespace kiln::codegen {

/// Those of one target that nobody uses now. Thread-safe.
class Machines {
 public:
  struct GiveBack {
    Machines* to;
    void operator()(llvm::TargetMachine* machine) const { to->give_back(machine); }
  };
  using Lent = std::unique_ptr<llvm::TargetMachine, GiveBack>;

  /// One of them, or what `make` gives as a Result<llvm::TargetMachine*>.
  template <class Make>
  Result<Lent> take(Make make) {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Lent lent(idle_.back().release(), GiveBack{this});
        idle_.pop_back();
        return lent;
      }
    }
    KILN_TRY(llvm::TargetMachine * made, make());
    return Lent(made, GiveBack{this});
  }

 private:
  void give_back(llvm::TargetMachine* machine) {
    std::lock_guard lock(mutex_);
    idle_.emplace_back(machine);
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<llvm::TargetMachine>> idle_;
};

}  // namespace kiln::codegen
