// What %compare does, for commands that end with a comparison.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "repl/magics/magics.h"

namespace kiln::repl {

/// `arguments` as %compare takes them. `names` of the rows; empty: the texts of the expressions, without what all
/// share.
Status compare_expressions(MagicContext& context, std::string_view arguments,
                           const std::vector<std::string>& names = {});

}  // namespace kiln::repl
