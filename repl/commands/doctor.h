// `kiln doctor` and %doctor: what Kiln finds on this machine, and what the lack of each costs.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "kiln/result.h"
#include "kiln/runtime.h"
#include "profiler/report/table.h"

namespace kiln::repl {

/// One row per device, library, tool, folder, and the terminal. kInterrupted: Ctrl-C came meanwhile.
Result<report::Table> doctor_table(const Runtime& runtime);

/// Whether /proc/driver/nvidia/params keeps hardware counters to root; nullopt: the text does not say.
std::optional<bool> counters_for_root_alone(std::string_view params);

}  // namespace kiln::repl
