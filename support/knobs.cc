#include "support/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "support/diag.h"
#include "support/environment.h"

namespace kiln {
namespace {

constexpr KnobInfo kKnobs[] = {
#define KILN_KNOB(e, variable, default_value, form, meaning) {variable, default_value, meaning, KnobForm::k##form},
#include "support/knobs.def"
#undef KILN_KNOB
};

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::span<const KnobInfo> knobs() { return kKnobs; }
const KnobInfo& info(Knob k) { return kKnobs[static_cast<size_t>(k)]; }

std::string knob(Knob k) {
  auto text = environment(info(k).variable.data());  // NOLINT(bugprone-suspicious-stringview-data-usage): a literal
  return text && !text->empty() ? *std::move(text) : std::string(info(k).default_value);
}

bool knob_on(Knob k) {
  std::string text = knob(k);
  return !(text.empty() || text == "0" || text == "off" || text == "no" || text == "false");
}

Result<std::optional<int64_t>> knob_int(Knob k, int64_t at_least) {
  std::string text = knob(k);
  if (text.empty()) return std::optional<int64_t>{};
  auto value = parse_int(text);
  if (!value || *value < at_least)
    return error(ErrorKind::kValue, "{}={} is not an integer of at least {}", info(k).variable, text, at_least);
  return value;
}

int64_t knob_limit(Knob k) {
  const auto given = knob_int(k, 1);
  return given.ok() ? **given : *parse_int(info(k).default_value);
}

Result<std::optional<int64_t>> knob_bytes(Knob k) {
  std::string text = knob(k);
  if (text.empty()) return std::optional<int64_t>{};
  std::string_view digits = text;
  int shift = 0;
  switch (digits.back()) {
    case 'K':
    case 'k':
      shift = 10;
      break;
    case 'M':
    case 'm':
      shift = 20;
      break;
    case 'G':
    case 'g':
      shift = 30;
      break;
  }
  if (shift) digits.remove_suffix(1);
  auto value = parse_int(digits);
  if (!value || *value < 0 || *value > (INT64_MAX >> shift))
    return error(ErrorKind::kValue, "{}={} is not a size; write bytes, or a number with K, M or G", info(k).variable,
                 text);
  return std::optional<int64_t>(*value << shift);
}

std::vector<std::string> knob_problems() {
  constexpr std::string_view kWords[] = {"0", "off", "no", "false", "1", "on", "yes", "true"};
  std::vector<std::string> out;
  for (const KnobInfo& row : kKnobs) {
    const auto k = static_cast<Knob>(&row - kKnobs);
    const std::string text = knob(k);
    if (row.form == KnobForm::kFlag && std::ranges::find(kWords, text) == std::end(kWords))
      out.push_back(fmt::format("{}={} is neither 0 nor 1, and counts as 1", row.variable, text));
    if (row.form == KnobForm::kLimit && !knob_int(k, 1).ok())
      out.push_back(fmt::format("{}={} is not an integer of at least 1, and counts as {}", row.variable, text,
                                row.default_value));
  }
  return out;
}

Result<double> knob_seconds(Knob k) {
  std::string text = knob(k);
  if (text.empty()) return 0.0;
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !(value >= 0) || value > 1e9)
    return error(ErrorKind::kValue, "{}={} is not a number of seconds", info(k).variable, text);
  return value;
}

void leave_drivers_code_cache_off() { setenv("CUDA_CACHE_DISABLE", "1", /*overwrite=*/0); }

}  // namespace kiln
