// The tables and listings of %lines and %sass.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/lines/line_profile.h"
#include "profiler/report/table.h"
#include "support/source.h"

namespace kiln::repl {

/// The texts that a kernel's lines are lines of. Files are known by their names.
class SourceLines {
 public:
  explicit SourceLines(std::vector<std::shared_ptr<const SourceText>> texts) : texts_(std::move(texts)) {}
  /// The line without its end; empty when the file is not among the texts.
  std::string_view line(std::string_view file, int number) const;
  /// How a place is written: the number alone for the kernel's own file.
  std::string place(std::string_view file, int number) const;

 private:
  const SourceText* text(std::string_view file) const;

  std::vector<std::shared_ptr<const SourceText>> texts_;  // the kernel's own first
};

/// Where a kernel's code comes from, and how many of its instructions each line has.
struct StaticLines {
  profiler::LineTable ptx;
  profiler::LineTable machine;  // no code: there is none, or nothing that reads it
};

/// Lines of a kernel with their instructions, in the order of the source.
report::Table static_lines_table(const StaticLines& code, const SourceLines& sources);

/// The hottest lines first, `top` at most: samples, share, the part of them in whose cycle nothing was issued, and what
/// the warps did.
report::Table hot_lines_table(const profiler::LineProfile& profile, const SourceLines& sources, size_t top);

/// Every line from the first to the last that has samples or code, with its share, in the order of the source.
report::Table annotated_source_table(const profiler::LineProfile& profile, const SourceLines& sources);

/// The instructions with the most samples, in the order of the code, `top` at most.
report::Table hot_instructions_table(const profiler::SampledFunction& samples, const profiler::LineTable& machine,
                                     const SourceLines& sources, size_t top);

/// Machine code with the source line beside each instruction.
std::string sass_listing(const profiler::LineTable& machine, const SourceLines& sources);

}  // namespace kiln::repl
