// Code of a kernel that guards its accesses, as KernelImpl keeps it for each specialisation.
#pragma once
#include <memory>

#include "compiler/passes/tile/guard_accesses.h"
#include "runtime/device/device.h"

namespace kiln::runtime {

struct CheckedCode {
  std::shared_ptr<Backend> backend;  // outlives `loaded`
  std::shared_ptr<LoadedKernel> loaded;
  passes::GuardedAccesses guards;
  std::vector<std::string> param_names;  // of the kernel's own parameters
};

}  // namespace kiln::runtime
