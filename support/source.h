// Source texts and ranges in them. A range is two offsets and a pointer: cheap enough to put on every token and op.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"

namespace kiln {

/// An immutable text with a name. Held by shared_ptr by whatever keeps ranges into it (ast::Module, ir::Module).
class SourceText {
 public:
  static std::shared_ptr<const SourceText> make(std::string file_name, std::string text);

  const std::string& file_name() const { return file_name_; }
  std::string_view text() const { return text_; }
  /// Line of an offset, counted from 1.
  int line_of(uint32_t offset) const;
  /// Column of an offset in bytes, counted from 1.
  int column_of(uint32_t offset) const;
  /// A line (counted from 1) without its end-of-line characters.
  std::string_view line(int number) const;
  int num_lines() const { return static_cast<int>(starts_.size()); }

 private:
  SourceText(std::string file_name, std::string text);
  std::string file_name_, text_;
  std::vector<uint32_t> starts_;
};

/// Half-open range [begin, end) of a text; text == nullptr means "no place".
struct SourceRange {
  const SourceText* text = nullptr;
  uint32_t begin = 0;
  uint32_t end = 0;

  std::string_view str() const { return text ? text->text().substr(begin, end - begin) : std::string_view{}; }
};

/// The smallest range that covers both (of the same text).
SourceRange cover(SourceRange a, SourceRange b);

/// Resolves a range; a range over several lines is cut at the end of its first.
Place place_of(SourceRange range);

}  // namespace kiln
