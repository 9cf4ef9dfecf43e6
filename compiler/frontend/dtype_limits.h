// What torch.iinfo and torch.finfo say of a dtype.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/ast/ast.h"
#include "kiln/dtype.h"

namespace kiln::frontend {

/// `field` is `bits`, `max`, `min`, and of floats `eps`, `tiny` or `smallest_normal`; nullopt for any other.
std::optional<ast::Constant> limit_of(DType dtype, std::string_view field);
/// Of a call of `function`, torch.iinfo(torch.int32) and its like.
std::optional<ast::Constant> limit_of_call(const ast::Call& call, std::string_view function, std::string_view field);

}  // namespace kiln::frontend
