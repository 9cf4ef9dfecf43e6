// The value that `kiln compile` and `kiln check` give a constexpr parameter which nobody gave one, from the text of its
// file: the parameter's default, the first configuration of @triton.autotune, @triton.heuristics, a launch, else how
// the kernel and the functions that it calls use the parameter.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/frontend/constexpr_text.h"
#include "repl/commands/assumed_launch.h"

namespace kiln::repl {

using frontend::last_name;
using frontend::literal;

/// Nullopt for a size, and for a parameter whose use tells nothing. `flags` is what those are taken for that nothing
/// decides.
std::optional<frontend::Global> assumed_constexpr(const frontend::JitFunction& function, const ast::Param& param,
                                                  const LaunchFacts& launch, bool flags = false);

}  // namespace kiln::repl
