// What the shards of a sweep or of a tuning have measured: a line of JSON for each measurement, in one file per shard.
// A file only grows, and each line is on the disk before the next measurement begins, so that a process that dies loses
// nothing but the measurement it was at.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/compare/sweep.h"
#include "profiler/shard/shard.h"
#include "support/fd.h"

namespace kiln::profiler {

enum class ShardedKind { kSweep, kTune };
std::string_view name(ShardedKind kind);

/// A list of measurements. Two processes work on the same one when all of it is equal.
struct ShardedList {
  ShardedKind kind = ShardedKind::kSweep;
  std::string program;             // the script's text
  std::string expression;          // or the launch
  std::string options;             // as far as results depend on them: "setup=… cache=hot"
  std::vector<std::string> items;  // what each measurement is of, by number

  /// 32 hexadecimal digits, from all of the above.
  std::string id() const;
};

/// One measurement. Plain data, as a line holds it.
struct ShardRecord {
  std::string list;  // its id
  ShardedKind kind = ShardedKind::kSweep;
  size_t number = 0, total = 0;
  std::string expression, options;
  std::vector<std::pair<std::string, std::string>> at;  // axes with values, or "configuration"
  std::string device, driver, version, time;            // time: "2026-11-26T22:06:59Z"
  std::string shard;                                    // "0/4"
  /// Of a sweep one per contender; of a tuning the configuration and, behind it, the launch as it stands as it was
  /// timed beside it. That launch itself has one cell.
  std::vector<SweepCell> cells;
};

std::string to_line(const ShardRecord& record);
/// nullopt: it is no such line, or a part of one.
std::optional<ShardRecord> parse_line(std::string_view line);

/// What the *.jsonl files of a folder hold.
struct ShardRecords {
  std::vector<ShardRecord> records;  // by the names of the files, then by their place
  size_t files = 0, torn = 0;        // lines that are no records, such as the last of a process that died
};
/// An absent folder holds nothing; kIo.
Result<ShardRecords> read_shards(const std::string& folder);

/// The file of one shard, open to be appended to.
class ShardFile {
 public:
  /// Makes the folder when it is missing. kIo; kValue where another process has the file open.
  static Result<ShardFile> open(const std::string& folder, const Shard& shard);

  /// On the disk when it returns.
  Status append(const ShardRecord& record);

 private:
  ShardFile(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  Fd fd_;
};

}  // namespace kiln::profiler
