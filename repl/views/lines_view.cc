#include "repl/views/lines_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace kiln::repl {

using profiler::Instruction;
using profiler::LineProfile;
using profiler::LineSamples;
using profiler::LineTable;
using report::Align;
using report::Cell;
using report::Table;

namespace {

constexpr size_t kMostOpcodes = 4;
constexpr int kBarWidth = 12;
constexpr int kMostGap = 3;  // lines without code between lines with code that are still shown

std::string_view without_dot(std::string_view file) {
  // Compilers write the path as it was given, with or without "./".
  while (file.starts_with("./")) file.remove_prefix(2);
  return file;
}

Cell percent(double part) { return Cell::of(100 * part, 1); }

std::string bar(double part) {
  const auto n = std::lround(part * kBarWidth);
  std::string text;
  for (int i = 0; i < n; ++i) text += "█";
  return text;
}

/// "4 LDG.E.128, 2 FADD, …"
std::string opcodes_text(const profiler::LineCount& count) {
  std::string text;
  for (size_t i = 0; i < count.opcodes.size(); ++i) {
    if (i == kMostOpcodes) return text + ", …";
    text += fmt::format("{}{} {}", i ? ", " : "", count.opcodes[i].second, count.opcodes[i].first);
  }
  return text;
}

using Place = std::pair<std::string, int>;  // file and line

std::map<Place, profiler::LineCount> by_place(const LineTable& table) {
  std::map<Place, profiler::LineCount> counts;
  for (profiler::LineCount& c : profiler::count_by_line(table))
    if (c.file >= 0) counts[{table.files[static_cast<size_t>(c.file)], c.line}] = std::move(c);
  return counts;
}

int64_t without_line(const LineTable& table) {
  return std::count_if(table.code.begin(), table.code.end(), [](const Instruction& i) { return i.file < 0; });
}

}  // namespace

const SourceText* SourceLines::text(std::string_view file) const {
  for (const auto& t : texts_)
    if (without_dot(t->file_name()) == without_dot(file)) return t.get();
  return nullptr;
}

std::string_view SourceLines::line(std::string_view file, int number) const {
  const SourceText* t = text(file);
  return t && number >= 1 && number <= t->num_lines() ? t->line(number) : std::string_view{};
}

std::string SourceLines::place(std::string_view file, int number) const {
  // Lines of the kernel's own file need no name.
  const bool own = !texts_.empty() && text(file) == texts_.front().get();
  if (own) return std::to_string(number);
  file = without_dot(file);
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), number);
}

Table static_lines_table(const StaticLines& code, const SourceLines& sources) {
  const bool machine = !code.machine.code.empty();
  std::vector<report::Column> columns = {{"line", ""}};
  if (machine) columns.push_back({"SASS", ""});
  columns.insert(columns.end(), {{"PTX", ""}, {"instructions", "", Align::kLeft}, {"source", "", Align::kLeft}});
  Table table(std::move(columns));
  std::map<Place, profiler::LineCount> of_machine = by_place(code.machine), of_ptx = by_place(code.ptx);
  std::set<Place> places;
  for (const auto& [place, unused] : of_machine) places.insert(place);
  for (const auto& [place, unused] : of_ptx) places.insert(place);
  for (const Place& place : places) {
    const profiler::LineCount &m = of_machine[place], &p = of_ptx[place];
    std::vector<Cell> cells = {sources.place(place.first, place.second)};
    if (machine) cells.push_back(Cell::of(m.instructions));
    cells.push_back(Cell::of(p.instructions));
    // The machine's opcodes are what runs; PTX stands in where nothing assembled it.
    cells.emplace_back(opcodes_text(m.opcodes.empty() ? p : m));
    cells.emplace_back(std::string(sources.line(place.first, place.second)));
    table.add_row(std::move(cells));
  }
  if (const int64_t none = without_line(code.machine))
    table.add_note(fmt::format(
        "{} of {} machine instructions belong to no line: shared by several lines, or added by the assembler", none,
        code.machine.code.size()));
  return table;
}

