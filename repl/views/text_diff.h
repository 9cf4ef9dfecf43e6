// Two texts side by side: what differs, with some lines around it.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::repl {

struct TextDiff {
  struct Row {
    int left = -1, right = -1;  // lines, counted from 0; -1: there is none on that side
    bool is_same = false;
  };
  std::vector<std::string_view> left, right;
  std::vector<Row> rows;
  int changed = 0;  // rows that are not the same
};

/// By Myers' algorithm over lines, of which `key` says what counts. Lines replaced by others stand beside them. Of
/// texts that have very little in common the changed middle is one block. The texts must outlive the result.
TextDiff text_diff(std::string_view left, std::string_view right,
                   const std::function<std::string(std::string_view)>& key);

/// A line of code without the numbers of its registers and values: "%r12" and "%r7" are the same.
std::string without_numbers(std::string_view line);

struct SideBySide {
  std::string left_name, right_name;
  int width = 100;  // columns of the whole
  int around = 3;   // lines of the same shown before and behind what differs
  bool color = false;
};
/// "left | right" where they differ, "<" and ">" for lines that one side alone has, "… 12 same lines" between.
std::string side_by_side(const TextDiff& diff, const SideBySide& options);

}  // namespace kiln::repl
