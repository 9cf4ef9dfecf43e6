// Which source line each instruction of a kernel belongs to. Plain data, made from PTX, from a disassembly, by CUPTI
// from a cubin (profiler/cupti/sass_lines.h), or by hand in tests.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::profiler {

/// Bytes of a machine instruction, of every GPU since Volta.
inline constexpr uint64_t kInstructionBytes = 16;

struct Instruction {
  uint64_t pc = 0;    // bytes from the function's start; of PTX: the how-manieth instruction
  int file = -1;      // into LineTable::files; -1: of no line
  int line = 0;       // counted from 1
  std::string text;   // without its ';'; empty when only the line is known
  std::string label;  // the label before it, without its ':'
};

struct LineTable {
  std::string function;
  std::vector<std::string> files;
  std::vector<Instruction> code;  // by pc

  const Instruction* find(uint64_t pc) const;
  /// The file's number; a new one when it is not among `files` yet. "./a.py" is "a.py".
  int file(std::string_view name);
  bool has_lines() const;
};

/// "@!P0 LDG.E.128 R4, …" → "LDG.E.128".
std::string_view opcode(std::string_view instruction);

/// Of the first entry of a PTX text, by its .loc and .file directives.
LineTable ptx_lines(std::string_view ptx);

/// What `nvdisasm -c -g` printed, for one function, without the NOPs that fill it up; nullopt when the function is not
/// in it.
std::optional<LineTable> read_disassembly(std::string_view text, std::string_view function);

/// Bytes of a function's machine code in a cubin, without the NOPs that fill it up; nullopt when it is no cubin or has
/// no such function.
std::optional<uint64_t> code_bytes(std::string_view cubin, std::string_view function);

struct LineCount {
  int file = -1, line = 0;
  int64_t instructions = 0;
  std::vector<std::pair<std::string, int64_t>> opcodes;  // the most frequent first; none when texts are not known
};
/// By file and line; instructions of no line come first, under file -1.
std::vector<LineCount> count_by_line(const LineTable& table);

}  // namespace kiln::profiler
