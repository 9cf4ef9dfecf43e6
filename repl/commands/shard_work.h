// What `kiln sweep` and `kiln tune` share: a script, a device, one shard of a list, and the file it is kept in.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/measure/device_lock.h"
#include "profiler/shard/merge.h"
#include "profiler/shard/records.h"
#include "repl/magics/magic_arguments.h"
#include "repl/shell/interrupts.h"
#include "repl/shell/options.h"
#include "repl/shell/shell.h"

namespace kiln::repl {

class ShardWork {
 public:
  explicit ShardWork(const Options& options) : options_(options), shell_(options, nullptr) {}

  /// Reads the command line and runs the script. An exit code when it ends here, with its cause printed.
  std::optional<int> open();

  Shell& shell() { return shell_; }
  const MagicArguments& arguments() const { return arguments_; }
  /// With the expressions of the command line, and those of its options that results depend on.
  profiler::ShardedList list(profiler::ShardedKind kind, std::vector<std::string> items) const;

  /// Opens the folder; the numbers of this shard that no record there has on this device.
  Result<std::vector<size_t>> begin(profiler::ShardedList list);
  /// Waits for the device, with a line that says so. kInterrupted by Ctrl-C.
  Result<profiler::DeviceLock> lock();
  /// Keeps one measurement, on the disk when there is a folder.
  Status keep(size_t number, std::vector<std::pair<std::string, std::string>> at,
              std::vector<profiler::SweepCell> cells);

  /// By Ctrl-C, since the script has run.
  bool is_interrupted() const { return guard_ && guard_->has_come(); }
  /// Prints what this shard has; the exit code.
  int finish(bool interrupted);
  /// Prints the error.
  int failed(const Diagnostic& d, int code) const;

 private:
  const Options& options_;
  Shell shell_;
  std::optional<InterruptGuard> guard_;
  MagicArguments arguments_;
  profiler::Shard shard_;
  std::string program_;
  Device device_;
  profiler::ShardedList list_;
  std::string list_id_;
  size_t owned_ = 0;
  std::optional<profiler::ShardFile> file_;
  std::vector<profiler::ShardRecord> records_;  // of this shard
  size_t known_ = 0;                            // of them were in the folder
};

/// A table for the terminal, or as JSON; of a sweep its plot too.
void print_list(const profiler::MergedList& list, const report::Table& table, bool json);

}  // namespace kiln::repl
