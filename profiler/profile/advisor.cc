#include "profiler/profile/advisor.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/profile/advisor_limits.h"
#include "profiler/profile/advisor_rule.h"
#include "support/text_width.h"

namespace kiln::profiler {

namespace {

// Two tables of the same rows: what %advise lists is known without the functions.
constexpr AdvisorRule kRules[] = {
#define KILN_RULE(function, name, severity, seen, means) {name, Severity::k##severity, seen, means},
#include "profiler/profile/advisor_rules.def"
#undef KILN_RULE
};

using Rule = void (*)(const Facts&, FindingSink&);
constexpr Rule kFunctions[] = {
#define KILN_RULE(function, name, severity, seen, means) rules::function,
#include "profiler/profile/advisor_rules.def"
#undef KILN_RULE
};

constexpr const char* kNothing = "nothing stands out";

}  // namespace

std::string_view name(Severity severity) { return severity == Severity::kWarning ? "warning" : "note"; }

std::span<const AdvisorRule> advisor_rules() { return kRules; }

std::vector<Finding> advise(const Timeline& timeline, const AdvisorInputs& inputs) {
  const Facts facts(timeline, inputs);
  std::vector<Finding> findings;
  for (size_t i = 0; i < std::size(kRules); ++i) {
    FindingSink sink;
    kFunctions[i](facts, sink);
    auto& found = sink.found();
    std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.weight > b.weight; });
    // A rule that fires for everything would hide the others.
    if (found.size() > limits::kFindingsPerRule) found.resize(limits::kFindingsPerRule);
    for (FindingSink::Found& f : found)
      findings.push_back({std::string(kRules[i].name), kRules[i].severity, std::move(f.what), std::move(f.evidence),
                          std::move(f.advice)});
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

report::Table findings_table(std::span<const Finding> findings) {
  using report::Align;
  report::Table table({{"rule", "", Align::kLeft},
                       {"severity", "", Align::kLeft},
                       {"what", "", Align::kLeft},
                       {"evidence", "", Align::kLeft},
                       {"advice", "", Align::kLeft}});
  table.set_title("findings");
  for (const Finding& f : findings)
    table.add_row({f.rule, std::string(name(f.severity)), f.what, f.evidence, f.advice});
  if (findings.empty()) table.add_note(kNothing);
  return table;
}

std::string findings_text(std::span<const Finding> findings, const report::TextStyle& style) {
  if (findings.empty()) return fmt::format("findings: {}\n", kNothing);
  const std::string_view bold = style.color ? "\033[1m" : "", yellow = style.color ? "\033[33m" : "",
                         plain = style.color ? "\033[0m" : "";
  std::string text = fmt::format("{}findings{}\n", bold, plain);
  for (const Finding& f : findings) {
    const bool warns = f.severity == Severity::kWarning;
    const std::string head = fmt::format("  {} {}", warns ? "!" : "-", f.rule);
    std::string lines = fmt::format("{}: {}\n", head, f.what);
    if (!f.evidence.empty()) lines += fmt::format("      {}\n", f.evidence);
    lines += fmt::format("      try: {}\n", f.advice);
    lines = wrap_lines(lines, style.width);
    // Colours take no room; the head is one that no line is broken in.
    lines.insert(head.size(), plain);
    if (warns) lines.insert(2, yellow);
    text += lines;
  }
  return text;
}

}  // namespace kiln::profiler
