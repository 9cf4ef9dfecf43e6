// Which of what follows a product stays in its kernel.
#pragma once
#include <vector>

#include "compiler/fusion/grouping.h"

namespace kiln::fusion {

/// Operations behind a product in its kernel, whose programs do them for each element of a large tile: of more, code is
/// of ten thousands of lines (an AdamW step in bfloat16 behind the gradient of its weights: 6 s of ptxas).
inline constexpr size_t kMostEpilogue = 24;

/// Members of a product's cluster that stay with it, the product first: all of them, but where the epilogue is long, or
/// moves so much memory that writing and reading the product once more costs less: a product's programs are few and
/// wait for what their epilogues load. `leaves` says of each member whether it is read or wanted outside.
std::vector<int> members_beside_product(const Dag& dag, const Machine& machine, const Cluster& c, int product,
                                        const std::vector<bool>& leaves);

}  // namespace kiln::fusion
