// What tuning found, on disk: one file per configuration, so that two processes at once, or a list of configurations
// that has grown, never spoil what is there.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/tune/tune.h"
#include "support/trusted_folder.h"

namespace kiln::profiler {

class TuneRecords {
 public:
  /// `note` gets a sentence when records cannot be kept (at most once), and one for each damaged record that is met.
  explicit TuneRecords(std::function<void(const std::string&)> note) : note_(std::move(note)) {}
  /// Notes go to stderr.
  TuneRecords();

  /// False under KILN_TUNE_RECORDS=0 or KILN_CACHE=0.
  static bool enabled();
  /// "…/tuning" in the cache folder.
  static Result<std::string> folder();

  /// The row of one configuration, which `identity` tells from the others of that key; nullopt when there is no sound
  /// record of it.
  std::optional<TuneRow> find(const std::string& key, const std::string& identity);
  void store(const std::string& key, const std::string& identity, const TuneRow& row);
  /// Removes the records of a kernel, or all for ""; how many there were.
  Result<int> forget(std::string_view kernel);

  /// The sound records as texts, newest first, for import_text() elsewhere. kIo, also where records are off.
  static Result<std::vector<std::string>> export_texts();
  /// Keeps such a record, under the name that follows from what is in it. kValue: it is none, or damaged.
  Status import_text(const std::string& text);

 private:
  void note_once(const std::string& sentence);
  /// nullopt: there is none yet (and it is not to be created), or it cannot be had, which was noted.
  std::optional<TrustedFolder> opened(bool create);
  void remove_old(const TrustedFolder& kept);

  std::function<void(const std::string&)> note_;
  bool noted_ = false;
  unsigned stores_ = 0;
};

}  // namespace kiln::profiler
