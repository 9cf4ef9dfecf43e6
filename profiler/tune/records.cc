#include "profiler/tune/records.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/diag.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/knobs.h"
#include "support/log.h"

namespace kiln::profiler {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFormat = "kiln tuning record 1";
constexpr std::string_view kEnding = ".json";
// A record is about a kilobyte; the oldest go when there are more.
constexpr size_t kMostRecords = 20000;
constexpr unsigned kStoresPerSweep = 64;

std::string file_name(const std::string& key, const std::string& identity) {
  return hash128(key).hex().substr(0, 16) + "-" + hash128(identity).hex().substr(0, 16) + std::string(kEnding);
}

/// A text that is no UTF-8 is written with replacements, and then not found again.
std::string dump(const ordered_json& j) { return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace); }

std::string pack(const std::string& key, const std::string& identity, const TuneRow& row) {
  ordered_json body = {{"key", key},
                       {"identity", identity},
                       {"config", row.config},
                       {"state", name(row.state)},
                       {"reason", row.reason},
                       {"registers", row.registers},
                       {"spill_bytes", row.spill_bytes},
                       {"shared_bytes", row.shared_bytes},
                       {"occupancy", row.occupancy},
                       {"compile_ms", row.compile_ms},
                       {"rung", row.rung},
                       {"median_us", row.median_us()},
                       {"samples_us", row.us}};
  const std::string sum = hash128(dump(body)).hex();
  return dump({{"format", kFormat}, {"checksum", sum}, {"record", std::move(body)}}) + "\n";
}

struct Unpacked {
  std::string key, identity;
  TuneRow row;
};

/// Nullopt for what pack() did not write.
std::optional<Unpacked> unpack(const std::string& text) try {
  const ordered_json file = ordered_json::parse(text);
  if (file.at("format").get<std::string>() != kFormat) return std::nullopt;
  const ordered_json& body = file.at("record");
  if (hash128(dump(body)).hex() != file.at("checksum").get<std::string>()) return std::nullopt;
  Unpacked u;
  u.key = body.at("key");
  u.identity = body.at("identity");
  u.row.config = body.at("config");
  const auto state = parse_tune_state(body.at("state").get<std::string>());
  if (!state) return std::nullopt;
  u.row.state = *state;
  u.row.reason = body.at("reason");
  u.row.registers = body.at("registers");
  u.row.spill_bytes = body.at("spill_bytes");
  u.row.shared_bytes = body.at("shared_bytes");
  u.row.occupancy = body.at("occupancy");
  u.row.compile_ms = body.at("compile_ms");
  u.row.rung = body.at("rung");
  u.row.us = body.at("samples_us").get<std::vector<double>>();
  u.row.from_record = true;
  return u;
} catch (const ordered_json::exception&) {
  return std::nullopt;
}

/// The first line of a key.
std::string kernel_line(std::string_view kernel) { return fmt::format("kernel {}\n", kernel); }

}  // namespace

TuneRecords::TuneRecords() : TuneRecords([](const std::string& text) { write_log(LogLevel::kNote, text); }) {}

bool TuneRecords::enabled() { return knob_on(Knob::kTuneRecords) && knob_on(Knob::kCache); }

Result<std::string> TuneRecords::folder() {
  KILN_TRY(std::string root, cache_directory());
  return root + "/tuning";
}

void TuneRecords::note_once(const std::string& sentence) {
  if (noted_) return;
  noted_ = true;
  note_(sentence + "; tuning results are not kept (KILN_TUNE_RECORDS=0 turns records off)");
}

std::optional<TrustedFolder> TuneRecords::opened(bool create) {
  auto path = folder();
  if (!path.ok()) return note_once(path.error().message), std::nullopt;
  // A folder that is not there yet holds no record: no reason to make it, or to say anything.
  if (!create && ::access(path->c_str(), F_OK) != 0) return std::nullopt;
  auto kept = TrustedFolder::open(*path, create);
  if (!kept.ok()) return note_once(kept.error().message), std::nullopt;
  return *std::move(kept);
}

