#include "compiler/ir/inline_asm.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::ir {

namespace {

/// i1 takes a byte, as in memory.
int packed_bits(const Type& element) { return std::max(8, element.element_bits()); }

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (size_t i = 0, end; i <= text.size(); i = end + 1) {
    end = std::min(text.find(separator, i), text.size());
    std::string part(text.substr(i, end - i));
    std::erase(part, ' ');
    if (!part.empty()) out.push_back(std::move(part));
  }
  return out;
}

/// What is wrong with the registers of one side, or "".
std::string fit(std::string_view side, std::span<const char> letters, std::span<const Type> types, int pack) {
  size_t next = 0;
  for (const Type& t : types) {
    const int each = elements_per_register(t, pack);
    for (int i = 0; i < pack; i += each, ++next) {
      if (next >= letters.size()) continue;
      const int bits = asm_register_bits(letters[next]);
      if (each * packed_bits(t) > bits)
        return fmt::format("{} {} has the constraint {}, of {} bits, for {} bits of {}", side, next, letters[next],
                           bits, each * packed_bits(t), name(t.dtype));
    }
  }
  if (next == letters.size()) return "";
  return fmt::format("the constraints name {} {}{}, and {} {} needed", letters.size(), side,
                     letters.size() == 1 ? "" : "s", next, next == 1 ? "is" : "are");
}

}  // namespace

int elements_per_register(const Type& element, int pack) {
  const int bits = packed_bits(element);
  return bits < 32 ? std::min(32 / bits, pack) : 1;
}

int asm_register_bits(char letter) {
  switch (letter) {
    case 'h':
      return 16;
    case 'r':
    case 'f':
    case 'n':
    case 'i':
      return 32;
    case 'l':
    case 'd':
      return 64;
    default:
      return 0;
  }
}

bool is_asm_immediate(char letter) { return letter == 'n' || letter == 'i'; }

AsmConstraints match_asm(std::string_view constraints, std::span<const Type> outputs, std::span<const Type> inputs,
                         int pack, std::string* wrong) {
  AsmConstraints out;
  out.written = split_at(constraints, ',');
  for (const std::string& part : out.written) {
    if (part.starts_with("~")) continue;
    const bool is_output = part.front() == '=';
    size_t at = is_output ? 1 : 0;
    if (at < part.size() && part[at] == '&') ++at;
    char letter = at + 1 == part.size() ? part[at] : '?';
    const auto tied = static_cast<size_t>(letter - '0');
    if (!is_output && tied < out.outputs.size()) letter = out.outputs[tied];
    if (asm_register_bits(letter) == 0 || (is_output && is_asm_immediate(letter))) {
      *wrong = fmt::format("the constraint {} is none of h, r, f, l, d{}", part,
                           is_output ? "" : ", n, i and the number of an output");
      return out;
    }
    (is_output ? out.outputs : out.inputs).push_back(letter);
  }
  *wrong = fit("output", out.outputs, outputs, pack);
  if (wrong->empty()) *wrong = fit("input", out.inputs, inputs, pack);
  return out;
}

std::vector<Type> asm_outputs(const Op& op) {
  std::vector<Type> out;
  for (const std::string& name : split_at(std::get<std::string>(*op.find(AttrName::kOutputs)), ' ')) {
    const std::optional<DType> type = parse_dtype(name);
    if (!type) return {};
    out.push_back(scalar_type(*type));
  }
  return out;
}

}  // namespace kiln::ir
