#include "support/launch_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "support/diag.h"

namespace kiln {

bool LaunchOption::allows(int value) const {
  if (takes_none() && value == get({})) return true;
  return value >= least && value <= most && (!has('2') || std::has_single_bit(static_cast<unsigned>(value)));
}

std::string LaunchOption::allowed() const {
  if (flag) return "True or False";
  return fmt::format("{}{}from {} to {}", takes_none() ? "None, or " : "", has('2') ? "a power of two " : "", least,
                     most);
}

std::string LaunchOption::text(const CodeOptions& options) const {
  const int value = get(options);
  if (takes_none() && value == get({})) return fmt::format("{}=None", name);
  if (flag) return fmt::format("{}={}", name, value ? "True" : "False");
  return fmt::format("{}={}", name, value);
}

Status LaunchOption::read(std::string_view text, CodeOptions& options) const {
  if (takes_none() && text == "None") {
    set_default(options);
    return {};
  }
  if (flag && (text == "True" || text == "False")) {
    set(options, text == "True");
    return {};
  }
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || !allows(value))
    return error(ErrorKind::kValue, "{} must be {}, not '{}'", name, allowed(), text);
  set(options, value);
  return {};
}

const LaunchOption* find_launch_option(std::string_view name) {
  const auto* found = std::ranges::find(kLaunchOptions, name, &LaunchOption::name);
  return found == std::end(kLaunchOptions) ? nullptr : found;
}

std::string wrong_option(const CodeOptions& options) {
  for (const LaunchOption& o : kLaunchOptions)
    if (int value = o.get(options); !o.allows(value))
      return fmt::format("{} must be {}, got {}", o.name, o.allowed(), value);
  return {};
}

std::string tuned_text(const CodeOptions& options) {
  std::string out;
  for (const LaunchOption& o : kLaunchOptions) {
    if (!o.is_tuned() || (o.takes_none() && o.get(options) == o.get({}))) continue;
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", o.name, o.get(options));
  }
  return out;
}

std::string key_text(const CodeOptions& options) {
  std::string out;
  for (const LaunchOption& o : kLaunchOptions)
    out += fmt::format("{}{} {}", out.empty() ? "" : " ", o.name, o.get(options));
  return out;
}

}  // namespace kiln
