#include "profiler/lines/line_table.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <utility>
#include "support/ptx_name.h"

namespace kiln::profiler {

namespace {

constexpr std::string_view kBlank = " \t\r";
// The low bits of a machine instruction are its opcode.
constexpr uint16_t kOpcodeBits = 0xfff, kNop = 0x918;

std::string_view trim(std::string_view s) {
  const size_t first = s.find_first_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view{} : s.substr(first, s.find_last_not_of(kBlank) - first + 1);
}

/// Calls fn(line) for each line, without blanks around it, until it returns false.
template <class Fn>
void for_each_line(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (!fn(trim(text.substr(0, end)))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Reads a number at the front of `s`, with blanks before it, and takes it away.
template <class T>
bool take_number(std::string_view& s, T& out, int base = 10) {
  s.remove_prefix(std::min(s.find_first_not_of(kBlank), s.size()));
  const auto [end, failed] = std::from_chars(s.data(), s.data() + s.size(), out, base);
  if (failed != std::errc{}) return false;
  s.remove_prefix(static_cast<size_t>(end - s.data()));
  return true;
}

/// The text between the first two quotes.
std::string_view quoted(std::string_view s) {
  const size_t open = s.find('"');
  if (open == std::string_view::npos) return {};
  const size_t close = s.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view{} : s.substr(open + 1, close - open - 1);
}

}  // namespace

const Instruction* LineTable::find(uint64_t pc) const {
  auto it = std::lower_bound(code.begin(), code.end(), pc, [](const Instruction& i, uint64_t at) { return i.pc < at; });
  return it != code.end() && it->pc == pc ? &*it : nullptr;
}

int LineTable::file(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  auto it = std::find(files.begin(), files.end(), name);
  if (it == files.end()) it = files.insert(files.end(), std::string(name));
  return static_cast<int>(it - files.begin());
}

bool LineTable::has_lines() const {
  return std::any_of(code.begin(), code.end(), [](const Instruction& i) { return i.file >= 0; });
}

std::string_view opcode(std::string_view instruction) {
  if (instruction.starts_with('@')) {
    instruction.remove_prefix(std::min(instruction.find_first_of(kBlank), instruction.size()));
    instruction = trim(instruction);
  }
  return instruction.substr(0, instruction.find_first_of(" \t;"));
}

LineTable ptx_lines(std::string_view ptx) {
  LineTable table;
  std::map<int, int> numbers;  // of .file directives, which stand at the end
  int file = -1, line = 0;
  int depth = 0;  // of braces; inline assembly has its own
  bool done = false;
  for_each_line(ptx, [&](std::string_view text) {
    if (text.starts_with(".file")) {
      std::string_view rest = text.substr(5);
      int number = 0;
      if (take_number(rest, number)) numbers[number] = table.file(quoted(rest));
    } else if (const size_t entry = text.find(".entry "); entry != std::string_view::npos && table.function.empty()) {
      std::string_view name = trim(text.substr(entry + 7));
      table.function = source_name(name.substr(0, name.find_first_of("( \t")));
    } else if (table.function.empty() || done) {
      return true;
    } else if (text == "{") {
      ++depth;
    } else if (text == "}") {
      done = --depth == 0;
    } else if (text.starts_with(".loc")) {
      std::string_view rest = text.substr(4);
      if (!take_number(rest, file) || !take_number(rest, line)) file = -1, line = 0;
    } else if (const size_t end = text.rfind(';'); depth > 0 && end != std::string_view::npos && text[0] != '.') {
      Instruction i;
      i.pc = table.code.size();
      i.file = file, i.line = line;
      i.text = std::string(trim(text.substr(0, end)));
      table.code.push_back(std::move(i));
    }
    return true;
  });
  for (Instruction& i : table.code) {
    auto it = numbers.find(i.file);
    i.file = it == numbers.end() || i.line == 0 ? -1 : it->second;  // line 0: of several lines at once
    if (i.file < 0) i.line = 0;
  }
  return table;
}

std::optional<LineTable> read_disassembly(std::string_view text, std::string_view function) {
  LineTable table;
  table.function = std::string(function);
  const std::string section = ".text." + ptx_name(function) + ":";
  bool inside = false;
  int file = -1, line = 0;
  std::string label;
  for_each_line(text, [&](std::string_view row) {
    if (row.starts_with(".text.") && row.ends_with(':')) {
      inside = row == section;
    } else if (!inside || row.empty()) {
      return true;
    } else if (row.starts_with("//--")) {
      inside = false;  // the next section
    } else if (row.starts_with("//## File ")) {
      // //## File "a.py", line 7 [inlined at "b.py", line 3]
      const std::string_view name = quoted(row);
      std::string_view rest = row.substr(static_cast<size_t>(name.data() + name.size() - row.data()));
      const size_t at = rest.find("line ");
      if (at != std::string_view::npos) rest.remove_prefix(at + 5);
      file = take_number(rest, line) && line > 0 ? table.file(name) : -1;
    } else if (row.starts_with('.') && row.ends_with(':')) {
      label = std::string(row.substr(0, row.size() - 1));
    } else if (row.starts_with("/*")) {
      Instruction i;
      std::string_view rest = row.substr(2);
      if (!take_number(rest, i.pc, 16) || !rest.starts_with("*/")) return true;
      rest = trim(rest.substr(2));
      const size_t end = rest.find(';');
      if (end == std::string_view::npos) return true;  // the second half of an encoding
      i.text = std::string(trim(rest.substr(0, end)));
      i.file = file, i.line = file < 0 ? 0 : line;
      i.label = std::exchange(label, {});
      table.code.push_back(std::move(i));
    }
    return true;
  });
  while (!table.code.empty() && table.code.back().text == "NOP") table.code.pop_back();
  if (table.code.empty()) return std::nullopt;
  std::stable_sort(table.code.begin(), table.code.end(),
                   [](const Instruction& a, const Instruction& b) { return a.pc < b.pc; });
  return table;
}

std::optional<uint64_t> code_bytes(std::string_view cubin, std::string_view function) {
  auto read = [&]<class T>(T& out, size_t at) {
    if (at > cubin.size() || cubin.size() - at < sizeof(T)) return false;
    std::memcpy(&out, cubin.data() + at, sizeof(T));
    return true;
  };
  Elf64_Ehdr header;
  if (!read(header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  auto section = [&](size_t i, Elf64_Shdr& s) { return read(s, header.e_shoff + i * sizeof(Elf64_Shdr)); };
  Elf64_Shdr names;
  if (!section(header.e_shstrndx, names)) return std::nullopt;
  const std::string wanted = ".text." + ptx_name(function);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr s;
    if (!section(i, s)) return std::nullopt;
    const size_t at = names.sh_offset + s.sh_name;
    if (at >= cubin.size() || cubin.size() - at <= wanted.size()) continue;
    if (cubin.substr(at, wanted.size()) != wanted || cubin[at + wanted.size()] != '\0') continue;
    uint64_t bytes = s.sh_size;
    for (uint16_t word = 0; bytes >= kInstructionBytes; bytes -= kInstructionBytes)
      if (!read(word, s.sh_offset + bytes - kInstructionBytes) || (word & kOpcodeBits) != kNop) break;
    return bytes;
  }
  return std::nullopt;
}

std::vector<LineCount> count_by_line(const LineTable& table) {
  std::map<std::pair<int, int>, std::map<std::string_view, int64_t>> by_line;
  for (const Instruction& i : table.code) ++by_line[{i.file, i.line}][opcode(i.text)];
  std::vector<LineCount> counts;
  for (const auto& [at, opcodes] : by_line) {
    LineCount c;
    c.file = at.first, c.line = at.second;
    for (const auto& [name, n] : opcodes) {
      c.instructions += n;
      if (!name.empty()) c.opcodes.emplace_back(name, n);
    }
    std::stable_sort(c.opcodes.begin(), c.opcodes.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    counts.push_back(std::move(c));
  }
  return counts;
}

}  // namespace kiln::profiler
