// The library's remarks, on their way to kiln/log.h.
#pragma once
#include <string_view>

#include "kiln/log.h"

namespace kiln {

void write_log(LogLevel level, std::string_view text);

}  // namespace kiln
