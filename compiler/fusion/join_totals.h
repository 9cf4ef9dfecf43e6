// Reductions of what a kernel has made, by whichever of its programs ends last.
#pragma once
#include <optional>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/plan.h"

namespace kiln::fusion {

/// What a kernel that becomes part of another one calls the number of its program.
inline constexpr std::string_view kProgramOfTotal = "program_of_total";

/// Whether the kernel behind `parts`, which may be joined already, may be run by whichever program of that ends last:
/// it has few elements, such as the parts of a sum, and a launch more takes some 3 us.
bool may_join(const Group& parts, const Cluster& of_parts, const Group& total, const Cluster& of_total);
/// Whether that kernel asks for the number of its program. It is then to be written with kProgramOfTotal.
bool asks_for_program(const Cluster& of_total);
/// Both in one. `turns`: the plan's value that counts programs.
Group joined(const Group& parts, const Group& total, const Cluster& of_total, int turns);

/// So many programs with rows of their own may count those that end, each in a word of that value.
inline constexpr int64_t kMostTurns = 128;
/// Whether what reduces the parts that a kernel makes of each row may be done, rows by rows, by whichever program of
/// those that share rows ends last. The kernel is then to be written with as many rows to a program (rows_of_total) and
/// with kProgramOfTotal.
bool may_join_rows(const Dag& dag, const Group& parts, const Cluster& of_parts, const Group& total,
                   const Cluster& of_total);
/// Both in one; `sharing`: how many programs share rows.
Group joined_rows(const Group& parts, const Group& total, int64_t sharing, int turns);

}  // namespace kiln::fusion
