// `kiln cache export FILE` and `kiln cache import FILE`: compiled kernels and tuning records for another machine.
#pragma once
#include <string>

namespace kiln::repl {

int export_cache(const std::string& file, bool json);
int import_cache(const std::string& file, bool json);

}  // namespace kiln::repl
