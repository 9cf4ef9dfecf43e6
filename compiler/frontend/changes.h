// What the text of a file tells without running it: which names change in ways that one assignment does not tell, and
// which conditions ask for a vendor's GPU.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "compiler/ast/ast.h"

namespace kiln::frontend {

struct Changes {
  std::set<std::string, std::less<>> changing;   // by functions, loops or methods, wherever they are in the file
  std::set<std::string, std::less<>> handed_on;  // whose value something else may hold, and change where it can be
};

/// `body` is the file's or that of a function in it, whose own loops count.
/// Whether it makes a list, a dict, or a set.
bool makes_list(const ast::Expr& e);
Changes changes_of(const ast::Body& file, const ast::Body& body);

/// What `IS_HIP`, `platform.is_rocm()` or `not is_cuda()` is on an NVIDIA GPU; nullopt: it asks for something else.
std::optional<bool> asks_for_vendor(const ast::Expr& condition);

}  // namespace kiln::frontend
