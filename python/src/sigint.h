// Ctrl-C while a launch on the CPU runs, which has no Python code in it to notice.
#pragma once
#include "kiln/result.h"
#include "python/src/object.h"

namespace kiln::python {

/// While one lives, SIGINT ends launches on the CPU. Only on the main thread, where Python's signals are handled;
/// nothing elsewhere. Python's own handler (or the program's) is called first of all, as ever.
class SigintScope {
 public:
  SigintScope();
  ~SigintScope();
  SigintScope(const SigintScope&) = delete;
  SigintScope& operator=(const SigintScope&) = delete;

 private:
  bool on_main_thread_;
};

/// As check(); that a launch was interrupted is what Python's handler raises, or KeyboardInterrupt.
void check_launch(const Status& status);

/// fn() → Status on the device of an index, -1 being the CPU, without the GIL.
template <class Fn>
void launch_without_gil(int device, Fn fn) {
  const Status status = [&] {
    WithoutGil without;
    if (device >= 0) return fn();
    SigintScope scope;
    return fn();
  }();
  check_launch(status);
}

}  // namespace kiln::python
