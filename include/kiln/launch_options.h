// How a kernel is launched, beside its grid and arguments.
#pragma once
#include "kiln/device.h"

namespace kiln {

/// What the code of a kernel follows from beside its arguments: the rows of launch_option.def.
struct CodeOptions {
#define KILN_LAUNCH_OPTION(NAME, TYPE, DEFAULT, PYTHON, LEAST, MOST, TRAITS, HELP) TYPE NAME = DEFAULT;
#include "kiln/launch_option.def"
  bool operator==(const CodeOptions&) const = default;
};

struct LaunchOptions : CodeOptions {
  /// Seconds that the launch may take; it is waited for then, and fails with kLaunch when they are over. 0:
  /// KILN_TIMEOUT.
  double timeout_s = 0;
  Stream stream = {};  // empty: the device's default stream
  Device device = {};  // where it runs when no argument is a tensor
};

}  // namespace kiln