Table hot_lines_table(const LineProfile& profile, const SourceLines& sources, size_t top) {
  Table table({{"line", ""},
               {"samples", ""},
               {"share", "%"},
               {"nothing issued", "%"},
               {"stall reasons", "", Align::kLeft, "doing"},
               {"source", "", Align::kLeft}});
  const std::vector<const LineSamples*> order = profiler::hottest_first(profile);
  for (size_t i = 0; i < std::min(top, order.size()); ++i) {
    const LineSamples& l = *order[i];
    const int64_t n = l.counts.total();
    const std::string_view file = l.file < 0 ? std::string_view() : profile.files[static_cast<size_t>(l.file)];
    table.add_row({l.file < 0 ? Cell::unknown("the code has no line there") : Cell(sources.place(file, l.line)),
                   Cell::of(n), percent(profile.share(l)),
                   percent(static_cast<double>(l.counts.total_idle()) / static_cast<double>(n)),
                   profiler::describe(l.counts), std::string(sources.line(file, l.line))});
  }
  if (order.size() > top) table.add_note(fmt::format("top={} shows all {} lines", order.size(), order.size()));
  return table;
}

Table annotated_source_table(const LineProfile& profile, const SourceLines& sources) {
  Table table(
      {{"line", ""}, {"share", "%"}, {"", "", Align::kLeft, "bar"}, {"SASS", ""}, {"source", "", Align::kLeft}});
  const LineSamples* before = nullptr;
  for (const LineSamples& l : profile.lines) {
    if (l.file < 0) continue;
    const std::string& file = profile.files[static_cast<size_t>(l.file)];
    if (before && before->file == l.file) {
      // Short gaps are filled, so that a statement of several lines can be read.
      const bool gap = l.line - before->line > kMostGap + 1;
      for (int n = before->line + 1; !gap && n < l.line; ++n)
        table.add_row({sources.place(file, n), "", "", "", std::string(sources.line(file, n))});
      if (gap) table.add_row({"…", "", "", "", ""});
    }
    const bool hot = l.counts.total() > 0;
    table.add_row({sources.place(file, l.line), hot ? percent(profile.share(l)) : Cell(""), bar(profile.share(l)),
                   Cell::of(l.instructions), std::string(sources.line(file, l.line))});
    before = &l;
  }
  return table;
}

Table hot_instructions_table(const profiler::SampledFunction& samples, const LineTable& machine,
                             const SourceLines& sources, size_t top) {
  Table table({{"pc", ""},
               {"samples", ""},
               {"share", "%"},
               {"line", ""},
               {"instruction", "", Align::kLeft},
               {"stall reasons", "", Align::kLeft, "doing"}});
  std::vector<const profiler::SampledPc*> order;
  int64_t total = 0;
  for (const profiler::SampledPc& s : samples.pcs) order.push_back(&s), total += s.counts.total();
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->counts.total() > b->counts.total(); });
  order.resize(std::min(top, order.size()));
  // The hottest, then by address: neighbours are read together.
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->pc < b->pc; });
  for (const profiler::SampledPc* s : order) {
    const Instruction* i = machine.find(s->pc);
    const bool placed = i && i->file >= 0;
    table.add_row({fmt::format("{:04x}", s->pc), Cell::of(s->counts.total()),
                   percent(static_cast<double>(s->counts.total()) / static_cast<double>(std::max<int64_t>(total, 1))),
                   placed ? Cell(sources.place(machine.files[static_cast<size_t>(i->file)], i->line)) : Cell(""),
                   i ? Cell(i->text) : Cell(""), profiler::describe(s->counts)});
  }
  return table;
}

std::string sass_listing(const LineTable& machine, const SourceLines& sources) {
  size_t width = 0;
  for (const Instruction& i : machine.code) width = std::max(width, i.text.size());
  // A long instruction pushes its own line out, not those of all.
  width = std::min<size_t>(width, 64);
  std::string text;
  std::pair<int, int> last{-1, -1};
  for (const Instruction& i : machine.code) {
    if (!i.label.empty()) text += i.label + ":\n";
    std::string row = fmt::format("  {:04x}  {:<{}}", i.pc, i.text, width);
    if (i.file >= 0) {
      const std::string& file = machine.files[static_cast<size_t>(i.file)];
      row += fmt::format("  {:>4}", sources.place(file, i.line));
      // The text of a line once, as long as its instructions follow one another.
      if (std::pair(i.file, i.line) != last) row += fmt::format(" | {}", sources.line(file, i.line));
    }
    last = {i.file, i.line};
    while (row.ends_with(' ')) row.pop_back();
    text += row + "\n";
  }
  return text;
}

}  // namespace kiln::repl
