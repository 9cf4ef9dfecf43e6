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
  if (log.sink) {
    try {
      return log.sink(level, text);
    } catch (...) {  // what is remarked on goes on: the sentence is not lost
    }
  }
  std::fprintf(stderr, "kiln: %s: %.*s\n", level == LogLevel::kNote ? "note" : "warning", static_cast<int>(text.size()),
               text.data());
}

}  // namespace kiln
