// The candidates below the block while Tab goes through them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "repl/editor/render.h"

namespace kiln::editor {

/// What could replace the end of a text: the candidates, and how many bytes before the cursor they replace.
struct Completion {
  std::vector<std::string> candidates;
  size_t replaced = 0;
  size_t leading = 0;                             // of the candidates: stay ahead of others that are used more often
  std::map<std::string, std::string> notes = {};  // lines about candidates; others are asked for as they are chosen
};

/// What all candidates begin with.
std::string common_prefix(const std::vector<std::string>& candidates);

class CompletionMenu {
 public:
  explicit CompletionMenu(Completion completion);

  const std::string* selected() const { return selected_ < 0 ? nullptr : &completion_.candidates[at_]; }
  size_t replaced() const { return completion_.replaced; }
  /// The line that came with the selected candidate; nullptr: none.
  const std::string* note() const;
  /// To the next candidate, or the one before; around at the ends.
  void step(int by);
  /// A row up or down.
  void step_row(int by) { step(by * per_row_); }

  /// At most `most` rows: candidates in columns, and as the last one the preview.
  std::vector<Row> rows(int columns, int most, const std::string& preview);

 private:
  Completion completion_;
  size_t hidden_ = 0;  // bytes that all begin with and that are not shown: "torch.nn."
  int width_ = 1;      // of the widest
  int per_row_ = 1;
  int selected_ = -1;
  size_t at_ = 0;
  int first_row_ = 0;
};

}  // namespace kiln::editor
