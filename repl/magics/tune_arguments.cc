#include "repl/magics/tune_arguments.h"

#include <algorithm>

#include "repl/magics/contenders.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (end > 0) names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

Result<bool> on_or_off(std::string_view name, std::string_view value) {
  if (value != "on" && value != "off") return error(ErrorKind::kValue, "{} is on or off, not '{}'", name, value);
  return value == "on";
}

}  // namespace

Result<TuneArguments> read_tune_arguments(const MagicArguments& given) {
  TuneArguments a;
  for (const auto& [name, value] : given.values) {
    if (name == "-v") {
      a.verbose = true;
    } else if (name == "--forget") {
      a.forget = true;
    } else if (name == "--json") {
      a.json_file = value;
    } else if (name == "budget") {
      KILN_TRY(a.request.budget_s, seconds_of(value));
    } else if (name == "cache") {
      if (value != "cold" && value != "hot") return error(ErrorKind::kValue, "cache is cold or hot, not '{}'", value);
      a.request.cache = value == "hot" ? profiler::Cache::kHot : profiler::Cache::kCold;
    } else if (name == "bounds") {
      KILN_TRY(a.request.check_accesses, on_or_off(name, value));
    } else if (name == "check") {
      a.request.check = value != "off";
      if (value != "off" && value != "on") a.request.outputs = split_names(value);
    } else {
      a.request.axes.push_back({name, value});
    }
  }
  // Two launches without a comma are one text.
  std::vector<std::string> launches;
  for (const std::string& text : given.expressions)
    for (std::string_view word : parts_of(text, Between::kBlanks).words()) launches.emplace_back(word);
  if (launches.size() > 1)
    return error(ErrorKind::kSyntax, "%tune takes one launch, and '{}' is a second", launches[1]);
  if (launches.empty() && !a.forget) return error(ErrorKind::kValue, "%tune needs a launch or a kernel");
  if (!launches.empty()) a.request.launch = launches[0];
  return a;
}

}  // namespace kiln::repl
