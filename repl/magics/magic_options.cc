#include "repl/magics/magic_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "support/launch_options.h"

namespace kiln::repl {

namespace {

/// The rows of each command.
template <class Row>
using ByMagic = std::map<std::string_view, std::vector<Row>>;

template <class Row>
std::span<const Row> rows_of(const ByMagic<Row>& all, std::string_view magic) {
  const auto it = all.find(magic);
  return it == all.end() ? std::span<const Row>() : std::span<const Row>(it->second);
}

std::string_view placeholder(Legal legal) {
  switch (legal) {
    case Legal::kFile:
      return "FILE";
    case Legal::kFolder:
      return "FOLDER";
    case Legal::kSeconds:
      return "SECONDS";
    case Legal::kCount:
      return "N";
    case Legal::kDType:
      return "DTYPE";
    case Legal::kTensor:
      return "TENSOR";
    case Legal::kKernel:
    case Legal::kKernelName:
      return "KERNEL";
    case Legal::kPass:
      return "PASS";
    case Legal::kTarget:
      return "TARGET";
    case Legal::kBundle:
      return "BUNDLE";
    case Legal::kMetric:
      return "METRIC";
    case Legal::kVariant:
      return "VARIANT";
    case Legal::kMagic:
      return "COMMAND";
    case Legal::kSetting:
      return "NAME";
    case Legal::kSettingValue:
    case Legal::kAny:
    case Legal::kWords:
      break;
  }
  return "VALUE";
}

}  // namespace

std::string MagicOption::shown() const {
  const std::string_view value = words.empty() ? placeholder(legal) : words;
  switch (form) {
    case Form::kFlag:
      break;
    case Form::kDashed:
      return fmt::format("{} {}", name, value);
    case Form::kValue:
      return fmt::format("{}={}", name, value);
  }
  return std::string(name);
}

std::span<const MagicOption> magic_options(std::string_view magic) {
  // Made at the first use and never destroyed: completion may ask while the process ends.
  static const auto* all = [] {
    auto* made = new ByMagic<MagicOption>;
#define KILN_MAGIC_OPTION(MAGIC, FORM, NAME, LEGAL, WORDS, DEFAULT, HELP) \
  (*made)[#MAGIC].push_back({MagicOption::Form::FORM, NAME, Legal::LEGAL, WORDS, DEFAULT, HELP});
#include "repl/magics/magic_option.def"
    return made;
  }();
  return rows_of(*all, magic);
}

std::span<const MagicOperand> magic_operands(std::string_view magic) {
  static const auto* all = [] {
    auto* made = new ByMagic<MagicOperand>;
#define KILN_MAGIC_OPERAND(MAGIC, INDEX, LEGAL, WORDS) (*made)[#MAGIC].push_back({INDEX, Legal::LEGAL, WORDS});
#include "repl/magics/magic_option.def"
    return made;
  }();
  return rows_of(*all, magic);
}

std::span<const MagicExample> magic_examples(std::string_view magic) {
  static const auto* all = [] {
    auto* made = new ByMagic<MagicExample>;
#define KILN_MAGIC_EXAMPLE(MAGIC, LINE, PRINTS) (*made)[#MAGIC].push_back({LINE, PRINTS});
#include "repl/magics/magic_option.def"
    return made;
  }();
  return rows_of(*all, magic);
}

bool takes_statements(std::string_view magic) {
  static constexpr std::string_view kMagics[] = {
#define KILN_MAGIC_STATEMENTS(MAGIC) #MAGIC,
#include "repl/magics/magic_option.def"
  };
  return std::ranges::find(kMagics, magic) != std::end(kMagics);
}

std::vector<MagicOption> kernel_overrides(std::string_view magic) {
  static constexpr std::string_view kMagics[] = {
#define KILN_MAGIC_OVERRIDES(MAGIC) #MAGIC,
#include "repl/magics/magic_option.def"
  };
  if (std::ranges::find(kMagics, magic) == std::end(kMagics)) return {};
  using Form = MagicOption::Form;
  std::vector<MagicOption> out = {
      {.form = Form::kValue, .name = "NAME", .help = "a constexpr parameter of the kernel"}};
  // Only those that a tuner may choose: the others do not change the code that is shown.
  for (const LaunchOption& o : kLaunchOptions)
    if (o.is_tuned()) out.push_back({.form = Form::kValue, .name = o.name, .legal = Legal::kCount, .help = o.help});
  out.push_back({.form = Form::kValue,
                 .name = "signature",
                 .words = "TYPES",
                 .help = "the types of its arguments, as in signature=*fp32,i32"});
  return out;
}

std::vector<std::string_view> words_of_list(std::string_view words) {
  std::vector<std::string_view> out;
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find('|', begin), words.size());
    out.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace kiln::repl
