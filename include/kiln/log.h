// Where the library's remarks go: that kernels are not cached, that records are not read.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

namespace kiln {

enum class LogLevel : uint8_t { kNote, kWarning };

/// One sentence each, from any thread, one at a time; it must not call Kiln. Empty: to standard error again, as
/// "kiln: warning: …", as is a sentence at which it throws. Errors are returned, never logged.
using LogSink = std::function<void(LogLevel level, std::string_view text)>;
void set_log(LogSink sink);

}  // namespace kiln
