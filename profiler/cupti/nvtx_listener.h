// How libraries that annotate their work by NVTX find CUPTI: each reads NVTX_INJECTION64_PATH at its first range.
#pragma once
#include <optional>
#include <string>

namespace kiln::profiler::cupti {

/// Lets that variable name CUPTI, unless it names a tool already. For the start of a program that profiles all it does:
/// once there are threads the environment must not change, and in every other program the libraries would load CUPTI
/// for nothing.
void name_nvtx_listener();

/// Why ranges of libraries do not come to `cupti`, the path of the library; nullopt: they do.
std::optional<std::string> why_no_library_ranges(const std::string& cupti);

}  // namespace kiln::profiler::cupti
