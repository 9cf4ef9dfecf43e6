// Earlier entries, as whole blocks, kept in a file that sessions share.
//
// The file is text. An entry is a line "#" with the time in seconds since 1970, then its lines, each behind one blank:
//   #1763840000
//    def f(x):
//        return x
// Each entry is appended as it is made, in one write under a lock, so that it outlives any end of the process and two
// sessions do not mix. Lines that are neither are passed over.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/result.h"

namespace kiln::editor {

/// The entries of a file's text, oldest first: of the form above, or of libedit's history (_HiStOrY_V2_).
std::vector<std::string> parse_history(std::string_view text);
/// An entry as it is appended.
std::string history_record(std::string_view entry, int64_t seconds);

class History {
 public:
  struct Options {
    std::string file;      // empty: kept in memory alone
    std::string old_file;  // of libedit, taken over when `file` is not there; empty: none
    size_t most = 10000;   // entries; a file with far more is cut
  };
  explicit History(Options options);

  /// Reads what other sessions have added; they come before this session's own entries.
  Status refresh();
  /// Remembers an entry, and appends it to the file. One that equals the last of this session is left out.
  Status add(std::string entry);

  size_t size() const { return earlier_.size() + own_.size(); }
  /// 0 is the oldest.
  const std::string& operator[](size_t i) const {
    return i < earlier_.size() ? earlier_[i] : own_[i - earlier_.size()];
  }

  /// The nearest entry before `from` that contains (or starts with) the text and is not `but`.
  std::optional<size_t> find_before(size_t from, std::string_view text, bool at_start, std::string_view but) const;
  /// The same after `from`.
  std::optional<size_t> find_after(size_t from, std::string_view text, bool at_start, std::string_view but) const;

  /// How often a name ("torch.zeros", "%bench", "num_warps=") stands in the entries; blanks around it do not count.
  int uses(std::string_view name) const;

 private:
  void count_words(const std::string& entry) const;
  Status import_old_file();
  Status cut_file();

  Options options_;
  std::vector<std::string> earlier_, own_;
  uint64_t read_to_ = 0;  // of the file
  uint64_t inode_ = 0;    // of the file that read_to_ is of
  bool first_ = true;
  mutable std::unordered_map<std::string, int> uses_;  // of words, in the first counted_… entries
  mutable size_t counted_earlier_ = 0, counted_own_ = 0;
};

}  // namespace kiln::editor
