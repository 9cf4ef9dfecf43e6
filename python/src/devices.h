// Devices by the numbers that Python's libraries give them, and torch's current stream on each.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kiln/runtime.h"
#include "python/src/object.h"

namespace kiln::python {

struct KnownDevice {
  Device device;
  std::string target;
  std::vector<std::pair<void*, Stream>> streams;  // kept, so that a launch does not make one
};

/// What the module opens its devices of.
const Runtime& runtime_of_module();
/// Of CUDA; -1: the CPU. Opened at the first call.
KnownDevice& device_at(int index);
/// torch's current stream on that GPU, the default stream without torch; empty on the CPU.
Stream stream_at(KnownDevice& known, int index);

}  // namespace kiln::python
