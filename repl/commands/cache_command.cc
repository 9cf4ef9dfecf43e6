#include "repl/commands/cache_command.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "profiler/report/table.h"
#include "profiler/tune/records.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "repl/shell/options.h"
#include "runtime/jit/cache.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/text_width.h"
#include "support/trusted_folder.h"

namespace kiln::repl {

namespace {

// The line, a checksum of the rest, then each entry: 'k' or 't', its size as 8 bytes, its bytes.
constexpr std::string_view kMagicLine = "kiln cache 1\n";
constexpr size_t kChecksum = 32;
constexpr char kKernel = 'k', kRecord = 't';

struct Entry {
  char kind;
  std::string_view bytes;
};

/// The entries lie in `file`. kValue: it is no such file, or not all of one.
Result<std::vector<Entry>> entries_of(std::string_view file, const std::string& path) {
  const auto damaged = [&] {
    return error(ErrorKind::kValue, "{} is damaged: a part of it is missing or changed", path);
  };
  if (!file.starts_with(kMagicLine))
    return error(ErrorKind::kValue, "{} is no cache of this version of Kiln (kiln cache export makes them)", path);
  file.remove_prefix(kMagicLine.size());
  if (file.size() < kChecksum || hash128(file.substr(kChecksum)).hex() != file.substr(0, kChecksum)) return damaged();
  file.remove_prefix(kChecksum);
  std::vector<Entry> entries;
  while (!file.empty()) {
    uint64_t size = 0;
    if (file.size() < 1 + sizeof size) return damaged();
    std::memcpy(&size, file.data() + 1, sizeof size);
    const char kind = file[0];
    file.remove_prefix(1 + sizeof size);
    if (size > file.size() || (kind != kKernel && kind != kRecord)) return damaged();
    entries.push_back({kind, file.substr(0, size)});
    file.remove_prefix(size);
  }
  return entries;
}

struct Moved {
  size_t kernels = 0, records = 0, left_out = 0, bytes = 0;
};

Result<Moved> write_cache(const std::string& path) {
  KILN_TRY(const std::vector<std::string> kernels, runtime::DiskCache::export_files());
  std::vector<std::string> records;
  if (profiler::TuneRecords::enabled()) {
    KILN_TRY(records, profiler::TuneRecords::export_texts());
  }
  Moved moved;
  std::string content;
  // What is read back is bounded; records are small and come first.
  auto add = [&](char kind, const std::vector<std::string>& files, size_t& count) {
    for (const std::string& file : files) {
      const uint64_t size = file.size();
      if (kMagicLine.size() + kChecksum + content.size() + 1 + sizeof size + size > kLargestFile) {
        ++moved.left_out;
        continue;
      }
      content += kind;
      content.append(reinterpret_cast<const char*>(&size), sizeof size);
      content += file;
      ++count;
    }
  };
  add(kRecord, records, moved.records);
  add(kKernel, kernels, moved.kernels);
  const std::string all = std::string(kMagicLine) + hash128(content).hex() + content;
  moved.bytes = all.size();
  KILN_CHECK_OK(write_file_atomic(path, all));
  return moved;
}

Result<Moved> read_cache(const std::string& path) {
  // It is executed later: the rules of the cache's own files hold.
  KILN_TRY(const std::string file, read_trusted_file(path));
  KILN_TRY(const std::vector<Entry> entries, entries_of(file, path));
  runtime::DiskCache cache([](const std::string&) {});
  profiler::TuneRecords records;
  Moved moved;
  moved.bytes = file.size();
  for (const Entry& e : entries) {
    Status kept = e.kind == kKernel ? cache.import_file(e.bytes) : records.import_text(std::string(e.bytes));
    if (!kept.ok() && kept.error().kind == ErrorKind::kValue)
      return error(ErrorKind::kValue, "{} cannot be imported: {}", path, kept.error().message);
    if (!kept.ok()) return std::move(kept.error());
    ++(e.kind == kKernel ? moved.kernels : moved.records);
  }
  return moved;
}

int told(const Result<Moved>& moved, const std::string& verb, const std::string& path, bool json) {
  if (!moved.ok()) {
    print_error(moved.error(), json);
    return kExitError;
  }
  std::string text;
  if (json) {
    text = fmt::format("{{\"kernels\":{},\"records\":{},\"left_out\":{},\"bytes\":{}}}\n", moved->kernels,
                       moved->records, moved->left_out, moved->bytes);
  } else {
    text = fmt::format("{} {} kernel{} and {} tuning record{} ({}) {} {}\n", verb, moved->kernels,
                       moved->kernels == 1 ? "" : "s", moved->records, moved->records == 1 ? "" : "s",
                       report::human_bytes(static_cast<double>(moved->bytes)), verb == "wrote" ? "to" : "from",
                       printable(path));
    if (moved->left_out > 0)
      text += fmt::format("left out {} that were used longest ago: such a file has at most {}\n", moved->left_out,
                          report::human_bytes(static_cast<double>(kLargestFile)));
  }
  put(stdout, text);
  return kExitOk;
}

}  // namespace

int export_cache(const std::string& file, bool json) { return told(write_cache(file), "wrote", file, json); }
int import_cache(const std::string& file, bool json) { return told(read_cache(file), "took", file, json); }

}  // namespace kiln::repl
