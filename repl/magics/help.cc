// %help NAME: a command from its rows in the tables.
#include <fmt/format.h>

#include <algorithm>

#include "repl/magics/magic_options.h"
#include "repl/magics/magics.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

using report::Align;
using report::Table;

std::string in_columns(std::span<const MagicOption> options) {
  int width = 0;
  for (const MagicOption& o : options) width = std::max(width, text_width(o.shown()));
  std::string out;
  for (const MagicOption& o : options) {
    const std::string shown = o.shown();
    // The longest come with many words: their text starts on a line of its own.
    constexpr int kMostWidth = 28;
    const int column = std::min(width, kMostWidth), fill = column - text_width(shown);
    out += "  " + shown;
    out += fill >= 0 ? std::string(static_cast<size_t>(fill) + 2, ' ')
                     : "\n" + std::string(static_cast<size_t>(column) + 4, ' ');
    out += o.help;
    if (!o.otherwise.empty()) out += fmt::format(" (default: {})", o.otherwise);
    out += '\n';
  }
  return out;
}

}  // namespace

std::string describe_magic(const Magic& magic) {
  std::string out =
      fmt::format("%{}{}{}\n  {}\n", magic.name, magic.synopsis.empty() ? "" : " ", magic.synopsis, magic.help);
  if (const auto options = magic_options(magic.name); !options.empty()) out += "options:\n" + in_columns(options);
  if (const auto overrides = kernel_overrides(magic.name); !overrides.empty())
    out += "of a kernel, in place of what its last launch had:\n" + in_columns(overrides);
  const auto examples = magic_examples(magic.name);
  if (!examples.empty()) out += examples.size() > 1 ? "examples:\n" : "example:\n";
  for (const MagicExample& e : examples) out += fmt::format("  {}\n      {}\n", e.line, e.prints);
  return out;
}

Table magic_table(const Magic& magic) {
  Table table({{"command", "", Align::kLeft}, {"default", "", Align::kLeft}, {"what it does", "", Align::kLeft}});
  table.add_row({fmt::format("%{}{}{}", magic.name, magic.synopsis.empty() ? "" : " ", magic.synopsis), "",
                 std::string(magic.help)});
  for (const MagicOption& o : magic_options(magic.name))
    table.add_row({o.shown(), std::string(o.otherwise), std::string(o.help)});
  for (const MagicOption& o : kernel_overrides(magic.name))
    table.add_row({o.shown(), "as launched last", std::string(o.help)});
  for (const MagicExample& e : magic_examples(magic.name))
    table.add_row({std::string(e.line), "", std::string(e.prints)});
  return table;
}

}  // namespace kiln::repl
