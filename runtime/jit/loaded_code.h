// Code as it was loaded: what a launch tells of it, and what profilers map addresses to source lines with.
#pragma once
#include <memory>
#include <vector>

#include "kiln/device.h"
#include "kiln/kernel_info.h"
#include "support/source.h"

namespace kiln::runtime {

struct LoadedCode : KernelInfo {
  std::vector<std::shared_ptr<const SourceText>> sources;  // that its lines are lines of; the kernel's own first
};

/// Of every kernel that is loaded on a GPU of the device's runtime, oldest first.
std::vector<std::shared_ptr<const LoadedCode>> loaded_code(const Device& device);

}  // namespace kiln::runtime
