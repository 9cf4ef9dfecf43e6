#include "support/log.h"

#include <cstdio>
#include <mutex>

namespace kiln {

namespace {

struct Log {
  std::mutex mutex;
  LogSink sink;
};

Log& the_log() {
  static Log* log = new Log;  // never destroyed: destructors at exit may log
  return *log;
}

}  // namespace

void set_log(LogSink sink) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  log.sink = std::move(sink);
}

void write_log(LogLevel level, std::string_view text) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  bool is_told = false;
  if (log.sink) {
    try {
      log.sink(level, text);
      is_told = true;
    } catch (...) {  // what is remarked on goes on
      is_told = false;
    }
  }
  if (is_told) return;
  std::fprintf(stderr, "kiln: %s: %.*s\n", level == LogLevel::kNote ? "note" : "warning", static_cast<int>(text.size()),
               text.data());
}

}  // namespace kiln
