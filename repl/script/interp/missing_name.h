// What an error says of a name that is not there.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "repl/script/interp/interp.h"

namespace kiln::script {

/// The way that a module's library has instead (`help` may be null), or the nearest of the names that are there; empty
/// where there is neither.
std::string help_of_missing(ModuleHelp help, std::string_view module, std::string_view name,
                            const std::vector<std::string>& names);

}  // namespace kiln::script
