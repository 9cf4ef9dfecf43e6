// Where in the script something came from.
#pragma once
#include <string>

#include "profiler/profile/timeline.h"

namespace kiln::profiler {

/// The innermost statement at or around a span; nullptr: none was seen.
const Span* statement_of(const Timeline& timeline, int span);

/// "train.py:12"; empty: not known.
std::string line_of(const Timeline& timeline, int span);

/// "train.py:12 `y = f(x)`"; empty: not known.
std::string line_and_text(const Span& statement);

/// Whether a span or one around it is of that step.
bool is_within(const Timeline& timeline, int span, trace::Step step);

}  // namespace kiln::profiler
