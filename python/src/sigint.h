// Ctrl-C while a launch on the CPU runs, which has no Python code in it to notice.
#pragma once
#include "kiln/result.h"
#include "python/src/object.h"

namespace kiln::python {

/// While one lives, SIGINT ends launches on the CPU. Only on the main thread, where Python's signals are handled;
/// nothing elsewhere. Python's own handler (or the program's) is called too, as ever.
class SigintScope {
 public:
  /// With the GIL. Throws Raised where a signal came before, of which Python has not called the handler yet.
  SigintScope();
  ~SigintScope();
  SigintScope(const SigintScope&) = delete;
  SigintScope& operator=(const SigintScope&) = delete;

 private:
  static void end();
  bool on_main_thread_;
};

/// As check(); that a launch was interrupted is what Python's handler raises, or KeyboardInterrupt.
void check_launch(const Status& status);

/// fn() → Status on the device of an index, -1 being the CPU, without the GIL.
template <class Fn>
void launch_without_gil(int device, Fn fn) {
  const Status status = [&] {
    if (device >= 0) {
      WithoutGil without;
      return fn();
    }
    SigintScope scope;
    WithoutGil without;
    return fn();
  }();
  check_launch(status);
}

}  // namespace kiln::python
