#include "profiler/shard/records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/diag.h"
#include "support/files.h"
#include "support/hash.h"

namespace kiln::profiler {

namespace {

using nlohmann::ordered_json;

// To be raised when a reader of the old format would misread the new one.
constexpr int kVersion = 1;

ordered_json known(double value) { return value >= 0 ? ordered_json(value) : ordered_json(); }
double known_in(const ordered_json& j, const char* key, double otherwise) {
  return j.contains(key) && j.at(key).is_number() ? j.at(key).get<double>() : otherwise;
}

ordered_json to_json(const SweepCell& c) {
  ordered_json j = {{"variant", c.variant}, {"baseline", c.is_baseline}};
  if (c.us > 0) {
    j["median_us"] = c.us;
    j["q1_us"] = known(c.q1_us), j["q3_us"] = known(c.q3_us);
    j["spread"] = c.spread;
    j["bytes"] = known(c.bytes), j["flop"] = known(c.flop);
  }
  if (!c.problem.empty()) j["problem"] = c.problem;
  if (c.decision.pairs > 0)
    j["decision"] = {{"verdict", name(c.decision.verdict)},
                     {"pairs", c.decision.pairs},
                     {"effect", c.decision.effect},
                     {"effect_95", {c.decision.interval_95.low, c.decision.interval_95.high}}};
  return j;
}

SweepCell cell_of(const ordered_json& j) {
  SweepCell c;
  c.variant = j.at("variant");
  c.is_baseline = j.at("baseline");
  c.us = known_in(j, "median_us", 0);
  c.q1_us = known_in(j, "q1_us", NAN), c.q3_us = known_in(j, "q3_us", NAN);
  c.spread = known_in(j, "spread", 0);
  c.bytes = known_in(j, "bytes", -1), c.flop = known_in(j, "flop", -1);
  c.problem = j.value("problem", "");
  if (j.contains("decision")) {
    const ordered_json& d = j.at("decision");
    for (Verdict v : {Verdict::kFaster, Verdict::kSlower, Verdict::kSame})
      if (d.at("verdict") == name(v)) c.decision.verdict = v;
    c.decision.pairs = d.at("pairs");
    c.decision.effect = d.at("effect");
    c.decision.interval_95 = {d.at("effect_95").at(0), d.at("effect_95").at(1)};
  }
  return c;
}

}  // namespace

std::string_view name(ShardedKind kind) { return kind == ShardedKind::kSweep ? "sweep" : "tune"; }

std::string ShardedList::id() const {
  // Lengths keep "a", "bc" apart from "ab", "c".
  std::string text;
  auto add = [&](std::string_view part) { text += fmt::format("{}:{}\n", part.size(), part); };
  for (std::string_view part :
       {name(kind), std::string_view(program), std::string_view(expression), std::string_view(options)})
    add(part);
  for (const std::string& item : items) add(item);
  return hash128(text).hex();
}

std::string to_line(const ShardRecord& r) {
  ordered_json at = ordered_json::object(), cells = ordered_json::array();
  for (const auto& [axis, value] : r.at) at[axis] = value;
  for (const SweepCell& c : r.cells) cells.push_back(to_json(c));
  const ordered_json j = {{"kiln_shard", kVersion}, {"kind", name(r.kind)}, {"list", r.list},
                          {"number", r.number},     {"of", r.total},        {"expression", r.expression},
                          {"options", r.options},   {"at", std::move(at)},  {"cells", std::move(cells)},
                          {"device", r.device},     {"driver", r.driver},   {"kiln", r.version},
                          {"time", r.time},         {"shard", r.shard}};
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::optional<ShardRecord> parse_line(std::string_view line) {
  try {
    const ordered_json j = ordered_json::parse(line);
    if (j.at("kiln_shard") != kVersion) return std::nullopt;
    ShardRecord r;
    const bool is_tune = j.at("kind") == name(ShardedKind::kTune);
    if (!is_tune && j.at("kind") != name(ShardedKind::kSweep)) return std::nullopt;
    r.kind = is_tune ? ShardedKind::kTune : ShardedKind::kSweep;
    r.list = j.at("list");
    r.number = j.at("number");
    r.total = j.at("of");
    if (r.number >= r.total) return std::nullopt;
    r.expression = j.at("expression");
    r.options = j.at("options");
    for (const auto& [axis, value] : j.at("at").items()) r.at.emplace_back(axis, value.get<std::string>());
    for (const ordered_json& cell : j.at("cells")) r.cells.push_back(cell_of(cell));
    r.device = j.at("device"), r.driver = j.at("driver"), r.version = j.at("kiln"), r.time = j.at("time");
    r.shard = j.at("shard");
    if (r.cells.empty()) return std::nullopt;
    return r;
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
}

Result<ShardRecords> read_shards(const std::string& folder) {
  KILN_TRY(std::vector<FileEntry> files, list_files(folder));
  std::ranges::sort(files, {}, &FileEntry::path);
  ShardRecords out;
  for (const FileEntry& file : files) {
    if (!file.path.ends_with(".jsonl")) continue;
    ++out.files;
    KILN_TRY(const std::string text, read_file(file.path));
    for (std::string_view rest = text; !rest.empty();) {
      const size_t end = rest.find('\n');
      // Without its end even a line that can be read may be one that is still being written.
      auto record = end == std::string_view::npos ? std::nullopt : parse_line(rest.substr(0, end));
      if (record)
        out.records.push_back(*std::move(record));
      else if (end != 0)
        ++out.torn;
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
  return out;
}

Result<ShardFile> ShardFile::open(const std::string& folder, const Shard& shard) {
  KILN_CHECK_OK(make_directories(folder));
  const std::string path = folder + "/" + shard.file_name();
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const int fd = file.get();
  if (fd < 0) return io_error("open", path, errno);
  // Some shared file systems know no locks; then nobody looks after two processes with the same shard.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return with_note(error(ErrorKind::kValue, "another process is measuring shard {} into {}", shard.text(), folder),
                     "help: each process takes its own --shard I/N");
  // The line of a process that died while it wrote ends here; it stays, and is no record.
  char last = '\n';
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (size < 0 || (size > 0 && ::pread(fd, &last, 1, size - 1) != 1)) return io_error("read", path, errno);
  if (last != '\n' && ::write(fd, "\n", 1) != 1) return io_error("write", path, errno);
  // The file's name must outlive a crash as its lines do.
  if (const Fd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); dir.get() >= 0) ::fsync(dir.get());
  return ShardFile(path, std::move(file));
}

Status ShardFile::append(const ShardRecord& record) {
  const std::string line = to_line(record);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = ::write(fd_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("write", path_, errno);
    rest.remove_prefix(static_cast<size_t>(n));
  }
  // A pipe or /dev/null cannot be synced, and need not be.
  if (::fsync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) return io_error("write", path_, errno);
  return {};
}

}  // namespace kiln::profiler
