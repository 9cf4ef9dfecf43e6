// Annotations of the user as NVTX ranges, so that Nsight Systems and other tools show them too.
#pragma once
#include <string>

namespace kiln::profiler::nvtx {

/// Asks once, and for good, whether a tool listens (NVTX_INJECTION64_PATH names one); push() does so by itself.
void initialize();

/// Begins a range of the calling thread, in the domain "kiln"; ranges nest. While no tool listens it is one check.
void push(const std::string& name);
/// Ends the innermost one.
void pop();

/// Null, or why this build emits no ranges.
const char* absent_because();

}  // namespace kiln::profiler::nvtx
