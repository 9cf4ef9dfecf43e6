// The rows of magic_option.def: options, operands and examples of the % commands.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::repl {

/// What a value may be. It decides what Tab offers; the command itself judges the value.
enum class Legal {
  kAny,
  kWords,         // of a list in the row
  kCount,         // a whole number
  kSeconds,       // "10" or "10s"
  kFile,          // a path
  kFolder,        // of a folder
  kDType,         // bf16, float32, …
  kTensor,        // a variable that is one
  kKernel,        // a kernel's name; NAME=VALUE behind it overrides what it is shown for
  kKernelName,    // a kernel's name alone
  kPass,          // of the compiler
  kTarget,        // a row of target/arch.def
  kBundle,        // of hardware counters
  kMetric,        // of hardware counters
  kVariant,       // a way to compute an expression
  kMagic,         // a command
  kSetting,       // of %set
  kSettingValue,  // … and what the setting before it may be
};

struct MagicOption {
  enum class Form { kFlag, kDashed, kValue } form;  // -v; --json FILE; budget=10
  std::string_view name = {};                       // with its dashes
  Legal legal = Legal::kAny;
  std::string_view words = {};      // "cold|hot"
  std::string_view otherwise = {};  // the default, as a user would write it; empty: none
  std::string_view help = {};

  /// As it stands in a synopsis: "-v", "--json FILE", "cache=cold|hot".
  std::string shown() const;
  /// Whether each further one adds to those before it.
  bool may_repeat() const { return legal == Legal::kBundle; }
};

struct MagicOperand {
  size_t index = 0;
  Legal legal = Legal::kAny;
  std::string_view words = {};
};

struct MagicExample {
  std::string_view line, prints;
};

/// Those of one command, in the order of the table. The views live as long as the program.
std::span<const MagicOption> magic_options(std::string_view magic);
std::span<const MagicOperand> magic_operands(std::string_view magic);
std::span<const MagicExample> magic_examples(std::string_view magic);
/// Whether `;` is part of what the command takes, as of %time and %sh, and does not end it.
bool takes_statements(std::string_view magic);
/// What can stand behind a kernel's name in place of what its last launch had; none for commands that take nothing so.
std::vector<MagicOption> kernel_overrides(std::string_view magic);

/// "a|b" → its words.
std::vector<std::string_view> words_of_list(std::string_view words);

}  // namespace kiln::repl
