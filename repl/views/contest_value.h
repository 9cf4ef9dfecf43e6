// Results of measurements as values of the script.
#pragma once
#include "profiler/compare/compare.h"
#include "repl/script/value/value.h"

namespace kiln::repl {

/// A list with one dict per contender, beside the columns of its table: name, us, samples, speedup, interval, verdict,
/// error…; None where something is unknown. Times are microseconds.
script::Value contest_value(const profiler::Contest& contest);

}  // namespace kiln::repl
