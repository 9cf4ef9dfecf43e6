// GPU code as it was loaded, for profilers that map addresses to source lines.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "support/source.h"

namespace kiln::runtime {

struct LoadedCode {
  std::string name;    // of the kernel
  std::string target;  // "sm_90a"
  std::string cubin;   // empty: there was no assembler, and the driver compiled `ptx` itself
  std::string ptx;
  int registers = -1;                                      // per thread
  bool has_dot = false;                                    // its source multiplies tiles
  std::vector<std::shared_ptr<const SourceText>> sources;  // that its lines are lines of; the kernel's own first
};

/// Of every kernel of this process that is loaded on a GPU, oldest first.
std::vector<std::shared_ptr<const LoadedCode>> loaded_code();

}  // namespace kiln::runtime
