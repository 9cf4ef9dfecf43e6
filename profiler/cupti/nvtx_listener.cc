#include "profiler/cupti/nvtx_listener.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "profiler/cupti/library.h"
#include "profiler/cupti/nvtx.h"
#include "support/environment.h"

namespace kiln::profiler::cupti {
namespace {

constexpr const char* kVariable = "NVTX_INJECTION64_PATH";

}  // namespace

void name_nvtx_listener() {
#if KILN_HAS_CUPTI
  nvtx::initialize();  // Kiln's own ranges, which the host's trace has, stay out of it
  if (environment(kVariable)) return;
  const std::vector<std::string> names = library_names();
  const auto file = std::ranges::find_if(names, [](const std::string& n) { return access(n.c_str(), R_OK) == 0; });
  set_environment(kVariable, file != names.end() ? *file : names.back());
#endif
}

std::optional<std::string> why_no_library_ranges(const std::string& cupti) {
  const char* named = std::getenv(kVariable);  // as the libraries see it
  if (!named || !*named)
    return fmt::format("{} did not name CUPTI when the program began: set it to {} (`kiln profile FILE` does)",
                       kVariable, cupti);
  std::error_code is_no_file;
  if (named == cupti || std::filesystem::equivalent(named, cupti, is_no_file)) return std::nullopt;
  return fmt::format("they go to {}, which {} names", named, kVariable);
}

}  // namespace kiln::profiler::cupti