std::optional<TuneRow> TuneRecords::find(const std::string& key, const std::string& identity) {
  if (!enabled()) return std::nullopt;
  auto kept = opened(/*create=*/false);
  if (!kept) return std::nullopt;
  const std::string name = file_name(key, identity);
  auto text = kept->read(name);
  if (!text.ok()) return note_once(text.error().message), std::nullopt;
  if (!*text) return std::nullopt;
  auto record = unpack(**text);
  if (!record) {
    note_(fmt::format("the tuning record '{}' is damaged and will be measured again", *folder() + "/" + name));
    return std::nullopt;
  }
  if (record->key != key || record->identity != identity) return std::nullopt;  // another with the same hash
  return std::move(record->row);
}

void TuneRecords::store(const std::string& key, const std::string& identity, const TuneRow& row) {
  if (!enabled()) return;
  auto kept = opened(/*create=*/true);
  if (!kept) return;
  Status written = kept->write(file_name(key, identity), pack(key, identity, row));
  if (!written.ok()) return note_once(written.error().message);
  if (stores_++ % kStoresPerSweep == 0) remove_old(*kept);
}

void TuneRecords::remove_old(const TrustedFolder& kept) {
  auto files = kept.list();
  if (!files.ok() || files->size() <= kMostRecords) return;
  std::sort(files->begin(), files->end(),
            [](const FileEntry& a, const FileEntry& b) { return a.modified_ns < b.modified_ns; });
  files->resize(files->size() - kMostRecords / 4 * 3);
  for (const FileEntry& f : *files)
    if (!kept.remove(f.path).ok()) return;  // the next sweep tries again
}

Result<int> TuneRecords::forget(std::string_view kernel) {
  KILN_TRY(std::string path, folder());
  if (::access(path.c_str(), F_OK) != 0) return 0;
  KILN_TRY(TrustedFolder kept, TrustedFolder::open(path, /*create=*/false));
  KILN_TRY(std::vector<FileEntry> files, kept.list());
  int count = 0;
  for (const FileEntry& f : files) {
    if (!f.path.ends_with(kEnding)) continue;
    if (!kernel.empty()) {
      auto text = kept.read(f.path);
      auto record = text.ok() && *text ? unpack(**text) : std::nullopt;
      if (!record || !record->key.starts_with(kernel_line(kernel))) continue;
    }
    KILN_CHECK_OK(kept.remove(f.path));
    ++count;
  }
  return count;
}

Result<std::vector<std::string>> TuneRecords::export_texts() {
  if (!enabled()) return error(ErrorKind::kIo, "tuning records are off (KILN_TUNE_RECORDS=0 or KILN_CACHE=0)");
  KILN_TRY(const std::string path, folder());
  std::vector<std::string> texts;
  if (::access(path.c_str(), F_OK) != 0) return texts;
  KILN_TRY(const TrustedFolder kept, TrustedFolder::open(path, /*create=*/false));
  KILN_TRY(std::vector<FileEntry> files, kept.list());
  std::ranges::sort(files, std::greater(), &FileEntry::modified_ns);
  for (const FileEntry& f : files) {
    if (!f.path.ends_with(kEnding)) continue;
    auto text = kept.read(f.path);
    if (text.ok() && *text && unpack(**text)) texts.push_back(**std::move(text));
  }
  return texts;
}

Status TuneRecords::import_text(const std::string& text) {
  if (!enabled()) return error(ErrorKind::kIo, "tuning records are off (KILN_TUNE_RECORDS=0 or KILN_CACHE=0)");
  const auto record = unpack(text);
  if (!record) return error(ErrorKind::kValue, "a tuning record in it is damaged, or of another version of Kiln");
  KILN_TRY(const std::string path, folder());
  KILN_TRY(const TrustedFolder kept, TrustedFolder::open(path, /*create=*/true));
  KILN_CHECK_OK(kept.write(file_name(record->key, record->identity), text));
  if (stores_++ % kStoresPerSweep == 0) remove_old(kept);
  return {};
}

}  // namespace kiln::profiler
