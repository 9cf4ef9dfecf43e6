// Derives findings from a timeline: what stands out, the numbers, and what to try. docs/advisor.md has
// every rule.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/profile/counters.h"
#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

enum class Severity : uint8_t { kNote, kWarning };
std::string_view name(Severity severity);

struct Finding {
  std::string rule;  // "unneeded-sync"
  Severity severity = Severity::kNote;
  std::string what;      // the numbers that fired it
  std::string evidence;  // the statement, ranges or kernels: "train.py:12 `torch.cuda.synchronize()`"
  std::string advice;
};

/// Facts about a kernel besides its runs.
struct KernelSource {
  std::string kernel;
  bool has_dot = false;     // it multiplies tiles, so it could use the tensor cores
  std::string memory_line;  // where it waits most for memory, "file:line `text`"; empty: not sampled
  std::string shared_line;  // where it waits most for shared memory
};

struct AdvisorInputs {
  std::span<const KernelFigures> counters = {};  // of a pass of their own; empty: none were read
  std::span<const KernelSource> sources = {};    // for a kernel without one, its name decides whether it multiplies
};

/// Warnings first, then in the order of the rules; of one rule what weighs most first.
std::vector<Finding> advise(const Timeline& timeline, const AdvisorInputs& inputs = {});

struct AdvisorRule {
  std::string_view name;
  Severity severity;
  std::string_view seen;   // the observation
  std::string_view means;  // what it means
};
std::span<const AdvisorRule> advisor_rules();

/// Columns rule, severity, what, evidence, advice.
report::Table findings_table(std::span<const Finding> findings);
/// For a terminal: each finding on its own lines, or a line that there are none.
std::string findings_text(std::span<const Finding> findings, const report::TextStyle& style = {});

}  // namespace kiln::profiler
